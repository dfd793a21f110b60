// Cuts: what a search holds while it goes through the splits of a segment. For split.cpp and
// counts.cpp, which do the going.
#pragma once

#include <algorithm>
#include <bit>

#include "split.hpp"

namespace evertree {

// A cut holds the two sides of a split while values move from right to left. Its score ranks the
// splits of one set; scores closer than the doubt are compared exactly.
struct SplitSearch::TwoClassCut {
    std::span<const ClassCount> counts;
    std::uint32_t size, ones;
    std::uint32_t left = 0, left_ones = 0;

    void reset() { left = left_ones = 0; }
    static std::uint32_t class_of(std::uint32_t element, const std::uint32_t*) {
        return (element >> 30) & 1;
    }
    void move(std::uint32_t label) {
        ++left;
        left_ones += label;
    }
    void move_back(std::uint32_t label) {
        --left;
        left_ones -= label;
    }
    using Group = const std::uint32_t*;  // what a value counts, by class
    static Group group(const std::uint32_t* group) { return group; }
    static bool is_empty(Group group) { return (group[0] | group[1]) == 0; }
    void move(Group group) {
        left += group[0] + group[1];
        left_ones += group[1];
    }
    void move_back(Group group) {
        left -= group[0] + group[1];
        left_ones -= group[1];
    }
    // mass = 2 * (ones - score)
    double score() const {
        const double on_left = left_ones, on_right = ones - left_ones;
        return on_left * on_left / left + on_right * on_right / (size - left);
    }
    double score_to_reach(const Sides& best) const {
        return (purity(best) - size) / 2 + ones - 1e-12 * size;
    }
    Sides sides() const {
        const auto tally = [](std::uint64_t n, std::uint64_t n_ones) {
            return Tally{n, n_ones * n_ones + (n - n_ones) * (n - n_ones)};
        };
        return {tally(left, left_ones), tally(size - left, ones - left_ones)};
    }
};

struct SplitSearch::ManyClassCut {
    std::span<const ClassCount> counts;
    std::uint32_t size;
    std::uint32_t n_classes;
    std::uint32_t *left_counts, *right_counts;
    std::uint32_t left = 0;
    std::uint64_t left_squares = 0, right_squares = 0;

    void reset() {
        left = 0;
        left_squares = right_squares = 0;
        for (const ClassCount& c : counts) {
            left_counts[c.label] = 0;
            right_counts[c.label] = c.count;
            right_squares += std::uint64_t{c.count} * c.count;
        }
    }
    static std::uint32_t class_of(std::uint32_t element, const std::uint32_t* classes) {
        return classes[element & kRow];
    }
    void move(std::uint32_t label, std::uint32_t count) {
        const std::uint64_t n = count;
        left_squares += n * (2 * std::uint64_t{left_counts[label]} + n);
        right_squares -= n * (2 * std::uint64_t{right_counts[label]} - n);
        left_counts[label] += count;
        right_counts[label] -= count;
        left += count;
    }
    void move_back(std::uint32_t label, std::uint32_t count) {
        const std::uint64_t n = count;
        left_squares -= n * (2 * std::uint64_t{left_counts[label]} - n);
        right_squares += n * (2 * std::uint64_t{right_counts[label]} + n);
        left_counts[label] -= count;
        right_counts[label] += count;
        left -= count;
    }
    void move(std::uint32_t label) { move(label, 1); }
    void move_back(std::uint32_t label) { move_back(label, 1); }
    // What a value counts, by class, and a bit for each that counts at all, of the first ones: few
    // of the classes have a certain value.
    struct Group {
        const std::uint32_t* counts;
        std::uint64_t first;
    };
    std::uint64_t which_count(const std::uint32_t* counts, std::uint32_t begin) const {
        return wide::which_count(counts + begin, std::min<std::size_t>(n_classes - begin, 64));
    }
    Group group(const std::uint32_t* counts) const { return {counts, which_count(counts, 0)}; }
    template <typename Do>
    void each_count(Group group, Do do_this) const {
        std::uint64_t rest = group.first;
        for (std::uint32_t begin = 0;; rest = which_count(group.counts, begin)) {
            for (; rest != 0; rest &= rest - 1) {
                const auto label = begin + static_cast<std::uint32_t>(std::countr_zero(rest));
                do_this(label, group.counts[label]);
            }
            begin += 64;
            if (begin >= n_classes) return;
        }
    }
    bool is_empty(Group group) const {
        if (n_classes <= 64) return group.first == 0;
        bool empty = true;
        each_count(group, [&](std::uint32_t, std::uint32_t) { empty = false; });
        return empty;
    }
    void move(Group group) {
        each_count(group, [&](std::uint32_t label, std::uint32_t n) { move(label, n); });
    }
    void move_back(Group group) {
        each_count(group, [&](std::uint32_t label, std::uint32_t n) { move_back(label, n); });
    }
    double score() const {
        return static_cast<double>(left_squares) / left +
               static_cast<double>(right_squares) / (size - left);
    }
    double score_to_reach(const Sides& best) const { return purity(best) - 1e-12 * size; }
    Sides sides() const { return {{left, left_squares}, {size - left, right_squares}}; }
};

// The search of one segment: the best so far, and the feature at hand.
template <typename Cut>
struct SplitSearch::Search {
    const Segment& segment;
    Cut cut;
    Cut cut_missing_left;
    Candidate best;
    double to_reach = -1.0;
    BinShare share = {};
    std::uint32_t feature = 0;
    bool counted = false;

    void look(const Cut& at, bool missing_left, std::uint32_t begin, std::uint32_t end,
              std::uint32_t last) {
        if (at.score() >= to_reach) consider(at, missing_left, begin, end, last);
    }
    // Whether it is the best so far.
    bool consider(const Cut& at, bool missing_left, std::uint32_t begin, std::uint32_t end,
                  std::uint32_t last) {
        const Sides sides = at.sides();
        if (best.found && !leaves_less(sides, best.sides)) return false;
        best.found = true;
        best.within = false;
        best.sides = sides;
        best.split.feature = feature;
        best.split.missing_left = missing_left;
        best.left_begin = begin;
        best.left_end = end;
        best.last_left = last;
        best.counted = counted;
        to_reach = at.score_to_reach(sides);
        return true;
    }
};

}  // namespace evertree
