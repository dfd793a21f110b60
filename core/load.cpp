// SplitSearch, the first part: features, gathered and put into sorted or counted form.

#include <algorithm>

#include "split.hpp"

namespace evertree {

namespace {

// From so many rows a value and class on, counting pays, with a change of form later on. Sorted
// rows of two classes are searched many at a time, so it pays later there.
std::size_t rows_to_count(std::size_t n_classes) { return n_classes == 2 ? 128 : 2; }
constexpr std::size_t kCountFrom = 8;      // values: below, it is not worth trying
constexpr std::size_t kCodedAtOnce = 256;  // rows that stay in the cache
constexpr std::size_t kFewColumnsFrom = std::size_t{1} << 17;  // rows, for the sake of memory
constexpr std::size_t kManyFeatures = 40;

// Rows lie anywhere in memory: all of their lines are asked for before any is waited for.
void fetch(const double* const* rows, std::size_t n, std::size_t begin, std::size_t end) {
    for (std::size_t row = 0; row < n; ++row) {
        for (std::size_t j = begin; j < end; j += wide::kColumns) {
            __builtin_prefetch(rows[row] + j);
        }
        __builtin_prefetch(rows[row] + end - 1);
    }
}

}  // namespace

std::size_t SplitSearch::n_columns_at_once() const {
    const bool few = columns_.n >= kFewColumnsFrom && columns_.kinds.size() < kManyFeatures;
    return few ? wide::kColumns / 2 : wide::kColumns;
}

void SplitSearch::reserve() {
    const std::size_t n_features = columns_.kinds.size();
    const std::size_t n = capacity_for(columns_.n);
    const std::size_t n_keys = n * n_columns_at_once();
    if (n_reserved_ < n) {
        n_reserved_ = 0;
        spare_ = Buffer<std::uint32_t>(n + wide::kPadding);
        cuts_ = Buffer<std::uint32_t>(n);
        ones_left_ = Buffer<std::uint32_t>(n);
        own_tags_ = Buffer<std::uint32_t>(n);
        n_reserved_ = n;
    }
    if (n_keys_ < n_keys) {
        n_keys_ = 0;
        keys_ = Buffer<std::uint64_t>(n_keys);
        n_keys_ = n_keys;
    }
    if (lists_.size() < n_features) lists_.resize(n_features);
    if (glanced_.size() < n_features) glanced_.resize(n_features);
}

void SplitSearch::release() {
    n_reserved_ = n_keys_ = 0;
    for (auto* scratch : {&spare_, &cuts_, &ones_left_, &own_tags_}) *scratch = {};
    keys_ = {};
    codes_ = {};
    sorter_.release();
}

void SplitSearch::sort(std::size_t begin, std::size_t end, Watch& watch) {
    const std::size_t at_once = n_columns_at_once();
    for (std::size_t first = begin; first < end; first += at_once) {
        sort_neighbours(first, std::min(first + at_once, end), watch);
    }
}

void SplitSearch::sort_neighbours(std::size_t begin, std::size_t end, Watch& watch) {
    const std::size_t n = columns_.n;
    const auto is_counted = [&](std::size_t feature) { return columns_.columns[feature].counted; };
    while (begin < end && is_counted(begin)) ++begin;
    while (begin < end && is_counted(end - 1)) --end;
    if (begin == end) return;
    wide::Column common[wide::kColumns];
    wide::gather_keys(columns_.x.get(), n, begin, end - begin, keys_.get(), common);
    watch.worked(n * (end - begin));
    for (std::size_t feature = begin; feature < end; ++feature) {
        if (is_counted(feature)) continue;
        Column& column = columns_.columns[feature];
        const wide::Column& keys = common[feature - begin];
        column.varies = keys.differing != 0;
        if (!column.varies) continue;
        column.any_missing = is_missing(value_of_key(keys.largest));
        sorter_.sort({keys_.get() + (feature - begin) * n, n}, keys.differing, columns_.tags.get(),
                     columns_.tag_bits(), watch);
        sorter_.elements(columns_.elements(feature));
        watch.worked(2 * n);
    }
}

// Numbers the values of the features that have few of them: a block of rows at a time, so that each
// row comes from memory once.
void SplitSearch::code(std::size_t begin, std::size_t end, Watch& watch) {
    const std::size_t n = columns_.n;
    const std::size_t most = n / columns_.n_classes / rows_to_count(columns_.n_classes);
    if (most < kCountFrom) return;
    if (codes_.size() < columns_.columns.size()) codes_.resize(columns_.columns.size());
    for (std::size_t j = begin; j < end; ++j) codes_[j].start(most);
    const auto given_up = [](const KeyCodes& codes) { return codes.given_up(); };
    const auto first_codes = codes_.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last_codes = codes_.begin() + static_cast<std::ptrdiff_t>(end);
    for (std::size_t at = 0; at < n; at += kCodedAtOnce) {
        if (std::all_of(first_codes, last_codes, given_up)) return;
        const std::size_t size = std::min(n - at, kCodedAtOnce);
        const double* const* const x = columns_.x.get() + at;
        fetch(x, size, begin, end);
        for (std::size_t first = begin; first < end; first += wide::kColumns) {
            code_block(at, size, first, std::min(first + wide::kColumns, end));
        }
        watch.worked(2 * size * (end - begin));
    }
    for (std::size_t j = begin; j < end; ++j) {
        if (!codes_[j].given_up()) load_counted(j, codes_[j]);
    }
}

void SplitSearch::code_block(std::size_t at, std::size_t size, std::size_t begin, std::size_t end) {
    const auto own = codes_.begin() + static_cast<std::ptrdiff_t>(begin);
    if (std::all_of(own, own + static_cast<std::ptrdiff_t>(end - begin),
                    [](const KeyCodes& codes) { return codes.given_up(); })) {
        return;
    }
    wide::Column common[wide::kColumns];
    wide::gather_keys(columns_.x.get() + at, size, begin, end - begin, keys_.get(), common);
    for (std::size_t j = begin; j < end; ++j) {
        if (codes_[j].given_up()) continue;
        codes_[j].add({keys_.get() + (j - begin) * size, size}, columns_.ranks(j) + at);
    }
}

void SplitSearch::load_counted(std::size_t feature, KeyCodes& codes) {
    Column& column = columns_.columns[feature];
    column.counted = true;
    column.varies = codes.size() > 1;
    if (!column.varies) return;
    codes.to_ranks({columns_.ranks(feature), columns_.n});
    column.n_values = static_cast<std::uint32_t>(codes.size());
    column.any_missing = is_missing(value_of_key(codes.keys().back()));
    column.values.clear();
    for (const std::uint64_t key : codes.keys()) column.values.push_back(value_of_key(key));
}

// The whole set as a segment, once all features are loaded.
Segment SplitSearch::open() {
    features_.clear();
    for (std::uint32_t j = 0; j < columns_.columns.size(); ++j) {
        Column& column = columns_.columns[j];
        if (!column.varies) continue;
        features_.push_back(column.counted ? j | kCounted : j);
        if (!column.counted) continue;
        column.counts_at = static_cast<std::uint32_t>(columns_.counts_size);
        columns_.counts_size += std::size_t{column.n_values} * columns_.n_classes;
    }
    Segment whole;
    whole.end = static_cast<std::uint32_t>(columns_.n);
    whole.n_features = static_cast<std::uint32_t>(features_.size());
    if (columns_.counts_size > 0) whole.counts = columns_.take_counts();
    return whole;
}

void SplitSearch::count_whole(const Segment& whole, std::uint32_t entry, Watch& watch) const {
    if ((entry & kCounted) == 0) return;
    count(entry & ~kCounted, whole, whole.counts + columns_.columns[entry & ~kCounted].counts_at);
    watch.worked(columns_.n);
}

}  // namespace evertree
