// Bins: features of many values, put into bins between loading and searching. Columns knows the
// groups of neighbouring features; each SplitSearch finds the bins of some of the rows.

#include <algorithm>

#include "split.hpp"

namespace evertree {

namespace {

constexpr std::size_t kBinFrom = 4096;  // rows
// Rows whose keys tell where bins begin; of many rows, more of them.
constexpr std::size_t kSample = 1024, kSampleMoreFrom = std::size_t{1} << 17;
constexpr std::size_t kChunk = 1024;  // rows: they and their keys stay in the cache

}  // namespace

// Two classes only: for more, what a cut within a bin may gain is not bounded well.
bool Columns::can_bin() const {
    return coding_ && n_all >= kBinFrom && n_classes == 2 &&
           columns.size() * wide::kBins * n_classes <= kMostCounts;
}

// Neighbours among the real features that are not counted yet; rows that tell where bins may begin.
void Columns::start_bins() {
    const std::size_t n_some = n < kSampleMoreFrom ? kSample : 4 * kSample;
    some_records.resize(n_some);
    for (std::size_t i = 0; i < n_some; ++i) some_records[i] = records[i * n / n_some];
    const auto wanted = [&](std::uint32_t j) {
        return !columns[j].counted && kinds[j] == Kind::real;
    };
    bin_groups.clear();
    each_neighbours(0, kinds.size(), wide::kColumns, wanted, [&](const Neighbours& neighbours) {
        BinGroup& group = bin_groups.emplace_back();
        group.neighbours = neighbours;
        for (std::size_t at = neighbours.begin; at < neighbours.end; ++at) {
            group.wanted[at - neighbours.begin] = wanted(packing->order()[at]);
        }
    });
}

// Those that have no missing value and are not constant.
bool Columns::settle_groups() {
    for (BinGroup& group : bin_groups) {
        if (group.done) continue;
        const auto [begin, end, offset, code_bytes] = group.neighbours;
        const auto can_be_binned = [&, missing = missing_code(code_bytes)](std::size_t c) {
            const wide::Column& keys = group.keys[c];
            return group.wanted[c] && keys.largest != missing && keys.differing != 0;
        };
        group.done = true;
        for (std::size_t c = 0; c < end - begin; ++c) {
            group.done &= !can_be_binned(c) || group.bounds[c].reach(group.keys[c].differing);
        }
        for (std::size_t c = 0; group.done && c < end - begin; ++c) {
            if (!can_be_binned(c)) continue;
            Column& column = columns[packing->order()[begin + c]];
            column.varies = column.counted = column.binned = true;
        }
    }
    return std::ranges::all_of(bin_groups, &BinGroup::done);
}

void Columns::settle_bins() {
    for (std::size_t j = 0; j < columns.size(); ++j) {
        Column& column = columns[j];
        if (!column.binned) continue;
        column.n_values = static_cast<std::uint32_t>(coded.keys(j).size());
        column.counts_at = static_cast<std::uint32_t>(counts_size);
        coded.set_first_place(j, column.counts_at, n_classes);
        counts_size += column.n_values * std::size_t{n_classes};
    }
}

void SplitSearch::begin_bins(std::size_t g, Watch& watch) {
    BinGroup& group = columns_.bin_groups[g];
    if (group.done) return;
    const auto [begin, end, offset, code_bytes] = group.neighbours;
    const std::vector<const std::byte*>& records = columns_.some_records;
    const std::size_t n = records.size();
    wide::Column common[wide::kColumns];
    wide::gather_keys(records.data(), n, offset, code_bytes, end - begin, keys_.get(), common);
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
    const auto [begin, end, offset, code_bytes] = group.neighbours;
    wide::Column common[wide::kColumns];
    wide::gather_keys(columns_.records.get() + row, n, offset, code_bytes, end - begin, keys_.get(),
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
