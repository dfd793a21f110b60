// SplitSearch, the first part: features, gathered and put into sorted or counted form.

#include <algorithm>

#include "split.hpp"

namespace evertree {

namespace {

constexpr std::size_t kFewColumnsFrom = std::size_t{1} << 17;  // rows, for the sake of memory
constexpr std::size_t kManyFeatures = 40;
constexpr std::size_t kManyBytes = 16;

}  // namespace

std::size_t SplitSearch::n_columns_at_once() const {
    const bool few = columns_.n >= kFewColumnsFrom && columns_.kinds.size() < kManyFeatures;
    return few ? wide::kColumns / 2 : wide::kColumns;
}

void SplitSearch::reserve() {
    const std::size_t n_features = columns_.kinds.size();
    const std::size_t n = capacity_for(columns_.n_all);
    // Where copies are merged, few rows are loaded as all that they stand for.
    const std::size_t n_few = std::min(columns_.n_all, wide::few::kMostRows);
    const std::size_t n_at_once = capacity_for(std::max(columns_.n, n_few)) * n_columns_at_once();
    const std::size_t n_keys = std::max(n, n_at_once);
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
    seen_keys_.clear();
    own_lists_.assign(n_features, {});
    if (lists_.size() < n_features) lists_.resize(n_features);
    if (glanced_.size() < n_features) glanced_.resize(n_features);
}

void SplitSearch::release() {
    n_reserved_ = n_own_ = 0;
    for (auto* scratch : {&own_, &spare_, &cuts_, &ones_left_, &own_tags_}) *scratch = {};
    release_sorting();
}

void SplitSearch::release_sorting() {
    n_keys_ = 0;
    keys_ = {};
    sorter_.release();
}

void SplitSearch::sort(std::size_t begin, std::size_t end, Watch& watch) {
    const RowSet all{columns_.records.get(), columns_.n};
    const auto wanted = [&](std::uint32_t feature) { return !columns_.columns[feature].counted; };
    load(all, begin, end, wanted, watch, [&](std::uint32_t feature, const Keys& keys) {
        Column& column = columns_.columns[feature];
        column.varies = keys.differing != 0;
        if (!column.varies) return;
        column.any_missing = keys.any_missing;
        sort(feature, keys, watch);
    });
}

bool SplitSearch::sort_few(std::span<const std::uint32_t> features, const FewLists& lists,
                           Watch& watch) {
    constexpr std::uint32_t none = 0xffffffff;
    const Packing& packing = *columns_.packing;
    list_of_.assign(columns_.kinds.size(), none);
    // Of many flags, most are the same in all rows: they need not be read one by one.
    const Packing::Group& bytes = packing.groups().back();
    const bool many_bytes = bytes.end - bytes.begin >= kManyBytes;
    differing_.assign(packing.record_bytes() + Packing::kSlack, std::byte{0xff});
    if (many_bytes) {
        wide::mark_differing(lists.records, lists.n, packing.record_bytes(), differing_.data());
    }
    for (std::uint32_t l = 0; l < features.size(); ++l) {
        if ((features[l] & kCounted) == 0) continue;
        const std::uint32_t feature = features[l] & ~kCounted;
        lists.varies[l] = packing.code(differing_.data(), feature) != 0 ? 1 : 0;
        if (lists.varies[l] != 0) list_of_[feature] = l;
    }
    bool any_missing = false;
    const auto wanted = [&](std::uint32_t feature) { return list_of_[feature] != none; };
    const RowSet rows{lists.records, lists.n};
    load(rows, 0, columns_.kinds.size(), wanted, watch,
         [&](std::uint32_t feature, const Keys& keys) {
             any_missing |= keys.any_missing;
             lists.varies[list_of_[feature]] = keys.differing != 0 ? 1 : 0;
             if (keys.differing == 0) return;
             sorter_.sort(keys.of_row, keys.differing, lists.tags, watch);
             sorter_.elements(lists.first + list_of_[feature] * lists.stride);
         });
    return !any_missing;
}

// The keys of those features that are wanted, neighbours together.
template <typename Wanted, typename Take>
void SplitSearch::load(const RowSet& rows, std::size_t begin, std::size_t end, Wanted wanted,
                       Watch& watch, Take take) {
    const std::span<const std::uint32_t> order = columns_.packing->order();
    columns_.each_neighbours(begin, end, n_columns_at_once(), wanted, [&](Neighbours neighbours) {
        const std::size_t n_columns = neighbours.end - neighbours.begin;
        wide::Column common[wide::kColumns];
        wide::gather_keys(rows.records, rows.n, neighbours.offset, neighbours.code_bytes, n_columns,
                          keys_.get(), common);
        watch.worked(rows.n * n_columns);
        for (std::size_t c = 0; c < n_columns; ++c) {
            const std::uint32_t feature = order[neighbours.begin + c];
            if (!wanted(feature)) continue;
            take(feature, Keys{{keys_.get() + c * rows.n, rows.n},
                               common[c].differing,
                               common[c].largest == missing_code(neighbours.code_bytes)});
        }
    });
}

void SplitSearch::sort(std::uint32_t feature, const Keys& keys, Watch& watch) {
    sorter_.sort(keys.of_row, keys.differing, {columns_.tags.get(), columns_.n}, watch);
    sorter_.elements(columns_.elements(feature));
    if (columns_.times != nullptr) {
        columns_.repeat(columns_.elements(feature), columns_.n, columns_.n_all);
    }
    watch.worked(2 * columns_.n_all);
}

// The whole set as a segment none of whose features is loaded: few rows are loaded where they are
// planned.
Segment SplitSearch::open_unloaded() {
    features_.clear();
    for (std::uint32_t j = 0; j < columns_.columns.size(); ++j) {
        columns_.columns[j].varies = columns_.columns[j].counted = true;
        features_.push_back(j | kCounted);
    }
    Segment whole;
    whole.end = whole.rows_end = static_cast<std::uint32_t>(columns_.n);
    whole.n_features = static_cast<std::uint32_t>(features_.size());
    return whole;
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
    whole.end = static_cast<std::uint32_t>(columns_.n_all);
    whole.rows_end = static_cast<std::uint32_t>(columns_.n);
    whole.n_features = static_cast<std::uint32_t>(features_.size());
    if (columns_.counts_size > 0) whole.counts = columns_.take_counts();
    return whole;
}

}  // namespace evertree
