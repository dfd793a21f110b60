// Copies: equal rows of one class, so that Build can go through them as one that counts as several.
//
// Tables repeat themselves more often than one would think; then most of the work is done in vain.
// A few rows tell whether that is so. Several workers look for copies in a part of the rows each:
// what the parts have in common stays apart, and counts as often as it is there.
//
// Must not know: what is built.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "memory.hpp"
#include "watch.hpp"

namespace evertree {

class Copies {
  public:
    // Records of so many bytes, a multiple of eight, and the numbers of their classes.
    struct Rows {
        const std::byte* const* records;
        std::size_t record_bytes;
        std::span<const std::uint32_t> classes;

        std::size_t size() const { return classes.size(); }
    };

    // Whether it pays to look for them, as some rows say.
    bool are_likely(const Rows& rows);

    // Then looks for them in parts, each by one worker; when all are done, whether there are
    // enough.
    void start(const Rows& rows, std::size_t n_parts);
    void find(std::size_t part, Watch& watch);
    bool settle();
    // Then, part by part again, which they are.
    void list(std::size_t part);
    // An array by row becomes one by number, in its place: first by parts, each of which has what
    // belongs to its numbers at its beginning; then part after part.
    template <typename T>
    void gather(std::size_t p, T* of_row) const {
        const Part& part = parts_[p];
        for (std::size_t i = 0; i < part.first.size(); ++i) {
            of_row[part.begin + i] = of_row[part.first[i]];
        }
    }
    template <typename T>
    void bring_forward(std::size_t p, T* of_row) const {
        const Part& part = parts_[p];
        if (part.begin == part.numbers_begin) return;
        std::copy_n(of_row + part.begin, part.first.size(), of_row + part.numbers_begin);
    }
    void release();

    // Rows that differ are numbered from 0 on, in the order of the rows. By number: how many are
    // equal, all of them, and one after the other.
    std::size_t size() const { return counts_.size(); }
    const std::uint32_t* counts() const { return counts_.data(); }
    std::span<const std::uint32_t> all(std::size_t number) const {
        return {listed_.get() + next_[number], counts_[number]};
    }
    std::uint32_t next(std::size_t number) { return listed_[next_[number]++]; }

    // What a word of a record is multiplied with in its hash.
    static std::uint64_t factor(std::uint64_t word);

  private:
    struct Entry {
        std::uint32_t hash = 0, number = 0;  // the number + 1; 0 where there is none
    };
    // Equal rows side by side.
    struct Run {
        std::uint32_t begin, number;
    };
    struct alignas(kApart) Part {
        std::uint32_t begin = 0, end = 0;  // rows
        std::uint32_t numbers_begin = 0;   // of all parts before
        std::size_t steps_left = 0;        // from entry to entry
        Buffer<Entry> table;               // by hash; at most half full
        int table_bits = 0;
        std::vector<std::uint32_t> first, counts;  // by number
        std::vector<Run> runs;
    };

    std::uint32_t hash(std::size_t row) const;
    bool are_equal(std::size_t row, std::size_t other) const;
    void number(Part& part, std::uint32_t begin, std::uint32_t end);
    std::uint32_t number_of(Part& part, std::uint32_t row, std::uint32_t hash) const;
    static std::size_t place(const Part& part, std::uint32_t hash) {
        return hash >> (32 - part.table_bits);
    }
    static std::size_t place_after(const Part& part, std::size_t place) {
        return (place + 1) & ((std::size_t{1} << part.table_bits) - 1);
    }
    static void start_table(Part& part, int bits);
    static void make_room(Part& part, std::size_t n_more);

    Rows rows_{};
    std::vector<std::uint64_t> factors_;  // of the words of a record, and of the class
    std::vector<Part> parts_;
    std::vector<std::uint32_t> sample_;
    std::size_t n_in_sample_ = 0;   // that differ
    Buffer<std::uint32_t> listed_;  // all rows, those that are equal side by side
    std::size_t capacity_ = 0;
    std::vector<std::uint32_t> counts_, next_;  // by number
};

}  // namespace evertree
