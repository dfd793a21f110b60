#include "split.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace evertree {

namespace {

constexpr std::size_t kRowsPerCount = 2;  // from so many rows a value and class on, counting pays
constexpr std::size_t kCountFrom = 64;    // rows
constexpr std::size_t kGatherFewFrom = std::size_t{1} << 17;  // for the sake of memory
constexpr std::size_t kManyFeatures = 40;

// The threshold between two neighbouring values: their midpoint, correctly rounded, or the lower
// one where the midpoint is not below the upper.
double midpoint(double low, double high) {
    double middle = (low + high) / 2;
    if (!std::isfinite(middle)) middle = low / 2 + high / 2;
    return (middle < high ? middle : low) + 0.0;  // never -0.0
}

}  // namespace

// A cut holds the two sides of a split while values move from right to left. Its score ranks the
// splits of one set; scores closer than the doubt are compared exactly.
struct SplitSearch::TwoClassCut {
    std::span<const ClassCount> counts;
    const double* inverse;
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
        return on_left * on_left * inverse[left] + on_right * on_right * inverse[size - left];
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
    const double* inverse;
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
    bool is_empty(const std::uint32_t* group) const {
        return std::all_of(group, group + n_classes, [](std::uint32_t n) { return n == 0; });
    }
    void move(const std::uint32_t* group) {
        for (const ClassCount& c : counts) move(c.label, group[c.label]);
    }
    void move_back(const std::uint32_t* group) {
        for (const ClassCount& c : counts) move_back(c.label, group[c.label]);
    }
    double score() const {
        return static_cast<double>(left_squares) * inverse[left] +
               static_cast<double>(right_squares) * inverse[size - left];
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

// ---- loading ------------------------------------------------------------------------------------

void SplitSearch::reserve(std::size_t n) {
    const std::size_t n_elements = n * kinds_.size();
    if (capacity_rows_ < n) {
        capacity_rows_ = 0;
        const std::size_t capacity = n < 65536 ? std::bit_ceil(n) : n;
        rows_.reset(new std::uint32_t[capacity]);
        spare_.reset(new std::uint32_t[capacity]);
        goes_left_.reset(new std::uint8_t[capacity]);
        capacity_rows_ = capacity;
    }
    if (capacity_elements_ < n_elements) {
        capacity_elements_ = 0;
        const std::size_t capacity = n < 65536 ? std::bit_ceil(n_elements) : n_elements;
        elements_.reset(new std::uint32_t[capacity]);  // not touched before it is used
        capacity_elements_ = capacity;
    }
    n_gathered_ = n < kGatherFewFrom || kinds_.size() >= kManyFeatures ? 8 : 4;
    // Each by its own size: any of these may fail, and the next build must find that out.
    if (keys_.size() < n * n_gathered_) keys_.resize(n * n_gathered_);
    if (x_.size() < n) x_.resize(n);
    if (tagged_.size() < n) tagged_.resize(n);
    if (ones_left_.size() < n) ones_left_.resize(n);
    if (inverse_.size() > n) return;
    // inverse_back[size - n + i] is 1/(n - 1 - i): what remains on the right of i + 1 rows.
    const std::size_t size = std::bit_ceil(n + 1);
    rough_inverse_.resize(size);
    rough_inverse_back_.resize(size);
    inverse_.resize(size);  // the last: its size says that all three are there
    for (std::size_t i = 0; i < size; ++i) {
        inverse_[i] = 1.0 / static_cast<double>(std::max<std::size_t>(i, 1));
        rough_inverse_[i] = static_cast<float>(inverse_[i]);
        rough_inverse_back_[size - 1 - i] = rough_inverse_[i];
    }
}

void SplitSearch::release() {
    capacity_rows_ = capacity_elements_ = 0;
    rows_.reset();
    spare_.reset();
    goes_left_.reset();
    elements_.reset();
    keys_ = {};
    x_ = {};
    tagged_ = {};
    sorter_.release();
    ranks_ = {};
    values_ = {};
    counts_ = {};
    counts_free_ = {};
    inverse_ = {};
    rough_inverse_ = rough_inverse_back_ = {};
    ones_left_ = {};
}

Segment SplitSearch::load(const Examples& examples, std::span<const Slot> slots,
                          std::span<const std::uint32_t> classes, std::uint32_t n_classes,
                          Watch& watch) {
    classes_ = classes;
    n_ = slots.size();
    n_classes_ = n_classes;
    reserve(n_);
    for (std::uint32_t row = 0; row < n_; ++row) {
        rows_[row] = row;
        x_[row] = examples.x(slots[row]);
        tagged_[row] = n_classes == 2 ? row | classes[row] << 30 : row;
    }
    columns_.assign(kinds_.size(), Column{});
    ranks_.clear();
    values_.clear();
    counts_size_ = 0;
    features_.clear();
    counts_free_.clear();
    for (std::uint32_t block = 0; block < counts_.size(); ++block) counts_free_.push_back(block);

    const auto n_features = static_cast<std::uint32_t>(kinds_.size());
    for (std::uint32_t first = 0; first < n_features; first += n_gathered_) {
        gather(first, std::min(first + n_gathered_, n_features));
        watch.worked(n_ * n_gathered_);
        for (std::uint32_t j = first; j < std::min(first + n_gathered_, n_features); ++j) {
            load_column(j, {keys_.data() + (j - first) * n_, n_}, watch);
        }
    }
    Segment whole;
    whole.end = static_cast<std::uint32_t>(n_);
    whole.n_features = static_cast<std::uint32_t>(features_.size());
    if (counts_size_ > 0) {
        whole.counts = take_counts();
        for (const std::uint32_t entry : features_) {
            if ((entry & kCounted) == 0) continue;
            const Column& column = columns_[entry & ~kCounted];
            count(column, whole, counts_[whole.counts].data() + column.counts_at);
            watch.worked(n_);
        }
    }
    return whole;
}

// A row's neighbouring values lie in one line of the cache: they are fetched together.
void SplitSearch::gather(std::uint32_t first, std::uint32_t end) {
    for (std::size_t row = 0; row < n_; ++row) {
        const double* const x = x_[row];
        std::uint64_t* key = keys_.data() + row;
        for (std::uint32_t feature = first; feature < end; ++feature, key += n_) {
            *key = sort_key(x[feature]);
        }
    }
}

void SplitSearch::load_column(std::uint32_t feature, std::span<const std::uint64_t> keys,
                              Watch& watch) {
    std::uint64_t differing = 0, largest = 0;
    for (const std::uint64_t key : keys) {
        differing |= key ^ keys[0];
        largest = std::max(largest, key);
    }
    watch.worked(n_);
    if (differing == 0) return;
    Column& column = columns_[feature];
    column.any_missing = is_missing(value_of_key(largest));
    if (n_ >= kCountFrom && load_counted(feature, keys)) return;
    watch.worked(n_);
    sorter_.sort(keys, differing, watch);
    load_sorted(feature, 0, static_cast<std::uint32_t>(n_), nullptr);
    features_.push_back(feature);
}

bool SplitSearch::load_counted(std::uint32_t feature, std::span<const std::uint64_t> keys) {
    Column& column = columns_[feature];
    const std::size_t ranks_at = ranks_.size();
    ranks_.resize(ranks_at + n_);
    if (!distinct_.rank(keys, n_ / n_classes_ / kRowsPerCount, ranks_.data() + ranks_at)) {
        ranks_.resize(ranks_at);
        return false;
    }
    column.n_values = static_cast<std::uint32_t>(distinct_.keys().size());
    column.ranks_at = static_cast<std::uint32_t>(ranks_at / n_);
    column.values_at = static_cast<std::uint32_t>(values_.size());
    column.counts_at = static_cast<std::uint32_t>(counts_size_);
    for (const std::uint64_t key : distinct_.keys()) values_.push_back(value_of_key(key));
    counts_size_ += std::size_t{column.n_values} * n_classes_;
    features_.push_back(feature | kCounted);
    return true;
}

// What the sorter holds becomes the sorted form; `rows` says which rows were sorted (null: all).
void SplitSearch::load_sorted(std::uint32_t feature, std::uint32_t begin, std::uint32_t end,
                              const std::uint32_t* rows) {
    std::uint32_t* const out = elements(feature) + begin;
    for (std::uint32_t i = 0; i < end - begin; ++i) {
        const std::uint32_t row = rows == nullptr ? sorter_.row(i) : rows[sorter_.row(i)];
        out[i] = tagged_[row];
    }
    out[0] |= kNewValue;
    for (std::uint32_t i = 1; i < end - begin; ++i) out[i] |= sorter_.is_new(i) ? kNewValue : 0;
}

bool SplitSearch::counting_pays(const Column& column, std::size_t n_rows) const {
    return kRowsPerCount * column.n_values * n_classes_ <= n_rows;
}

bool SplitSearch::any_counting_pays(const Segment& segment, std::size_t n_rows) const {
    const std::uint32_t* const list = features_.data() + segment.features_at;
    return std::any_of(list, list + segment.n_features, [&](std::uint32_t entry) {
        return (entry & kCounted) != 0 && counting_pays(columns_[entry & ~kCounted], n_rows);
    });
}

// ---- searching ----------------------------------------------------------------------------------

Candidate SplitSearch::best(Segment& segment, std::span<const ClassCount> counts, Watch& watch) {
    if (n_classes_ == 2) {
        const std::uint32_t ones = counts[0].label == 1 ? counts[0].count
                                   : counts.size() == 2 ? counts[1].count
                                                        : 0;
        const TwoClassCut cut{counts, inverse_.data(), segment.size(), ones};
        Search<TwoClassCut> found{segment, cut, cut, {}};
        search(segment, found, watch);
        set_value(found.best);
        return found.best;
    }
    const std::size_t k = n_classes_;
    if (many_.size() < 4 * k) many_.resize(4 * k);
    std::uint32_t* const m = many_.data();
    ManyClassCut cut{counts, inverse_.data(), segment.size(), n_classes_, m, m + k};
    ManyClassCut cut_missing_left = cut;
    cut_missing_left.left_counts = m + 2 * k;
    cut_missing_left.right_counts = m + 3 * k;
    Search<ManyClassCut> found{segment, cut, cut_missing_left, {}};
    search(segment, found, watch);
    set_value(found.best);
    return found.best;
}

// Goes through the features and keeps those that vary as the segment's new list.
template <typename Cut>
void SplitSearch::search(Segment& segment, Search<Cut>& search, Watch& watch) {
    // Segments are searched last in, first out: behind this one's list there is nothing alive.
    const std::uint32_t from = segment.features_at, n = segment.n_features;
    features_.resize(from + n);
    for (std::uint32_t i = 0; i < n; ++i) {
        // Nothing beats a split that leaves no mass, a tie would lose, and both sides are leaves.
        if (search.best.found && mass(search.best.sides) == 0.0) break;
        std::uint32_t entry = features_[from + i];
        const std::uint32_t feature = entry & ~kCounted;
        const Column& column = columns_[feature];
        if ((entry & kCounted) != 0 && !counting_pays(column, segment.size())) {
            to_sorted(feature, segment, watch);
            entry = feature;
        }
        search.feature = feature;
        search.counted = (entry & kCounted) != 0;
        const bool categorical = kinds_[feature] == Kind::categorical;
        const bool varies =
            search.counted
                ? (categorical ? search_counted_categories(search) : search_counted(search))
                : (categorical ? search_sorted_categories(search) : search_sorted(search));
        if (varies) features_.push_back(entry);
        watch.worked(segment.size());
    }
    segment.features_at = from + n;
    segment.n_features = static_cast<std::uint32_t>(features_.size()) - segment.features_at;
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
    const std::uint32_t* const element = elements(search.feature);
    ManyClassCut& cut = search.cut;
    bool varies = false;
    for (std::uint32_t i = begin; i + 1 < end; ++i) {
        cut.move(classes_[element[i] & kRow]);
        if ((element[i + 1] & kNewValue) == 0) continue;
        varies = true;
        search.look(cut, 2 * cut.left >= cut.size, begin, i + 1, i);
    }
    return varies;
}

// Most cuts are far from the best. They are told apart in single precision, which the compiler
// turns into a few instructions for several cuts at once; the rest is looked at properly.
bool SplitSearch::search_sorted_present(Search<TwoClassCut>& search) {
    constexpr std::uint32_t block = 32;
    const std::uint32_t begin = search.segment.begin, n = search.segment.size();
    const std::uint32_t* const element = elements(search.feature) + begin;
    std::int32_t* const ones_left = ones_left_.data();
    std::uint32_t any_new = 0;
    std::int32_t ones = 0;
    for (std::uint32_t i = 0; i + 1 < n; ++i) {
        any_new |= element[i + 1];
        ones += static_cast<std::int32_t>((element[i] >> 30) & 1);
        ones_left[i] = ones;
    }
    if ((any_new & kNewValue) == 0) return false;
    TwoClassCut& cut = search.cut;
    const float* const inverse = rough_inverse_.data() + 1;
    const float* const inverse_back = rough_inverse_back_.data() + (rough_inverse_back_.size() - n);
    const auto all_ones = static_cast<float>(cut.ones);
    // The rounding of single precision, several times over.
    const float doubt = 2e-6f * static_cast<float>(n);
    for (std::uint32_t first = 0; first + 1 < n; first += block) {
        const std::uint32_t last = std::min(first + block, n - 1);
        const float to_reach = static_cast<float>(search.to_reach) - doubt;
        int any = 0;
        for (std::uint32_t i = first; i < last; ++i) {
            const auto left = static_cast<float>(ones_left[i]);
            const float right = all_ones - left;
            const float score = left * left * inverse[i] + right * right * inverse_back[i];
            any |= score >= to_reach ? 1 : 0;
        }
        if (any == 0) continue;
        for (std::uint32_t i = first; i < last; ++i) {
            if ((element[i + 1] & kNewValue) == 0) continue;
            cut.left = i + 1;
            cut.left_ones = static_cast<std::uint32_t>(ones_left[i]);
            search.look(cut, 2 * cut.left >= n, begin, begin + i + 1, begin + i);
        }
    }
    return true;
}

template <typename Cut>
bool SplitSearch::search_sorted_missing(Search<Cut>& search, std::uint32_t present_end) const {
    const std::uint32_t begin = search.segment.begin, end = search.segment.end;
    const std::uint32_t* const element = elements(search.feature);
    Cut &cut = search.cut, &cut_missing_left = search.cut_missing_left;
    cut_missing_left.reset();
    for (std::uint32_t i = present_end; i < end; ++i) {
        cut_missing_left.move(Cut::class_of(element[i], classes_.data()));
    }
    for (std::uint32_t i = begin; i < present_end; ++i) {
        const std::uint32_t label = Cut::class_of(element[i], classes_.data());
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
    const std::uint32_t* const element = elements(search.feature);
    Cut& cut = search.cut;
    cut.reset();
    for (std::uint32_t group = begin, next; group < end; group = next) {
        next = group;
        do {
            cut.move(Cut::class_of(element[next], classes_.data()));
            ++next;
        } while (next < end && (element[next] & kNewValue) == 0);
        if (next - group == end - begin) return false;
        search.look(cut, next == end && is_missing_at(search.feature, group), group, next, group);
        for (std::uint32_t i = group; i < next; ++i) {
            cut.move_back(Cut::class_of(element[i], classes_.data()));
        }
    }
    return true;
}

template <typename Cut>
bool SplitSearch::search_counted(Search<Cut>& search) const {
    const Column& column = columns_[search.feature];
    const std::uint32_t* const counts = counts_[search.segment.counts].data() + column.counts_at;
    const std::uint32_t n_present = column.n_values - (column.any_missing ? 1u : 0u);
    const std::uint32_t* const missing = counts + std::size_t{n_present} * n_classes_;
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
        const std::uint32_t* const group = counts + std::size_t{rank} * n_classes_;
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
    const Column& column = columns_[search.feature];
    const std::uint32_t* const counts = counts_[search.segment.counts].data() + column.counts_at;
    Cut& cut = search.cut;
    cut.reset();
    for (std::uint32_t rank = 0; rank < column.n_values; ++rank) {
        const std::uint32_t* const group = counts + std::size_t{rank} * n_classes_;
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
    split.kind = kinds_[split.feature];
    const auto value = [&](std::uint32_t at) {
        return best.counted ? values_[columns_[split.feature].values_at + at]
                            : value_at(split.feature, at);
    };
    split.value = value(best.last_left);
    if (split.kind == Kind::categorical) return;
    const double next = value(best.left_end);
    if (!is_missing(next)) split.value = midpoint(split.value, next);
}

// ---- dividing -----------------------------------------------------------------------------------

bool SplitSearch::is_missing_at(std::uint32_t feature, std::uint32_t position) const {
    return columns_[feature].any_missing && is_missing(value_at(feature, position));
}

std::uint32_t SplitSearch::missing_begin(std::uint32_t feature, const Segment& segment) const {
    if (!is_missing_at(feature, segment.end - 1)) return segment.end;
    std::uint32_t present = segment.begin, missing = segment.end - 1;
    while (present < missing) {
        const std::uint32_t middle = present + (missing - present) / 2;
        if (is_missing_at(feature, middle)) {
            missing = middle;
        } else {
            present = middle + 1;
        }
    }
    return missing;
}

void SplitSearch::mark_left(const Segment& segment, const Candidate& split) {
    if (split.counted) {
        mark_left_counted(segment, split);
    } else {
        mark_left_sorted(segment, split);
    }
}

void SplitSearch::mark_left_counted(const Segment& segment, const Candidate& split) {
    const Column& column = columns_[split.split.feature];
    const std::uint16_t* const rank_of = ranks(column);
    const bool missing_left = split.split.missing_left && column.any_missing;
    const std::uint32_t n_left = split.left_end - split.left_begin;
    for (const std::uint32_t row : rows(segment.begin, segment.end)) {
        const std::uint32_t rank = rank_of[row];
        goes_left_[row] =
            rank - split.left_begin < n_left || (missing_left && rank + 1 == column.n_values);
    }
}

void SplitSearch::mark_left_sorted(const Segment& segment, const Candidate& split) {
    const std::uint32_t feature = split.split.feature;
    const std::uint32_t* const element = elements(feature);
    const std::uint32_t missing =
        split.split.missing_left ? missing_begin(feature, segment) : segment.end;
    for (std::uint32_t i = segment.begin; i < segment.end; ++i) {
        goes_left_[element[i] & kRow] =
            (i >= split.left_begin && i < split.left_end) || i >= missing;
    }
}

// Both partitions write to both sides and advance only one: which side is not predictable.
void SplitSearch::partition_rows(const Segment& segment) {
    std::uint32_t *left = rows_.get() + segment.begin, *right = spare_.get();
    for (std::uint32_t i = segment.begin; i < segment.end; ++i) {
        const std::uint32_t row = rows_[i];
        const std::uint32_t goes_left = goes_left_[row];
        *left = *right = row;
        left += goes_left;
        right += 1 - goes_left;
    }
    std::memcpy(left, spare_.get(),
                static_cast<std::size_t>(right - spare_.get()) * sizeof(std::uint32_t));
}

void SplitSearch::partition_sorted(std::uint32_t feature, const Segment& segment) {
    std::uint32_t* const element = elements(feature);
    std::uint32_t *left = element + segment.begin, *right = spare_.get();
    // A value is new on one side if any value between it and its neighbour there was new.
    std::uint32_t left_new = kNewValue, right_new = kNewValue;
    for (std::uint32_t i = segment.begin; i < segment.end; ++i) {
        const std::uint32_t row = element[i] & ~kNewValue, is_new = element[i] & kNewValue;
        const std::uint32_t goes_left = goes_left_[row & kRow];
        left_new |= is_new;
        right_new |= is_new;
        *left = row | left_new;
        *right = row | right_new;
        left += goes_left;
        right += 1 - goes_left;
        left_new &= goes_left - 1;
        right_new &= 0 - goes_left;
    }
    std::memcpy(left, spare_.get(),
                static_cast<std::size_t>(right - spare_.get()) * sizeof(std::uint32_t));
}

void SplitSearch::divide(const Segment& segment, const Candidate& split, bool search_left,
                         bool search_right, Segment& left, Segment& right, Watch& watch) {
    mark_left(segment, split);
    partition_rows(segment);
    left = right = segment;
    left.counts = right.counts = Segment::kNoCounts;
    left.end = right.begin = segment.begin + static_cast<std::uint32_t>(split.sides.left.size);
    watch.worked(segment.size());
    if (!search_left && !search_right) return close(segment);
    for (std::uint32_t i = 0; i < segment.n_features; ++i) {
        const std::uint32_t entry = features_[segment.features_at + i];
        if ((entry & kCounted) != 0) continue;
        partition_sorted(entry, segment);
        watch.worked(segment.size());
    }
    if (segment.counts == Segment::kNoCounts) return;
    const bool left_smaller = left.size() <= right.size();
    if (left_smaller) {
        divide_counts(segment, left, search_left, right, search_right);
    } else {
        divide_counts(segment, right, search_right, left, search_left);
    }
    watch.worked(segment.size());
}

// Only the smaller side is counted; the larger one keeps the counts that remain.
void SplitSearch::divide_counts(const Segment& segment, Segment& smaller, bool search_smaller,
                                Segment& larger, bool search_larger) {
    const std::size_t largest = search_larger ? larger.size() : smaller.size();
    if (!any_counting_pays(segment, largest)) return close(segment);
    const std::uint32_t block = take_counts();
    std::uint32_t* const of_smaller = counts_[block].data();
    std::uint32_t* const of_larger = counts_[segment.counts].data();
    for (std::uint32_t i = 0; i < segment.n_features; ++i) {
        const std::uint32_t entry = features_[segment.features_at + i];
        if ((entry & kCounted) == 0) continue;
        const Column& column = columns_[entry & ~kCounted];
        if (!counting_pays(column, largest)) continue;
        const std::size_t size = std::size_t{column.n_values} * n_classes_;
        count(column, smaller, of_smaller + column.counts_at);
        for (std::size_t c = column.counts_at; c < column.counts_at + size; ++c) {
            of_larger[c] -= of_smaller[c];
        }
    }
    (search_smaller ? smaller.counts : counts_free_.emplace_back()) = block;
    (search_larger ? larger.counts : counts_free_.emplace_back()) = segment.counts;
}

void SplitSearch::count(const Column& column, const Segment& segment, std::uint32_t* counts) const {
    const std::size_t n_counts = std::size_t{column.n_values} * n_classes_;
    const std::uint16_t* const rank_of = ranks(column);
    const auto own = rows(segment.begin, segment.end);
    const auto place = [&](std::uint32_t row) {
        return std::size_t{rank_of[row]} * n_classes_ + classes_[row];
    };
    std::fill_n(counts, n_counts, 0u);
    std::size_t i = 0;
    // With few counts the next row often needs the same one, and would wait for it: four sets.
    constexpr std::size_t few = 64;
    if (n_counts <= few && own.size() >= 4 * few) {
        std::uint32_t sets[4][few] = {};
        for (; i + 4 <= own.size(); i += 4) {
            for (std::size_t s = 0; s < 4; ++s) ++sets[s][place(own[i + s])];
        }
        for (std::size_t c = 0; c < n_counts; ++c) {
            counts[c] = sets[0][c] + sets[1][c] + sets[2][c] + sets[3][c];
        }
    }
    for (; i < own.size(); ++i) ++counts[place(own[i])];
}

std::uint32_t SplitSearch::take_counts() {
    if (counts_free_.empty()) {
        counts_.emplace_back(counts_size_);
        return static_cast<std::uint32_t>(counts_.size() - 1);
    }
    const std::uint32_t block = counts_free_.back();
    counts_free_.pop_back();
    if (counts_[block].size() < counts_size_) counts_[block].resize(counts_size_);
    return block;
}

void SplitSearch::close(const Segment& segment) {
    if (segment.counts != Segment::kNoCounts) counts_free_.push_back(segment.counts);
}

// Too few rows for counting: the rows in the order of their ranks, from here on down.
void SplitSearch::to_sorted(std::uint32_t feature, const Segment& segment, Watch& watch) {
    const std::uint16_t* const rank_of = ranks(columns_[feature]);
    const auto own = rows(segment.begin, segment.end);
    for (std::size_t i = 0; i < own.size(); ++i) keys_[i] = rank_of[own[i]];
    sorter_.sort({keys_.data(), own.size()}, 0xffff, watch);
    load_sorted(feature, segment.begin, segment.end, own.data());
}

}  // namespace evertree
