// SplitSearch, the last part: a segment in two, with order kept and only the smaller side counted.

#include <algorithm>

#include "split.hpp"

namespace evertree {

namespace {

constexpr std::size_t kCountsARow = 32;  // subtracted in the time of what a row lists
constexpr std::size_t kLongWalk = 8192;  // rows

}  // namespace

double SplitSearch::value_at(std::uint32_t feature, const Segment& segment,
                             std::uint32_t place) const {
    const std::uint32_t row = list(feature, segment)[place] & kRow;
    return columns_.packing->value(columns_.records[row], feature);
}

bool SplitSearch::is_missing_at(std::uint32_t feature, const Segment& segment,
                                std::uint32_t place) const {
    return columns_.columns[feature].any_missing && is_missing(value_at(feature, segment, place));
}

std::uint32_t SplitSearch::missing_begin(std::uint32_t feature, const Segment& segment) const {
    const std::uint32_t n = segment.size();
    if (!is_missing_at(feature, segment, n - 1)) return n;
    std::uint32_t present = 0, missing = n - 1;
    while (present < missing) {
        const std::uint32_t middle = present + (missing - present) / 2;
        if (is_missing_at(feature, segment, middle)) {
            missing = middle;
        } else {
            present = middle + 1;
        }
    }
    return missing;
}

void SplitSearch::mark_left(const Segment& segment, const Candidate& split) {
    if (split.counted) {
        mark_left_counted(split, segment.begin, segment.rows_end);
    } else {
        mark_left_sorted(segment, split);
    }
}

void SplitSearch::mark_left_counted(const Candidate& split, std::uint32_t begin,
                                    std::uint32_t end) {
    const Column& column = columns_.columns[split.split.feature];
    if (column.binned) return mark_left_binned(split, begin, end);
    const bool missing_left = split.split.missing_left && column.any_missing;
    const CodedRows::Ranks left{split.left_begin, split.left_end,
                                missing_left ? column.n_values - 1 : split.left_begin};
    columns_.coded.mark(split.split.feature, columns_.row_span(begin, end), left, spare_.get(),
                        columns_.goes_left.get());
}

void SplitSearch::mark_left_binned(const Candidate& split, std::uint32_t begin, std::uint32_t end) {
    const std::uint32_t feature = split.split.feature;
    const std::uint16_t* const ranks = columns_.coded.ranks_of(feature);
    for (const std::uint32_t row : columns_.row_span(begin, end)) {
        bool left = ranks[row] < split.last_left;
        if (ranks[row] == split.last_left) {
            left = columns_.packing->code(columns_.records[row], feature) <= split.last_key;
        }
        columns_.goes_left[row] = left;
    }
}

void SplitSearch::mark_left_sorted(const Segment& segment, const Candidate& split) {
    const std::uint32_t feature = split.split.feature;
    const std::uint32_t* const element = list(feature, segment);
    const std::uint32_t missing =
        split.split.missing_left ? missing_begin(feature, segment) : segment.size();
    for (std::uint32_t i = 0; i < segment.size(); ++i) {
        columns_.goes_left[element[i] & kRow] =
            (i >= split.left_begin && i < split.left_end) || i >= missing;
    }
}

void SplitSearch::divide_rows(const Segment& segment, const Candidate& split, Segment& left,
                              Segment& right, Watch& watch) {
    const std::uint32_t n_left = divide_some_rows(segment.begin, segment.rows_end);
    set_sides(segment, split, n_left, left, right);
    watch.worked(2 * segment.n_rows());
}

std::uint32_t SplitSearch::divide_some_rows(std::uint32_t begin, std::uint32_t end) const {
    return wide::divide_rows(columns_.goes_left.get(), spare_.get(), columns_.rows.get() + begin,
                             end - begin);
}

void SplitSearch::set_sides(const Segment& segment, const Candidate& split, std::uint32_t n_left,
                            Segment& left, Segment& right) const {
    left = right = segment;
    left.counts = right.counts = nullptr;
    left.end = right.begin = segment.begin + static_cast<std::uint32_t>(split.sides.left.size);
    left.rows_end = segment.begin + n_left;
    right.rows_end = right.begin + segment.n_rows() - n_left;
    if (left.rows_end == left.end) return;
    std::uint32_t* const rows = columns_.rows.get();
    std::copy_backward(rows + left.rows_end, rows + segment.rows_end, rows + right.rows_end);
}

void SplitSearch::divide_features(std::span<const std::uint32_t> features, const Segment& segment,
                                  Watch& watch) {
    for (const std::uint32_t entry : features) {
        if ((entry & kCounted) != 0) continue;
        wide::divide_elements(columns_.goes_left.get(), spare_.get(), list(entry, segment),
                              segment.size());
        watch.worked(segment.size());
    }
}

SplitSearch::Shares SplitSearch::shares(std::span<const std::uint32_t> features) {
    shared_.assign(features.begin(), features.end());
    const auto others = std::partition(shared_.begin(), shared_.end(), [&](std::uint32_t entry) {
        return (entry & kCounted) != 0 && columns_.coded.is_listed(entry & ~kCounted);
    });
    const auto n_listed = static_cast<std::size_t>(others - shared_.begin());
    const std::span<const std::uint32_t> all(shared_);
    return {all.first(n_listed), all.subspan(n_listed)};
}

bool SplitSearch::pays(std::uint32_t entry, std::size_t n_rows) const {
    return (entry & kCounted) != 0 &&
           columns_.counting_pays(columns_.columns[entry & ~kCounted], n_rows);
}

bool SplitSearch::any_pays(std::span<const std::uint32_t> features, std::size_t n_rows) const {
    return std::any_of(features.begin(), features.end(),
                       [&](std::uint32_t entry) { return pays(entry, n_rows); });
}

// The larger side gets the counts of both, from which those of the smaller will be taken.
void SplitSearch::begin_counts(const Segment& segment, std::span<const std::uint32_t> features,
                               Segment& left, bool search_left, Segment& right, bool search_right) {
    if (segment.counts == nullptr) return;
    const bool left_smaller = &by_size(left, right).smaller == &left;
    Segment &smaller = left_smaller ? left : right, &larger = left_smaller ? right : left;
    const bool search_smaller = left_smaller ? search_left : search_right;
    const bool search_larger = left_smaller ? search_right : search_left;
    if (search_smaller && any_pays(features, smaller.size())) {
        smaller.counts = columns_.take_counts();
    }
    if (search_larger && any_pays(features, larger.size())) {
        larger.counts = segment.counts;
    } else {
        close(segment);
    }
}

void SplitSearch::divide_counts(std::span<const std::uint32_t> features, const Segment& left,
                                const Segment& right, Watch& watch) const {
    divide_counts(features, left, right, rows(by_size(left, right).smaller), watch);
}

void SplitSearch::divide_counts(std::span<const std::uint32_t> features, const Segment& left,
                                const Segment& right, std::span<const std::uint32_t> some,
                                Watch& watch) const {
    const auto [smaller, larger] = by_size(left, right);
    const std::size_t n_counts = larger.counts == nullptr ? 0 : count_of(features, larger.size());
    const bool few_rows = some.size() < n_counts / kCountsARow;
    if (larger.counts == nullptr) {
        if (smaller.counts != nullptr) count(features, smaller.size(), some, smaller.counts);
    } else if (smaller.counts == nullptr || few_rows) {
        if (smaller.counts != nullptr) count(features, smaller.size(), some, smaller.counts);
        add_rows(features, larger.size(), some, larger.counts, ~0u);
    } else {
        count(features, std::max(left.size(), right.size()), some, smaller.counts);
        add_counts(features, larger.size(), smaller.counts, larger.counts, ~0u);
    }
    watch.worked(n_counts + features.size() * some.size());
}

bool SplitSearch::walk_is_long(std::span<const std::uint32_t> listed, const Segment& left,
                               const Segment& right) const {
    if (left.counts == nullptr && right.counts == nullptr) return false;
    const auto [smaller, larger] = by_size(left, right);
    const std::size_t n_counts = count_of(listed, larger.size());
    return n_counts > 0 && smaller.n_rows() >= std::max(kLongWalk, 4 * n_counts / kCountsARow);
}

void SplitSearch::count_rest(std::span<const std::uint32_t> features, const Segment& left,
                             const Segment& right, std::span<const std::uint32_t> rest,
                             std::uint32_t* counts) const {
    count(features, std::max(left.size(), right.size()), rest, counts);
}

void SplitSearch::merge_rest(std::span<const std::uint32_t> features, const Segment& left,
                             const Segment& right, const std::uint32_t* counts) const {
    const auto [smaller, larger] = by_size(left, right);
    if (smaller.counts != nullptr) add_counts(features, smaller.size(), counts, smaller.counts, 1);
    if (larger.counts != nullptr) add_counts(features, larger.size(), counts, larger.counts, ~0u);
}

// ---- counts of the features for which they pay with so many rows --------------------------------

template <typename Do>
void SplitSearch::each_counted(std::span<const std::uint32_t> features, std::size_t n_rows,
                               Do do_this) const {
    for (const std::uint32_t entry : features) {
        if (!pays(entry, n_rows)) continue;
        const Column& column = columns_.columns[entry & ~kCounted];
        do_this(column.counts_at, std::size_t{column.n_values} * columns_.n_classes);
    }
}

std::size_t SplitSearch::count_of(std::span<const std::uint32_t> features,
                                  std::size_t n_rows) const {
    std::size_t all = 0;
    each_counted(features, n_rows, [&](std::size_t, std::size_t n) { all += n; });
    return all;
}

void SplitSearch::count(std::span<const std::uint32_t> features, std::size_t n_rows,
                        std::span<const std::uint32_t> rows, std::uint32_t* counts) const {
    each_counted(features, n_rows,
                 [&](std::size_t at, std::size_t n) { std::fill_n(counts + at, n, 0u); });
    add_rows(features, n_rows, rows, counts, 1);
}

void SplitSearch::add_rows(std::span<const std::uint32_t> features, std::size_t n_rows,
                           std::span<const std::uint32_t> rows, std::uint32_t* counts,
                           std::uint32_t by) const {
    const CodedRows::Counted counted{columns_.classes.data(), columns_.times, by};
    bool any_listed = false;
    for (const std::uint32_t entry : features) {
        if (!pays(entry, n_rows)) continue;
        if (columns_.coded.is_listed(entry & ~kCounted)) {
            any_listed = true;
        } else {
            columns_.coded.count_ranked(entry & ~kCounted, rows, counted, counts);
        }
    }
    if (any_listed) columns_.coded.count_listed(rows, counted, counts);
}

void SplitSearch::add_counts(std::span<const std::uint32_t> features, std::size_t n_rows,
                             const std::uint32_t* from, std::uint32_t* to, std::uint32_t by) const {
    each_counted(features, n_rows, [&](std::size_t at, std::size_t n) {
        for (std::size_t c = at; c < at + n; ++c) to[c] += by * from[c];
    });
}

void SplitSearch::repeat_rows(Segment& segment) {
    columns_.repeat(columns_.rows.get() + segment.begin, segment.n_rows(), segment.size());
    segment.rows_end = segment.end;
    for (std::uint32_t& entry : open_features(segment)) entry |= kCounted;
}

// One list of a feature at a time: a segment is done with all that is below it before another one
// has the feature sorted. So these lists stay where they are at hand.
void SplitSearch::work_alone() {
    own_lists_.assign(columns_.columns.size(), {});
    if (columns_.counts_size == 0) return;
    std::size_t n_elements = 0;
    const auto each = [&](auto do_this) {
        for (std::size_t j = 0; j < columns_.columns.size(); ++j) {
            const Column& column = columns_.columns[j];
            if (column.counted && column.varies) do_this(j, columns_.longest_list(column));
        }
    };
    each([&](std::size_t, std::size_t n) { n_elements += n; });
    grow(own_, n_own_, capacity_for(n_elements));
    std::uint32_t* room = own_.get();
    each([&](std::size_t j, std::size_t n) {
        own_lists_[j].room = room;
        room += n;
    });
}

// Too few rows for counting: the rows in the order of their values, from here on down. False if
// there is one value only.
bool SplitSearch::to_sorted(std::uint32_t feature, const Segment& segment, Watch& watch) {
    const auto own = rows(segment);
    std::uint64_t differing = 0;
    for (std::size_t i = 0; i < own.size(); ++i) {
        keys_[i] = columns_.packing->code(columns_.records[own[i]], feature);
        differing |= keys_[i] ^ keys_[0];
        own_tags_[i] = static_cast<std::uint32_t>(i) << 1 | (columns_.tags[own[i]] & 1);
    }
    if (differing == 0) return false;
    sorter_.sort({keys_.get(), own.size()}, differing, {own_tags_.get(), own.size()}, watch);
    OwnList& own_list = own_lists_[feature];
    own_list.first = own_list.room;
    own_list.begin = segment.begin;
    std::uint32_t* const elements = list(feature, segment);
    sorter_.elements(elements);
    for (std::size_t i = 0; i < own.size(); ++i) {
        elements[i] = (elements[i] & ~kRow) | own[elements[i] & kRow];
    }
    if (columns_.times != nullptr) columns_.repeat(elements, own.size(), segment.size());
    return true;
}

}  // namespace evertree
