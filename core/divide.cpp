// SplitSearch, the last part: a segment in two, with order kept and only the smaller side counted.

#include <algorithm>
#include <utility>

#include "split.hpp"

namespace evertree {

std::uint32_t SplitSearch::missing_begin(std::uint32_t feature, const Segment& segment) const {
    if (!columns_.is_missing_at(feature, segment.end - 1)) return segment.end;
    std::uint32_t present = segment.begin, missing = segment.end - 1;
    while (present < missing) {
        const std::uint32_t middle = present + (missing - present) / 2;
        if (columns_.is_missing_at(feature, middle)) {
            missing = middle;
        } else {
            present = middle + 1;
        }
    }
    return missing;
}

void SplitSearch::mark_left(const Segment& segment, const Candidate& split, std::uint32_t begin,
                            std::uint32_t end) {
    if (split.counted) {
        mark_left_counted(split, begin, end);
    } else {
        mark_left_sorted(segment, split, begin, end);
    }
}

void SplitSearch::mark_left_counted(const Candidate& split, std::uint32_t begin,
                                    std::uint32_t end) {
    const Column& column = columns_.columns[split.split.feature];
    const std::uint16_t* const rank_of = columns_.ranks(split.split.feature);
    rank_goes_left_.assign(column.n_values, 0);
    std::fill(rank_goes_left_.begin() + split.left_begin, rank_goes_left_.begin() + split.left_end,
              1);
    if (split.split.missing_left && column.any_missing) rank_goes_left_.back() = 1;
    for (const std::uint32_t row : columns_.row_span(begin, end)) {
        columns_.goes_left[row] = rank_goes_left_[rank_of[row]];
    }
}

void SplitSearch::mark_left_sorted(const Segment& segment, const Candidate& split,
                                   std::uint32_t begin, std::uint32_t end) {
    const std::uint32_t feature = split.split.feature;
    const std::uint32_t* const element = columns_.elements(feature);
    const std::uint32_t missing =
        split.split.missing_left ? missing_begin(feature, segment) : segment.end;
    for (std::uint32_t i = begin; i < end; ++i) {
        columns_.goes_left[element[i] & kRow] =
            (i >= split.left_begin && i < split.left_end) || i >= missing;
    }
}

void SplitSearch::divide(const Segment& segment, const Candidate& split, bool search_left,
                         bool search_right, Segment& left, Segment& right, Watch& watch) {
    mark_left(segment, split, segment.begin, segment.end);
    divide_rows(segment, split, left, right, watch);
    if (!search_left && !search_right) return close(segment);
    divide_features(features(segment), segment, watch);
    begin_counts(segment, features(segment), left, search_left, right, search_right);
    divide_counts(features(segment), left, right, watch);
    end_counts(left, search_left, right, search_right);
}

void SplitSearch::divide_rows(const Segment& segment, const Candidate& split, Segment& left,
                              Segment& right, Watch& watch) {
    const wide::Divider divider(columns_.goes_left.get(), columns_.n, spare_.get());
    divider.rows(columns_.rows.get() + segment.begin, segment.size());
    left = right = segment;
    left.counts = right.counts = nullptr;
    left.end = right.begin = segment.begin + static_cast<std::uint32_t>(split.sides.left.size);
    watch.worked(2 * segment.size());
}

void SplitSearch::divide_features(std::span<const std::uint32_t> features, const Segment& segment,
                                  Watch& watch) {
    const wide::Divider divider(columns_.goes_left.get(), columns_.n, spare_.get());
    std::size_t n_lists = 0;
    for (const std::uint32_t entry : features) {
        if ((entry & kCounted) == 0) lists_[n_lists++] = columns_.elements(entry) + segment.begin;
    }
    divider.elements(lists_.data(), n_lists, segment.size());
    watch.worked(n_lists * segment.size());
}

// The larger side gets the counts of both, from which those of the smaller will be taken.
void SplitSearch::begin_counts(const Segment& segment, std::span<const std::uint32_t> features,
                               Segment& left, bool search_left, Segment& right, bool search_right) {
    if (segment.counts == nullptr) return;
    const std::size_t largest =
        std::max(search_left ? left.size() : 0, search_right ? right.size() : 0);
    const bool any = std::any_of(features.begin(), features.end(), [&](std::uint32_t entry) {
        return (entry & kCounted) != 0 &&
               columns_.counting_pays(columns_.columns[entry & ~kCounted], largest);
    });
    if (!any) return close(segment);
    Segment &smaller = left.size() <= right.size() ? left : right,
            &larger = left.size() <= right.size() ? right : left;
    larger.counts = segment.counts;
    smaller.counts = columns_.take_counts();
}

void SplitSearch::divide_counts(std::span<const std::uint32_t> features, const Segment& left,
                                const Segment& right, Watch& watch) const {
    const Segment &smaller = left.size() <= right.size() ? left : right,
                  &larger = left.size() <= right.size() ? right : left;
    if (smaller.counts == nullptr) return;
    for (const std::uint32_t entry : features) {
        if ((entry & kCounted) == 0) continue;
        const Column& column = columns_.columns[entry & ~kCounted];
        if (!columns_.counting_pays(column, larger.size())) continue;
        const std::size_t n_counts = std::size_t{column.n_values} * columns_.n_classes;
        std::uint32_t* const of_smaller = smaller.counts + column.counts_at;
        std::uint32_t* const of_larger = larger.counts + column.counts_at;
        count(entry & ~kCounted, smaller, of_smaller);
        for (std::size_t c = 0; c < n_counts; ++c) of_larger[c] -= of_smaller[c];
        watch.worked(smaller.size() + n_counts);
    }
}

void SplitSearch::end_counts(Segment& left, bool search_left, Segment& right, bool search_right) {
    if (!search_left) columns_.give_back_counts(std::exchange(left.counts, nullptr));
    if (!search_right) columns_.give_back_counts(std::exchange(right.counts, nullptr));
}

void SplitSearch::count(std::uint32_t feature, const Segment& segment,
                        std::uint32_t* counts) const {
    const std::size_t n_classes = columns_.n_classes;
    const std::size_t n_counts = std::size_t{columns_.columns[feature].n_values} * n_classes;
    const std::uint16_t* const rank_of = columns_.ranks(feature);
    const std::uint32_t* const class_of = columns_.classes.data();
    const auto own = rows(segment);
    const auto place = [&](std::uint32_t row) { return rank_of[row] * n_classes + class_of[row]; };
    std::fill_n(counts, n_counts, 0u);
    std::size_t i = 0;
    // The next row often needs the same count, and would wait for it: four sets.
    constexpr std::size_t few = 1024;
    if (n_counts <= few && own.size() >= 4 * n_counts) {
        std::uint32_t sets[4][few];
        for (auto& set : sets) std::fill_n(set, n_counts, 0u);
        for (; i + 4 <= own.size(); i += 4) {
            for (std::size_t s = 0; s < 4; ++s) ++sets[s][place(own[i + s])];
        }
        for (std::size_t c = 0; c < n_counts; ++c) {
            counts[c] = sets[0][c] + sets[1][c] + sets[2][c] + sets[3][c];
        }
    }
    for (; i < own.size(); ++i) ++counts[place(own[i])];
}

// Too few rows for counting: the rows in the order of their ranks, from here on down.
void SplitSearch::to_sorted(std::uint32_t feature, const Segment& segment, Watch& watch) {
    const std::uint16_t* const rank_of = columns_.ranks(feature);
    const auto own = rows(segment);
    for (std::size_t i = 0; i < own.size(); ++i) {
        keys_[i] = rank_of[own[i]];
        own_tags_[i] = columns_.tags[own[i]];
    }
    sorter_.sort({keys_.get(), own.size()}, 0xffff, own_tags_.get(), columns_.tag_bits(), watch);
    sorter_.elements(columns_.elements(feature) + segment.begin);
}

}  // namespace evertree
