// SplitSearch, the first part: features, gathered and put into sorted or counted form.

#include <algorithm>

#include "split.hpp"

namespace evertree {

namespace {

constexpr std::size_t kFewColumnsFrom = std::size_t{1} << 17;  // rows, for the sake of memory
constexpr std::size_t kManyFeatures = 40;

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
    n_reserved_ = 0;
    for (auto* scratch : {&spare_, &cuts_, &ones_left_, &own_tags_}) *scratch = {};
    release_sorting();
}

void SplitSearch::release_sorting() {
    n_keys_ = 0;
    keys_ = {};
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

// The whole set as a segment, once all features are loaded.
Segment SplitSearch::open() {
    features_.clear();
    for (std::uint32_t j = 0; j < columns_.columns.size(); ++j) {
        const Column& column = columns_.columns[j];
        if (column.varies) features_.push_back(column.counted ? j | kCounted : j);
    }
    columns_.make_inverses();
    Segment whole;
    whole.end = static_cast<std::uint32_t>(columns_.n);
    whole.n_features = static_cast<std::uint32_t>(features_.size());
    if (columns_.counts_size > 0) whole.counts = columns_.take_counts();
    return whole;
}

}  // namespace evertree
