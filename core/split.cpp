#include <algorithm>
#include <cmath>

#include "cuts.hpp"

namespace evertree {

double midpoint(double low, double high) {
    double middle = (low + high) / 2;
    if (!std::isfinite(middle)) middle = low / 2 + high / 2;
    return (middle < high ? middle : low) + 0.0;  // never -0.0
}

// The rounding of scores in single precision, several times over.
float SplitSearch::doubt(const Segment& segment) {
    return 2e-6f * static_cast<float>(segment.size());
}

Candidate SplitSearch::best(Segment& segment, std::span<const ClassCount> counts, Watch& watch) {
    Candidate best = best_of(open_features(segment), segment, counts, -1.0, {}, watch);
    close_features(segment);
    set_value(best, segment);
    return best;
}

std::size_t SplitSearch::cost(std::uint32_t entry, const Segment& segment) const {
    if (!pays(entry, segment.size())) return segment.size();
    return std::size_t{columns_.columns[entry & ~kCounted].n_values} * columns_.n_classes;
}

// A list of its own for the segment: so far it shares one with the other side of its parent.
std::span<std::uint32_t> SplitSearch::open_features(Segment& segment) {
    // Segments are searched last in, first out: behind this one's list there is nothing alive.
    const std::uint32_t from = segment.features_at, n = segment.n_features;
    features_.resize(from + 2 * n);
    std::copy_n(features_.data() + from, n, features_.data() + from + n);
    segment.features_at = from + n;
    return features(segment);
}

void SplitSearch::close_features(Segment& segment) {
    const std::span<std::uint32_t> list = features(segment);
    const auto end = std::remove(list.begin(), list.end(), kDropped);
    segment.n_features = static_cast<std::uint32_t>(end - list.begin());
    features_.resize(segment.features_at + segment.n_features);
}

void SplitSearch::set_features(Segment& segment, std::span<const std::uint32_t> features) {
    features_.assign(features.begin(), features.end());
    segment.features_at = 0;
    segment.n_features = static_cast<std::uint32_t>(features.size());
}

SplitSearch::TwoClassCut SplitSearch::cut_of(const Segment& segment,
                                             std::span<const ClassCount> counts) {
    const std::uint32_t ones = counts[0].label == 1 ? counts[0].count
                               : counts.size() == 2 ? counts[1].count
                                                    : 0;
    return {counts, segment.size(), ones};
}

SplitSearch::Glance SplitSearch::first_glance(std::span<const std::uint32_t> features,
                                              const Segment& segment,
                                              std::span<const ClassCount> counts) {
    if (columns_.n_classes != 2) return {};
    const TwoClassCut cut = cut_of(segment, counts);
    Search<TwoClassCut> search{segment, cut, cut, {}};
    glance_at_counts(features, search);
    Glance glance{search.to_reach, {}};
    for (std::size_t i = 0; i < features.size(); ++i) {
        if (!can_glance_at_counts(search, features[i])) continue;
        if (reaches(search, counted_scores_[i].within)) glance.within.push_back(features[i]);
    }
    return glance;
}

Candidate SplitSearch::best_of(std::span<std::uint32_t> features, const Segment& segment,
                               std::span<const ClassCount> counts, double to_reach, BinShare share,
                               Watch& watch) {
    if (columns_.n_classes == 2) {
        const TwoClassCut cut = cut_of(segment, counts);
        Search<TwoClassCut> found{segment, cut, cut, {}, to_reach, share};
        search(features, found, watch);
        return found.best;
    }
    const std::size_t k = columns_.n_classes;
    if (many_.size() < 4 * k) many_.resize(4 * k);
    std::uint32_t* const m = many_.data();
    ManyClassCut cut{counts, segment.size(), columns_.n_classes, m, m + k};
    ManyClassCut cut_missing_left = cut;
    cut_missing_left.left_counts = m + 2 * k;
    cut_missing_left.right_counts = m + 3 * k;
    Search<ManyClassCut> found{segment, cut, cut_missing_left, {}};
    search(features, found, watch);
    return found.best;
}

template <typename Cut>
void SplitSearch::search(std::span<std::uint32_t> features, Search<Cut>& search, Watch& watch) {
    for (std::uint32_t& entry : features) sort_if_few(entry, search.segment, watch);
    const bool glancing = can_glance(search);
    if (glancing) glance(features, search);
    glance_at_counts(features, search);
    watch.worked(features.size() * search.segment.size());
    std::size_t n_glanced = 0;
    for (std::size_t i = 0; i < features.size(); ++i) {
        // Nothing beats a split that leaves no mass, a tie would lose, and both sides are leaves.
        if (search.best.found && mass(search.best.sides) == 0.0) return;
        if (features[i] == kDropped) continue;
        bool varies = false;
        if (can_glance_at_counts(search, features[i])) {
            varies = search_glanced_counts(search, features[i], counted_scores_[i], watch);
        } else {
            const float* const glanced =
                glancing && can_glance(features[i]) ? &glanced_[n_glanced++] : nullptr;
            varies = search_feature(features[i], search, glanced);
        }
        if (!varies) features[i] = kDropped;
    }
}

// A feature that no longer has enough rows for counting is sorted.
void SplitSearch::sort_if_few(std::uint32_t& entry, const Segment& segment, Watch& watch) {
    if ((entry & kCounted) == 0) return;
    if (columns_.counting_pays(columns_.columns[entry & ~kCounted], segment.size())) return;
    entry &= ~kCounted;
    if (!to_sorted(entry, segment, watch)) entry = kDropped;
}

// Before any exact look: the best rough score of all features says which deserve one at all.
template <typename Cut>
void SplitSearch::glance(std::span<const std::uint32_t> features, Search<Cut>& search) {
    std::size_t n_lists = 0;
    for (const std::uint32_t entry : features) {
        if (!can_glance(entry)) continue;
        lists_[n_lists++] = list(entry, search.segment);
    }
    if (n_lists == 0) return;
    wide::best_scores(rows_of(search), lists_.data(), n_lists, glanced_.data());
    const float best = *std::max_element(glanced_.data(), glanced_.data() + n_lists);
    if (best >= 0.0f) {
        search.to_reach = std::max<double>(search.to_reach, best - doubt(search.segment));
    }
}

bool SplitSearch::can_glance(const Search<TwoClassCut>&) { return true; }

bool SplitSearch::can_glance(const Search<ManyClassCut>& search) {
    return search.cut.counts.size() <= wide::ManyClassRows::kMostClasses;
}

// Sorted values, none of them missing.
bool SplitSearch::can_glance(std::uint32_t entry) const {
    return (entry & kCounted) == 0 && columns_.kinds[entry] == Kind::real &&
           !columns_.columns[entry].any_missing;
}

template <typename Cut>
bool SplitSearch::search_feature(std::uint32_t entry, Search<Cut>& search, const float* glanced) {
    search.feature = entry & ~kCounted;
    search.counted = (entry & kCounted) != 0;
    if (glanced != nullptr) return search_glanced(search, *glanced);
    const bool categorical = columns_.kinds[search.feature] == Kind::categorical;
    if (search.counted) {
        return categorical ? search_counted_categories(search) : search_counted(search);
    }
    return categorical ? search_sorted_categories(search) : search_sorted(search);
}

// Each search answers whether the feature varies at all.
template <typename Cut>
bool SplitSearch::search_sorted(Search<Cut>& search) {
    const std::uint32_t present_end = missing_begin(search.feature, search.segment);
    search.cut.reset();
    if (present_end == search.segment.size()) return search_sorted_present(search);
    if (present_end == 0) return false;
    return search_sorted_missing(search, present_end);
}

bool SplitSearch::search_sorted_present(Search<ManyClassCut>& search) {
    const std::uint32_t n = search.segment.size();
    const std::uint32_t* const element = list(search.feature, search.segment);
    ManyClassCut& cut = search.cut;
    bool varies = false;
    for (std::uint32_t i = 0; i + 1 < n; ++i) {
        cut.move(columns_.classes[element[i] & kRow]);
        if ((element[i + 1] & kNewValue) == 0) continue;
        varies = true;
        search.look(cut, 2 * cut.left >= cut.size, 0, i + 1, i);
    }
    return varies;
}

bool SplitSearch::search_sorted_present(Search<TwoClassCut>& search) {
    const std::uint32_t* const elements = list(search.feature, search.segment);
    float glanced;
    wide::best_scores(rows_of(search), &elements, 1, &glanced);
    return search_glanced(search, glanced);
}

// Most cuts are far from the best, as single precision can tell; the rest is looked at properly.
bool SplitSearch::search_glanced(Search<TwoClassCut>& search, float glanced) {
    const std::uint32_t n = search.segment.size();
    const float to_reach = static_cast<float>(search.to_reach) - doubt(search.segment);
    if (glanced < 0.0f) return false;
    if (glanced < to_reach) return true;
    const std::uint32_t n_cuts = wide::cuts_that_reach(
        rows_of(search), list(search.feature, search.segment),
        std::max(to_reach, glanced - doubt(search.segment)), cuts_.get(), ones_left_.get());
    for (std::uint32_t c = 0; c < n_cuts; ++c) {
        const std::uint32_t i = cuts_[c];
        search.cut.left = i + 1;
        search.cut.left_ones = ones_left_[c];
        search.look(search.cut, 2 * (i + 1) >= n, 0, i + 1, i);
    }
    return true;
}

bool SplitSearch::search_glanced(Search<ManyClassCut>& search, float glanced) {
    if (glanced < 0.0f) return false;
    if (glanced < static_cast<float>(search.to_reach) - doubt(search.segment)) return true;
    search.cut.reset();
    return search_sorted_present(search);
}

wide::TwoClassRows SplitSearch::rows_of(const Search<TwoClassCut>& search) const {
    const std::uint32_t n = search.segment.size();
    return {n, search.cut.ones, columns_.rough_inverse.get() + 1,
            columns_.rough_inverse_back.get() + (columns_.n_inverses - n)};
}

wide::ManyClassRows SplitSearch::rows_of(const Search<ManyClassCut>& search) const {
    const std::uint32_t n = search.segment.size();
    wide::ManyClassRows rows{n,
                             columns_.classes.data(),
                             0,
                             {},
                             {},
                             columns_.rough_inverse.get() + 1,
                             columns_.rough_inverse_back.get() + (columns_.n_inverses - n)};
    for (const ClassCount& c : search.cut.counts) {
        rows.classes[rows.n_classes] = c.label;
        rows.totals[rows.n_classes++] = static_cast<float>(c.count);
    }
    return rows;
}

template <typename Cut>
bool SplitSearch::search_sorted_missing(Search<Cut>& search, std::uint32_t present_end) const {
    const std::uint32_t n = search.segment.size();
    const std::uint32_t* const element = list(search.feature, search.segment);
    Cut &cut = search.cut, &cut_missing_left = search.cut_missing_left;
    cut_missing_left.reset();
    for (std::uint32_t i = present_end; i < n; ++i) {
        cut_missing_left.move(Cut::class_of(element[i], columns_.classes.data()));
    }
    for (std::uint32_t i = 0; i < present_end; ++i) {
        const std::uint32_t label = Cut::class_of(element[i], columns_.classes.data());
        cut.move(label);
        cut_missing_left.move(label);
        if ((element[i + 1] & kNewValue) == 0) continue;
        // Behind the largest value only the missing remain, and they must go right.
        if (i + 1 < present_end) search.look(cut_missing_left, true, 0, i + 1, i);
        search.look(cut, false, 0, i + 1, i);
    }
    return true;
}

template <typename Cut>
bool SplitSearch::search_sorted_categories(Search<Cut>& search) const {
    const std::uint32_t n = search.segment.size();
    const std::uint32_t* const element = list(search.feature, search.segment);
    Cut& cut = search.cut;
    cut.reset();
    for (std::uint32_t group = 0, next; group < n; group = next) {
        next = group;
        do {
            cut.move(Cut::class_of(element[next], columns_.classes.data()));
            ++next;
        } while (next < n && (element[next] & kNewValue) == 0);
        if (next - group == n) return false;
        const bool missing = next == n && is_missing_at(search.feature, search.segment, group);
        search.look(cut, missing, group, next, group);
        for (std::uint32_t i = group; i < next; ++i) {
            cut.move_back(Cut::class_of(element[i], columns_.classes.data()));
        }
    }
    return true;
}

void SplitSearch::set_value(Candidate& best, const Segment& segment) const {
    if (!best.found) return;
    Split& split = best.split;
    split.kind = columns_.kinds[split.feature];
    if (best.counted && columns_.columns[split.feature].binned) {
        if (!best.within) find_keys(best, segment);
        const Form form = columns_.packing->form(split.feature);
        split.value = midpoint(value_of(best.last_key, form), value_of(best.next_key, form));
        return;
    }
    const auto value = [&](std::uint32_t at) {
        return best.counted ? columns_.columns[split.feature].values[at]
                            : value_at(split.feature, segment, at);
    };
    split.value = value(best.last_left);
    if (split.kind == Kind::categorical) return;
    const double next = value(best.left_end);
    if (!is_missing(next)) split.value = midpoint(split.value, next);
}

}  // namespace evertree
