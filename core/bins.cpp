// SplitSearch, between loading and searching: features of many values, put into bins.

#include <algorithm>

#include "split.hpp"

namespace evertree {

namespace {

constexpr std::size_t kChunk = 1024;  // rows: they and their keys stay in the cache

}  // namespace

void SplitSearch::begin_bins(std::size_t g, Watch& watch) {
    BinGroup& group = columns_.bin_groups[g];
    if (group.done) return;
    const auto [begin, end, offset, form] = group.neighbours;
    const std::vector<const std::byte*>& records = columns_.some_records;
    const std::size_t n = records.size();
    wide::Column common[wide::kColumns];
    wide::gather_keys(records.data(), n, offset, form, end - begin, keys_.get(), common);
    for (std::uint32_t i = 0; i < n; ++i) own_tags_[i] = i << 1;
    for (std::size_t c = 0; c < end - begin; ++c) {
        if (!group.wanted[c]) continue;
        const std::span<const std::uint64_t> some(keys_.get() + c * n, n);
        wide::Column& keys = group.keys[c];
        keys.differing |= common[c].differing;
        group.first_keys[c] = some[0];
        sorter_.sort(some, std::max(keys.differing, std::uint64_t{1}), {own_tags_.get(), n}, watch);
        sorter_.elements(cuts_.get());
        sorted_keys_.resize(n);
        for (std::size_t i = 0; i < n; ++i) sorted_keys_[i] = some[cuts_[i] & kRow];
        const std::uint32_t feature = columns_.packing->order()[begin + c];
        group.bounds[c] = columns_.coded.begin_bins(feature, sorted_keys_, keys.differing);
    }
}

// A chunk of rows after the other, and of each all features.
void SplitSearch::find_bins(std::size_t begin_row, std::size_t end_row, Watch& watch) {
    const std::span<const BinGroup> groups = columns_.bin_groups;
    seen_keys_.resize(groups.size() * wide::kColumns);
    for (std::size_t row = begin_row; row < end_row; row += kChunk) {
        const std::size_t n = std::min(kChunk, end_row - row);
        for (std::size_t g = 0; g < groups.size(); ++g) {
            if (groups[g].done) continue;
            find_bins(groups[g], row, n, seen_keys_.data() + g * wide::kColumns);
            watch.worked(5 * n * (groups[g].neighbours.end - groups[g].neighbours.begin));
        }
    }
}

void SplitSearch::find_bins(const BinGroup& group, std::size_t row, std::size_t n,
                            wide::Column* seen) {
    const auto [begin, end, offset, form] = group.neighbours;
    wide::Column common[wide::kColumns];
    wide::gather_keys(columns_.records.get() + row, n, offset, form, end - begin, keys_.get(),
                      common);
    for (std::size_t c = 0; c < end - begin; ++c) {
        if (!group.wanted[c]) continue;
        const std::span<const std::uint64_t> keys(keys_.get() + c * n, n);
        seen[c].differing |= common[c].differing | (keys[0] ^ group.first_keys[c]);
        seen[c].largest = std::max(seen[c].largest, common[c].largest);
        const std::uint32_t feature = columns_.packing->order()[begin + c];
        columns_.coded.find_bins(feature, row, keys, group.bounds[c]);
    }
}

void SplitSearch::tell_seen() {
    for (std::size_t i = 0; i < seen_keys_.size(); ++i) {
        wide::Column& keys = columns_.bin_groups[i / wide::kColumns].keys[i % wide::kColumns];
        keys.differing |= seen_keys_[i].differing;
        keys.largest = std::max(keys.largest, seen_keys_[i].largest);
    }
    seen_keys_.clear();
}

}  // namespace evertree
