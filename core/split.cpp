#include "split.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>

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

// A cut holds the two sides of a split while values move from right to left. Its score ranks the
// splits of one set; scores closer than the doubt are compared exactly.
struct SplitSearch::TwoClassCut {
    std::span<const ClassCount> counts;
    std::uint32_t size, ones;
    std::uint32_t left = 0, left_ones = 0;

    void reset() { left = left_ones = 0; }
    static std::uint32_t class_of(std::uint32_t element, const std::uint32_t*) {
        return (element >> 30) & 1;
    }
    void move(std::uint32_t label) {
        ++left;
        left_ones += label;
    }
    void move_back(std::uint32_t label) {
        --left;
        left_ones -= label;
    }
    bool is_empty(const std::uint32_t* group) const { return (group[0] | group[1]) == 0; }
    void move(const std::uint32_t* group) {
        left += group[0] + group[1];
        left_ones += group[1];
    }
    void move_back(const std::uint32_t* group) {
        left -= group[0] + group[1];
        left_ones -= group[1];
    }
    // mass = 2 * (ones - score)
    double score() const {
        const double on_left = left_ones, on_right = ones - left_ones;
        return on_left * on_left / left + on_right * on_right / (size - left);
    }
    double score_to_reach(const Sides& best) const {
        return (purity(best) - size) / 2 + ones - 1e-12 * size;
    }
    Sides sides() const {
        const auto tally = [](std::uint64_t n, std::uint64_t n_ones) {
            return Tally{n, n_ones * n_ones + (n - n_ones) * (n - n_ones)};
        };
        return {tally(left, left_ones), tally(size - left, ones - left_ones)};
    }
};

struct SplitSearch::ManyClassCut {
    std::span<const ClassCount> counts;
    std::uint32_t size;
    std::uint32_t n_classes;
    std::uint32_t *left_counts, *right_counts;
    std::uint32_t left = 0;
    std::uint64_t left_squares = 0, right_squares = 0;

    void reset() {
        left = 0;
        left_squares = right_squares = 0;
        for (const ClassCount& c : counts) {
            left_counts[c.label] = 0;
            right_counts[c.label] = c.count;
            right_squares += std::uint64_t{c.count} * c.count;
        }
    }
    static std::uint32_t class_of(std::uint32_t element, const std::uint32_t* classes) {
        return classes[element & kRow];
    }
    void move(std::uint32_t label, std::uint32_t count) {
        const std::uint64_t n = count;
        left_squares += n * (2 * std::uint64_t{left_counts[label]} + n);
        right_squares -= n * (2 * std::uint64_t{right_counts[label]} - n);
        left_counts[label] += count;
        right_counts[label] -= count;
        left += count;
    }
    void move_back(std::uint32_t label, std::uint32_t count) {
        const std::uint64_t n = count;
        left_squares -= n * (2 * std::uint64_t{left_counts[label]} - n);
        right_squares += n * (2 * std::uint64_t{right_counts[label]} + n);
        left_counts[label] -= count;
        right_counts[label] += count;
        left -= count;
    }
    void move(std::uint32_t label) { move(label, 1); }
    void move_back(std::uint32_t label) { move_back(label, 1); }
    // Few of the classes have a certain value.
    template <typename Do>
    void each_count(const std::uint32_t* group, Do do_this) const {
        for (std::uint32_t begin = 0; begin < n_classes; begin += 64) {
            const std::size_t n = std::min<std::size_t>(n_classes - begin, 64);
            std::uint64_t rest = wide::which_count(group + begin, n);
            for (; rest != 0; rest &= rest - 1) {
                const auto label = begin + static_cast<std::uint32_t>(std::countr_zero(rest));
                do_this(label, group[label]);
            }
        }
    }
    bool is_empty(const std::uint32_t* group) const {
        bool empty = true;
        each_count(group, [&](std::uint32_t, std::uint32_t) { empty = false; });
        return empty;
    }
    void move(const std::uint32_t* group) {
        each_count(group, [&](std::uint32_t label, std::uint32_t n) { move(label, n); });
    }
    void move_back(const std::uint32_t* group) {
        each_count(group, [&](std::uint32_t label, std::uint32_t n) { move_back(label, n); });
    }
    double score() const {
        return static_cast<double>(left_squares) / left +
               static_cast<double>(right_squares) / (size - left);
    }
    double score_to_reach(const Sides& best) const { return purity(best) - 1e-12 * size; }
    Sides sides() const { return {{left, left_squares}, {size - left, right_squares}}; }
};

// The search of one segment: the best so far, and the feature at hand.
template <typename Cut>
struct SplitSearch::Search {
    const Segment& segment;
    Cut cut;
    Cut cut_missing_left;
    Candidate best;
    double to_reach = -1.0;
    std::uint32_t feature = 0;
    bool counted = false;

    void look(const Cut& at, bool missing_left, std::uint32_t begin, std::uint32_t end,
              std::uint32_t last) {
        if (at.score() >= to_reach) consider(at, missing_left, begin, end, last);
    }
    void consider(const Cut& at, bool missing_left, std::uint32_t begin, std::uint32_t end,
                  std::uint32_t last) {
        const Sides sides = at.sides();
        if (best.found && !leaves_less(sides, best.sides)) return;
        best.found = true;
        best.sides = sides;
        best.split.feature = feature;
        best.split.missing_left = missing_left;
        best.left_begin = begin;
        best.left_end = end;
        best.last_left = last;
        best.counted = counted;
        to_reach = at.score_to_reach(sides);
    }
};

Candidate SplitSearch::best(Segment& segment, std::span<const ClassCount> counts, Watch& watch) {
    Candidate best = best_of(open_features(segment), segment, counts, watch);
    close_features(segment);
    set_value(best);
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

Candidate SplitSearch::best_of(std::span<std::uint32_t> features, const Segment& segment,
                               std::span<const ClassCount> counts, Watch& watch) {
    if (columns_.n_classes == 2) {
        const std::uint32_t ones = counts[0].label == 1 ? counts[0].count
                                   : counts.size() == 2 ? counts[1].count
                                                        : 0;
        const TwoClassCut cut{counts, segment.size(), ones};
        Search<TwoClassCut> found{segment, cut, cut, {}};
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
    watch.worked(features.size() * search.segment.size());
    std::size_t n_glanced = 0;
    for (std::uint32_t& entry : features) {
        // Nothing beats a split that leaves no mass, a tie would lose, and both sides are leaves.
        if (search.best.found && mass(search.best.sides) == 0.0) return;
        if (entry == kDropped) continue;
        const float* const glanced =
            glancing && can_glance(entry) ? &glanced_[n_glanced++] : nullptr;
        if (!search_feature(entry, search, glanced)) entry = kDropped;
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
        lists_[n_lists++] = columns_.elements(entry) + search.segment.begin;
    }
    if (n_lists == 0) return;
    wide::best_scores(rows_of(search), lists_.data(), n_lists, glanced_.data());
    const float best = *std::max_element(glanced_.data(), glanced_.data() + n_lists);
    if (best >= 0.0f) search.to_reach = best - doubt(search.segment);
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
    if (present_end == search.segment.end) return search_sorted_present(search);
    if (present_end == search.segment.begin) return false;
    return search_sorted_missing(search, present_end);
}

bool SplitSearch::search_sorted_present(Search<ManyClassCut>& search) {
    const std::uint32_t begin = search.segment.begin, end = search.segment.end;
    const std::uint32_t* const element = columns_.elements(search.feature);
    ManyClassCut& cut = search.cut;
    bool varies = false;
    for (std::uint32_t i = begin; i + 1 < end; ++i) {
        cut.move(columns_.classes[element[i] & kRow]);
        if ((element[i + 1] & kNewValue) == 0) continue;
        varies = true;
        search.look(cut, 2 * cut.left >= cut.size, begin, i + 1, i);
    }
    return varies;
}

bool SplitSearch::search_sorted_present(Search<TwoClassCut>& search) {
    const std::uint32_t* const list = columns_.elements(search.feature) + search.segment.begin;
    float glanced;
    wide::best_scores(rows_of(search), &list, 1, &glanced);
    return search_glanced(search, glanced);
}

// Most cuts are far from the best, as single precision can tell; the rest is looked at properly.
bool SplitSearch::search_glanced(Search<TwoClassCut>& search, float glanced) {
    const std::uint32_t begin = search.segment.begin, n = search.segment.size();
    const float to_reach = static_cast<float>(search.to_reach) - doubt(search.segment);
    if (glanced < 0.0f) return false;
    if (glanced < to_reach) return true;
    const std::uint32_t n_cuts = wide::cuts_that_reach(
        rows_of(search), columns_.elements(search.feature) + begin,
        std::max(to_reach, glanced - doubt(search.segment)), cuts_.get(), ones_left_.get());
    for (std::uint32_t c = 0; c < n_cuts; ++c) {
        const std::uint32_t i = cuts_[c];
        search.cut.left = i + 1;
        search.cut.left_ones = ones_left_[c];
        search.look(search.cut, 2 * (i + 1) >= n, begin, begin + i + 1, begin + i);
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
    const std::uint32_t begin = search.segment.begin, end = search.segment.end;
    const std::uint32_t* const element = columns_.elements(search.feature);
    Cut &cut = search.cut, &cut_missing_left = search.cut_missing_left;
    cut_missing_left.reset();
    for (std::uint32_t i = present_end; i < end; ++i) {
        cut_missing_left.move(Cut::class_of(element[i], columns_.classes.data()));
    }
    for (std::uint32_t i = begin; i < present_end; ++i) {
        const std::uint32_t label = Cut::class_of(element[i], columns_.classes.data());
        cut.move(label);
        cut_missing_left.move(label);
        if ((element[i + 1] & kNewValue) == 0) continue;
        // Behind the largest value only the missing remain, and they must go right.
        if (i + 1 < present_end) search.look(cut_missing_left, true, begin, i + 1, i);
        search.look(cut, false, begin, i + 1, i);
    }
    return true;
}

template <typename Cut>
bool SplitSearch::search_sorted_categories(Search<Cut>& search) const {
    const std::uint32_t begin = search.segment.begin, end = search.segment.end;
    const std::uint32_t* const element = columns_.elements(search.feature);
    Cut& cut = search.cut;
    cut.reset();
    for (std::uint32_t group = begin, next; group < end; group = next) {
        next = group;
        do {
            cut.move(Cut::class_of(element[next], columns_.classes.data()));
            ++next;
        } while (next < end && (element[next] & kNewValue) == 0);
        if (next - group == end - begin) return false;
        search.look(cut, next == end && columns_.is_missing_at(search.feature, group), group, next,
                    group);
        for (std::uint32_t i = group; i < next; ++i) {
            cut.move_back(Cut::class_of(element[i], columns_.classes.data()));
        }
    }
    return true;
}

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
    const std::uint32_t* const missing = counts + std::size_t{n_present} * columns_.n_classes;
    Cut &cut = search.cut, &cut_missing_left = search.cut_missing_left;
    cut.reset();
    const bool any_missing = column.any_missing && !cut.is_empty(missing);
    if (any_missing) {
        cut_missing_left.reset();
        cut_missing_left.move(missing);
    }
    constexpr std::uint32_t none = 0xffffffff;
    std::uint32_t last = none;
    bool varies = false;
    for (std::uint32_t rank = 0; rank < n_present; ++rank) {
        const std::uint32_t* const group = counts + std::size_t{rank} * columns_.n_classes;
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
        const std::uint32_t* const group = counts + std::size_t{rank} * columns_.n_classes;
        if (cut.is_empty(group)) continue;
        cut.move(group);
        if (cut.left == cut.size) return false;
        const bool missing = column.any_missing && rank + 1 == column.n_values;
        search.look(cut, missing, rank, rank + 1, rank);
        cut.move_back(group);
    }
    return true;
}

void SplitSearch::set_value(Candidate& best) const {
    if (!best.found) return;
    Split& split = best.split;
    split.kind = columns_.kinds[split.feature];
    const auto value = [&](std::uint32_t at) {
        return best.counted ? columns_.columns[split.feature].values[at]
                            : columns_.value_at(split.feature, at);
    };
    split.value = value(best.last_left);
    if (split.kind == Kind::categorical) return;
    const double next = value(best.left_end);
    if (!is_missing(next)) split.value = midpoint(split.value, next);
}

}  // namespace evertree
