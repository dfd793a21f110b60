// SplitSearch, the last part: a segment in two, with order kept and only the smaller side counted.

#include <algorithm>
#include <cstring>

#include "split.hpp"

namespace evertree {

bool SplitSearch::is_missing_at(std::uint32_t feature, std::uint32_t position) const {
    return columns_[feature].any_missing && is_missing(value_at(feature, position));
}

std::uint32_t SplitSearch::missing_begin(std::uint32_t feature, const Segment& segment) const {
    if (!is_missing_at(feature, segment.end - 1)) return segment.end;
    std::uint32_t present = segment.begin, missing = segment.end - 1;
    while (present < missing) {
        const std::uint32_t middle = present + (missing - present) / 2;
        if (is_missing_at(feature, middle)) {
            missing = middle;
        } else {
            present = middle + 1;
        }
    }
    return missing;
}

void SplitSearch::mark_left(const Segment& segment, const Candidate& split) {
    if (split.counted) {
        mark_left_counted(segment, split);
    } else {
        mark_left_sorted(segment, split);
    }
}

void SplitSearch::mark_left_counted(const Segment& segment, const Candidate& split) {
    const Column& column = columns_[split.split.feature];
    const std::uint16_t* const rank_of = ranks(column);
    const bool missing_left = split.split.missing_left && column.any_missing;
    const std::uint32_t n_left = split.left_end - split.left_begin;
    for (const std::uint32_t row : rows(segment.begin, segment.end)) {
        const std::uint32_t rank = rank_of[row];
        goes_left_[row] =
            rank - split.left_begin < n_left || (missing_left && rank + 1 == column.n_values);
    }
}

void SplitSearch::mark_left_sorted(const Segment& segment, const Candidate& split) {
    const std::uint32_t feature = split.split.feature;
    const std::uint32_t* const element = elements(feature);
    const std::uint32_t missing =
        split.split.missing_left ? missing_begin(feature, segment) : segment.end;
    for (std::uint32_t i = segment.begin; i < segment.end; ++i) {
        goes_left_[element[i] & kRow] =
            (i >= split.left_begin && i < split.left_end) || i >= missing;
    }
}

void SplitSearch::divide(const Segment& segment, const Candidate& split, bool search_left,
                         bool search_right, Segment& left, Segment& right, Watch& watch) {
    mark_left(segment, split);
    const wide::Divider divider(goes_left_.get(), n_, spare_.get());
    divider.rows(rows_.get() + segment.begin, segment.size());
    left = right = segment;
    left.counts = right.counts = Segment::kNoCounts;
    left.end = right.begin = segment.begin + static_cast<std::uint32_t>(split.sides.left.size);
    watch.worked(segment.size());
    if (!search_left && !search_right) return close(segment);
    std::size_t n_lists = 0;
    for (std::uint32_t i = 0; i < segment.n_features; ++i) {
        const std::uint32_t entry = features_[segment.features_at + i];
        if ((entry & kCounted) == 0) lists_[n_lists++] = elements(entry) + segment.begin;
    }
    divider.elements(lists_.data(), n_lists, segment.size());
    watch.worked(n_lists * segment.size());
    if (segment.counts == Segment::kNoCounts) return;
    const bool left_smaller = left.size() <= right.size();
    if (left_smaller) {
        divide_counts(segment, left, search_left, right, search_right);
    } else {
        divide_counts(segment, right, search_right, left, search_left);
    }
    watch.worked(segment.size());
}

// Only the smaller side is counted; the larger one keeps the counts that remain.
void SplitSearch::divide_counts(const Segment& segment, Segment& smaller, bool search_smaller,
                                Segment& larger, bool search_larger) {
    const std::size_t largest = search_larger ? larger.size() : smaller.size();
    if (!any_counting_pays(segment, largest)) return close(segment);
    const std::uint32_t block = take_counts();
    std::uint32_t* const of_smaller = counts_[block].data();
    std::uint32_t* const of_larger = counts_[segment.counts].data();
    for (std::uint32_t i = 0; i < segment.n_features; ++i) {
        const std::uint32_t entry = features_[segment.features_at + i];
        if ((entry & kCounted) == 0) continue;
        const Column& column = columns_[entry & ~kCounted];
        if (!counting_pays(column, largest)) continue;
        const std::size_t size = std::size_t{column.n_values} * n_classes_;
        count(column, smaller, of_smaller + column.counts_at);
        for (std::size_t c = column.counts_at; c < column.counts_at + size; ++c) {
            of_larger[c] -= of_smaller[c];
        }
    }
    (search_smaller ? smaller.counts : counts_free_.emplace_back()) = block;
    (search_larger ? larger.counts : counts_free_.emplace_back()) = segment.counts;
}

void SplitSearch::count(const Column& column, const Segment& segment, std::uint32_t* counts) const {
    const std::size_t n_counts = std::size_t{column.n_values} * n_classes_;
    const std::uint16_t* const rank_of = ranks(column);
    const auto own = rows(segment.begin, segment.end);
    const auto place = [&](std::uint32_t row) {
        return std::size_t{rank_of[row]} * n_classes_ + classes_[row];
    };
    std::fill_n(counts, n_counts, 0u);
    std::size_t i = 0;
    // With few counts the next row often needs the same one, and would wait for it: four sets.
    constexpr std::size_t few = 64;
    if (n_counts <= few && own.size() >= 4 * few) {
        std::uint32_t sets[4][few] = {};
        for (; i + 4 <= own.size(); i += 4) {
            for (std::size_t s = 0; s < 4; ++s) ++sets[s][place(own[i + s])];
        }
        for (std::size_t c = 0; c < n_counts; ++c) {
            counts[c] = sets[0][c] + sets[1][c] + sets[2][c] + sets[3][c];
        }
    }
    for (; i < own.size(); ++i) ++counts[place(own[i])];
}

std::uint32_t SplitSearch::take_counts() {
    if (counts_free_.empty()) {
        counts_.emplace_back(counts_size_);
        return static_cast<std::uint32_t>(counts_.size() - 1);
    }
    const std::uint32_t block = counts_free_.back();
    counts_free_.pop_back();
    if (counts_[block].size() < counts_size_) counts_[block].resize(counts_size_);
    return block;
}

void SplitSearch::close(const Segment& segment) {
    if (segment.counts != Segment::kNoCounts) counts_free_.push_back(segment.counts);
}

// Too few rows for counting: the rows in the order of their ranks, from here on down.
void SplitSearch::to_sorted(std::uint32_t feature, const Segment& segment, Watch& watch) {
    const std::uint16_t* const rank_of = ranks(columns_[feature]);
    const auto own = rows(segment.begin, segment.end);
    for (std::size_t i = 0; i < own.size(); ++i) {
        keys_[i] = rank_of[own[i]];
        own_tags_[i] = tags_[own[i]];
    }
    sorter_.sort({keys_.data(), own.size()}, 0xffff, own_tags_.data(), tag_bits(), watch);
    sorter_.elements(elements(feature) + segment.begin);
}

}  // namespace evertree
