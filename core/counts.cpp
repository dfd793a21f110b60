// SplitSearch, the part that searches counted features: values, categories, and bins of values.

#include <algorithm>

#include "cuts.hpp"

namespace evertree {

namespace {

constexpr std::size_t kRowsAhead = 16;  // a record lies anywhere in memory

}  // namespace

// The common value has what the listed ones leave.
void SplitSearch::count_common(std::uint32_t feature, const Segment& segment,
                               std::span<const ClassCount> counts) const {
    if (!columns_.coded.is_listed(feature)) return;
    const Column& column = columns_.columns[feature];
    const std::size_t n_classes = columns_.n_classes;
    std::uint32_t* const first = segment.counts + column.counts_at;
    std::uint32_t* const common = first + columns_.coded.common_rank(feature) * n_classes;
    std::fill_n(common, n_classes, 0u);
    // Some classes at a time: their sums stay in registers.
    constexpr std::size_t few = 16;
    std::uint32_t listed[few];
    for (std::size_t begin = 0, next = 0; begin < n_classes; begin += few) {
        const std::size_t n = std::min(n_classes - begin, few);
        std::fill_n(listed, few, 0u);
        for (std::size_t rank = 0; rank < column.n_values; ++rank) {
            const std::uint32_t* const group = first + rank * n_classes + begin;
            for (std::size_t c = 0; c < n; ++c) listed[c] += group[c];
        }
        for (; next < counts.size() && counts[next].label < begin + n; ++next) {
            common[counts[next].label] = counts[next].count - listed[counts[next].label - begin];
        }
    }
}

template <typename Cut>
bool SplitSearch::search_counted(Search<Cut>& search) const {
    const Column& column = columns_.columns[search.feature];
    const std::uint32_t* const counts = search.segment.counts + column.counts_at;
    count_common(search.feature, search.segment, search.cut.counts);
    const std::uint32_t n_present = column.n_values - (column.any_missing ? 1u : 0u);
    Cut &cut = search.cut, &cut_missing_left = search.cut_missing_left;
    const auto group_of = [&](std::uint32_t rank) {
        return cut.group(counts + std::size_t{rank} * columns_.n_classes);
    };
    cut.reset();
    const bool any_missing = column.any_missing && !cut.is_empty(group_of(n_present));
    if (any_missing) {
        cut_missing_left.reset();
        cut_missing_left.move(group_of(n_present));
    }
    constexpr std::uint32_t none = 0xffffffff;
    std::uint32_t last = none;
    bool varies = false;
    for (std::uint32_t rank = 0; rank < n_present; ++rank) {
        const auto group = group_of(rank);
        if (cut.is_empty(group)) continue;
        if (last != none) {
            varies = true;
            if (any_missing) search.look(cut_missing_left, true, 0, rank, last);
            search.look(cut, !any_missing && 2 * cut.left >= cut.size, 0, rank, last);
        }
        cut.move(group);
        if (any_missing) cut_missing_left.move(group);
        last = rank;
    }
    if (!any_missing || last == none) return varies;
    search.look(cut, false, 0, n_present, last);
    return true;
}

template <typename Cut>
bool SplitSearch::search_counted_categories(Search<Cut>& search) const {
    const Column& column = columns_.columns[search.feature];
    const std::uint32_t* const counts = search.segment.counts + column.counts_at;
    count_common(search.feature, search.segment, search.cut.counts);
    Cut& cut = search.cut;
    cut.reset();
    for (std::uint32_t rank = 0; rank < column.n_values; ++rank) {
        const auto group = cut.group(counts + std::size_t{rank} * columns_.n_classes);
        if (cut.is_empty(group)) continue;
        cut.move(group);
        if (cut.left == cut.size) return false;
        const bool missing = column.any_missing && rank + 1 == column.n_values;
        search.look(cut, missing, rank, rank + 1, rank);
        cut.move_back(group);
    }
    return true;
}

template bool SplitSearch::search_counted(Search<TwoClassCut>&) const;
template bool SplitSearch::search_counted(Search<ManyClassCut>&) const;
template bool SplitSearch::search_counted_categories(Search<TwoClassCut>&) const;
template bool SplitSearch::search_counted_categories(Search<ManyClassCut>&) const;

// ---- two classes, many values at a time ---------------------------------------------------------

// Real values, none of them missing.
bool SplitSearch::can_glance_at_counts(const Search<TwoClassCut>& search,
                                       std::uint32_t entry) const {
    if (entry == kDropped || !pays(entry, search.segment.size())) return false;
    const std::uint32_t feature = entry & ~kCounted;
    return columns_.kinds[feature] == Kind::real && !columns_.columns[feature].any_missing;
}

void SplitSearch::glance_at_counts(std::span<const std::uint32_t> features,
                                   Search<TwoClassCut>& search) {
    counted_scores_.resize(features.size());
    float best = -1.0f;
    for (std::size_t i = 0; i < features.size(); ++i) {
        if (!can_glance_at_counts(search, features[i])) continue;
        const std::uint32_t feature = features[i] & ~kCounted;
        count_common(feature, search.segment, search.cut.counts);
        counted_scores_[i] = wide::score_counts(counted_rows(search, feature), nullptr, nullptr);
        best = std::max(best, counted_scores_[i].cut);
    }
    if (best >= 0.0f) {
        search.to_reach = std::max<double>(search.to_reach, best - doubt(search.segment));
    }
}

wide::CountedRows SplitSearch::counted_rows(const Search<TwoClassCut>& search,
                                            std::uint32_t feature) const {
    const Column& column = columns_.columns[feature];
    return {search.segment.size(), search.cut.ones, search.segment.counts + column.counts_at,
            column.n_values, column.binned ? columns_.coded.several(feature).data() : nullptr};
}

// Cuts between values, and within those bins where one may be the best.
bool SplitSearch::search_glanced_counts(Search<TwoClassCut>& search, std::uint32_t entry,
                                        const wide::CountScores& glanced, Watch& watch) {
    search.feature = entry & ~kCounted;
    search.counted = true;
    if (glanced.cut < 0.0f && glanced.within < 0.0f) return false;
    if (!reaches(search, std::max(glanced.cut, glanced.within))) return true;
    const wide::CountedRows rows = counted_rows(search, search.feature);
    cut_scores_.resize(rows.n_values);
    within_scores_.resize(rows.n_values);
    wide::score_counts(rows, cut_scores_.data(), within_scores_.data());
    const bool look_within = search.share.n_parts > 0 && reaches(search, glanced.within) &&
                             choose_bins(search, rows) && sort_bins(search, watch);
    const std::uint32_t* inside = ones_left_.get();  // elements of the bins that are looked at
    TwoClassCut& cut = search.cut;
    cut.reset();
    std::uint32_t last = 0;
    for (std::uint32_t rank = 0; rank < rows.n_values; ++rank) {
        const std::uint32_t* const group = rows.counts + 2 * std::size_t{rank};
        if (cut.is_empty(group)) continue;
        if (cut.left > 0 && reaches(search, cut_scores_[last])) {
            search.look(cut, 2 * cut.left >= cut.size, 0, rank, last);
        }
        if (look_within && looked_at_[rank] != 0) {
            if (reaches(search, within_scores_[rank])) search_bin(search, rank, inside);
            inside += group[0] + group[1];
        }
        cut.move(group);
        last = rank;
    }
    return true;
}

// A score below zero is that of no cut; without bins, there is none within them.
bool SplitSearch::reaches(const Search<TwoClassCut>& search, float score) {
    const float to_reach = static_cast<float>(search.to_reach) - doubt(search.segment);
    return score >= std::max(to_reach, 0.0f);
}

// The bins to be looked at, as far as they are this worker's; false if there is none.
bool SplitSearch::choose_bins(const Search<TwoClassCut>& search, const wide::CountedRows& rows) {
    const auto n_in = [&](std::size_t rank) {
        return reaches(search, within_scores_[rank])
                   ? std::uint64_t{rows.counts[2 * rank]} + rows.counts[2 * rank + 1]
                   : 0;
    };
    std::uint64_t n_all = 0, n_before = 0;
    for (std::size_t rank = 0; rank < rows.n_values; ++rank) n_all += n_in(rank);
    bool any = false;
    looked_at_.assign(rows.n_values, 0);
    for (std::size_t rank = 0; rank < rows.n_values; ++rank) {
        const std::uint64_t n = n_in(rank);
        const bool own = n > 0 && n_before * search.share.n_parts / n_all == search.share.part;
        looked_at_[rank] = own ? 1 : 0;
        any |= own;
        n_before += n;
    }
    return any;
}

// The rows of those bins, in the order of their keys, as elements in ones_left_; false if all keys
// are equal.
bool SplitSearch::sort_bins(const Search<TwoClassCut>& search, Watch& watch) {
    const std::uint16_t* const ranks = columns_.coded.ranks_of(search.feature);
    std::size_t n = 0;
    for (const std::uint32_t row : rows(search.segment)) {
        spare_[n] = row;
        n += looked_at_[ranks[row]];
    }
    if (columns_.times != nullptr) {
        std::size_t n_all = 0;
        for (std::size_t i = 0; i < n; ++i) n_all += columns_.times[spare_[i]];
        columns_.repeat(spare_.get(), n, n_all);
        n = n_all;
    }
    std::uint64_t differing = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const std::uint32_t row = spare_[i], soon = spare_[std::min(i + kRowsAhead, n - 1)];
        __builtin_prefetch(columns_.records[soon] + columns_.packing->offset(search.feature));
        keys_[i] = columns_.packing->code(columns_.records[row], search.feature);
        own_tags_[i] = static_cast<std::uint32_t>(i) << 1 | columns_.classes[row];
        differing |= keys_[i] ^ keys_[0];
    }
    watch.worked(search.segment.size());
    if (differing == 0) return false;
    sorter_.sort({keys_.get(), n}, differing, {own_tags_.get(), n}, watch);
    sorter_.elements(ones_left_.get());
    return true;
}

// The cuts within one bin, of which these are the rows, as elements of the keys at hand.
void SplitSearch::search_bin(Search<TwoClassCut>& search, std::uint32_t rank,
                             const std::uint32_t* element) const {
    TwoClassCut cut = search.cut;
    const std::uint32_t* const group =
        search.segment.counts + columns_.columns[search.feature].counts_at + 2 * rank;
    const std::uint32_t n = group[0] + group[1];
    for (std::uint32_t i = 0; i + 1 < n; ++i) {
        cut.move(TwoClassCut::class_of(element[i], nullptr));
        if ((element[i + 1] & kNewValue) == 0 || cut.score() < search.to_reach) continue;
        if (!search.consider(cut, 2 * cut.left >= cut.size, 0, rank, rank)) continue;
        search.best.within = true;
        search.best.last_key = keys_[element[i] & kRow];
        search.best.next_key = keys_[element[i + 1] & kRow];
    }
}

// Which keys are on both sides of a cut between bins, nobody knows yet.
void SplitSearch::find_keys(Candidate& best, const Segment& segment) const {
    const std::uint32_t feature = best.split.feature;
    const std::uint16_t* const ranks = columns_.coded.ranks_of(feature);
    best.last_key = 0;
    best.next_key = ~std::uint64_t{0};
    for (const std::uint32_t row : rows(segment)) {
        if (ranks[row] != best.last_left && ranks[row] != best.left_end) continue;
        const std::uint64_t key = columns_.packing->code(columns_.records[row], feature);
        if (ranks[row] == best.last_left) {
            best.last_key = std::max(best.last_key, key);
        } else {
            best.next_key = std::min(best.next_key, key);
        }
    }
}

}  // namespace evertree
