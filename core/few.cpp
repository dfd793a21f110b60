#include "few.hpp"

#include <algorithm>
#include <bit>

namespace evertree {

namespace {

constexpr std::size_t kMostElements = std::size_t{1} << 17;  // beyond, they do not stay at hand
// What is rough about a score, several times over.
constexpr float kDoubt = 4e-6f;

bool is_counted(std::uint32_t entry) { return (entry & SplitSearch::kCounted) != 0; }

std::span<const ClassCount> counts_of(const Plan& plan, std::uint32_t node) {
    const PlannedNode& own = plan.nodes[node];
    return {plan.counts.data() + own.counts_begin, own.counts_end - own.counts_begin};
}

}  // namespace

bool FewRows::can_plan(const Columns& columns, std::span<const std::uint32_t> features,
                       std::uint32_t n_rows, std::size_t n_classes) {
    if (n_rows > wide::few::kMostRows || n_rows * features.size() > kMostElements) return false;
    if (n_classes > wide::few::kMostClasses || !wide::few::pays()) return false;
    return std::none_of(features.begin(), features.end(), [&](std::uint32_t entry) {
        const std::uint32_t feature = entry & ~SplitSearch::kCounted;
        return columns.kinds[feature] == Kind::categorical || columns.columns[feature].any_missing;
    });
}

bool FewRows::plan(Columns& columns, SplitSearch& search, const Segment& segment, PutOff put_off,
                   Plan& plan, std::uint32_t node, std::uint32_t depth, Watch& watch) {
    put_off_ = put_off;
    classes_.clear();
    for (const ClassCount& c : counts_of(plan, node)) classes_.push_back(c.label);
    if (!load(columns, search, segment, watch)) return false;
    const auto n_lists = static_cast<std::uint32_t>(which_.size());
    open_.assign(1, {node, depth, 0, segment.size(), 0, n_lists, 0});
    while (!open_.empty()) {
        const Open open = open_.back();
        open_.pop_back();
        plan_node(open, plan);
        watch.worked(open.n * open.n_lists);
    }
    return true;
}

// ---- loading ------------------------------------------------------------------------------------

void FewRows::make_room(std::size_t n_rows, std::size_t n_lists) {
    constexpr std::size_t lanes = wide::few::kLanes;
    stride_ = (n_rows + lanes) / lanes * lanes;
    const std::size_t wanted = capacity_for(stride_ * n_lists + 2 * lanes);
    if (capacity_ >= wanted) return;
    capacity_ = 0;
    for (Buffer<Element>& elements : elements_) elements = Buffer<Element>(wanted);
    scores_ = Buffer<float>(wanted);
    capacity_ = wanted;
}

// Those that are sorted already are numbered anew, the others are read. False if a value is
// missing.
bool FewRows::load(Columns& columns, SplitSearch& search, const Segment& segment, Watch& watch) {
    const std::span<const std::uint32_t> entries = search.features(segment);
    make_room(segment.size(), entries.size());
    has_cuts_.resize(entries.size());
    order_ = columns.rows.get();
    packing_ = columns.packing;
    rows_.assign(order_ + segment.begin, order_ + segment.end);
    numbers_.resize(columns.n_classes);
    for (std::size_t i = 0; i < classes_.size(); ++i) {
        numbers_[classes_[i]] = static_cast<std::uint16_t>(i);
    }
    const int class_bits = static_cast<int>(std::bit_width(classes_.size() - 1));
    records_.clear();
    tags_.clear();
    for (const std::uint32_t row : rows_) {
        const auto number = static_cast<std::uint32_t>(tags_.size());
        tags_.push_back(number << class_bits | numbers_[columns.classes[row]]);
        records_.push_back(columns.records[row]);
    }
    varies_.assign(entries.size(), 1);
    if (!search.sort_few(entries,
                         {records_.data(), Tags(tags_.data(), rows_.size(), class_bits),
                          rows_.size(), stride_, elements_[0].get(), varies_.data()},
                         watch)) {
        return false;
    }
    if (!std::ranges::all_of(entries, is_counted)) number_anew(columns, search, segment);
    features_.clear();
    which_.clear();
    for (std::size_t l = 0; l < entries.size(); ++l) {
        features_.push_back(entries[l] & ~SplitSearch::kCounted);
        if (varies_[l] != 0) which_.push_back(static_cast<std::uint16_t>(l));
    }
    return true;
}

// The tags of these rows have done their work, and tell the new numbers.
void FewRows::number_anew(Columns& columns, SplitSearch& search, const Segment& segment) {
    const std::span<const std::uint32_t> entries = search.features(segment);
    for (std::uint32_t i = 0; i < rows_.size(); ++i) {
        const std::uint32_t number = numbers_[columns.classes[rows_[i]]];
        columns.tags[rows_[i]] = i | number << wide::few::kRowBits;
    }
    for (std::size_t l = 0; l < entries.size(); ++l) {
        if (is_counted(entries[l])) continue;
        const std::uint32_t* const from = search.list(entries[l], segment);
        Element* const to = elements_[0].get() + l * stride_;
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            const std::uint32_t is_new = (from[i] & element::kNewValue) >> 16;
            to[i] = static_cast<Element>(columns.tags[from[i] & element::kRow] | is_new);
        }
    }
}

// ---- planning -----------------------------------------------------------------------------------

void FewRows::plan_node(Open open, Plan& plan) {
    if (open.n_lists == 0) {  // of the whole segment, whose rows stay as they are
        plan.nodes[open.node].inseparable = true;
        return;
    }
    const Element* const any = list(open, which_[open.lists_at]);
    const Cut cut = best_cut(open, counts_of(plan, open.node));
    if (cut.left == 0) {
        plan.nodes[open.node].inseparable = true;
        return put_rows(any, open.n, plan.nodes[open.node].begin);
    }
    plan.nodes[open.node].split = split_at(open, cut);
    plan_children(open, cut, plan);
}

// Lists without a cut are dropped for everything below.
FewRows::Cut FewRows::best_cut(Open& open, std::span<const ClassCount> counts) {
    // Nodes are searched last in, first out: behind this one's lists there is nothing alive.
    const std::uint32_t from = open.lists_at, n_lists = open.n_lists;
    which_.resize(from + 2 * n_lists);
    present_.n = 0;
    for (const ClassCount& c : counts) {
        present_.numbers[present_.n] = numbers_[c.label];
        present_.counts[present_.n++] = static_cast<std::uint16_t>(c.count);
    }
    const float best_score =
        wide::few::score_cuts(lists(open), present_, scores_.get(), has_cuts_.data());
    const float to_reach = best_score * (1 - kDoubt);
    open.lists_at = from + n_lists;
    open.n_lists = 0;
    Cut best;
    for (std::uint32_t l = 0; l < n_lists; ++l) {
        if (has_cuts_[l] == 0) continue;
        const std::uint16_t own = which_[from + l];
        which_[open.lists_at + open.n_lists++] = own;
        // What leaves nothing is not exceeded.
        if (best.purity == best.sides * open.n) continue;
        const std::uint32_t n_cuts =
            wide::few::cuts_that_reach(scores_.get() + l * stride_, open.n, to_reach, cuts_.data());
        for (std::uint32_t c = 0; c < n_cuts; ++c) consider(best, open, own, cuts_[c] + 1u);
    }
    return best;
}

// Exactly, and all of it fits.
void FewRows::consider(Cut& best, const Open& open, std::uint32_t of_list,
                       std::uint32_t left) const {
    const std::uint64_t right = open.n - left;
    const Counts counts_left = count_left(list(open, of_list), left);
    std::uint64_t squares_left = 0, squares_right = 0;
    for (std::size_t c = 0; c < present_.n; ++c) {
        const std::uint64_t on_left = counts_left[c], on_right = present_.counts[c] - on_left;
        squares_left += on_left * on_left;
        squares_right += on_right * on_right;
    }
    const std::uint64_t purity = squares_left * right + squares_right * left, sides = left * right;
    if (purity * best.sides > best.purity * sides) best = {of_list, left, purity, sides};
}

FewRows::Counts FewRows::count_left(const Element* elements, std::uint32_t left) const {
    Counts counts;
    counts[0] = left;
    for (std::size_t c = 1; c < present_.n; ++c) {
        counts[c] = wide::few::count_class(elements, left, present_.numbers[c]);
        counts[0] -= counts[c];
    }
    return counts;
}

Split FewRows::split_at(const Open& open, const Cut& cut) const {
    const Element* const elements = list(open, cut.list);
    const std::uint32_t feature = features_[cut.list];
    const auto value = [&](std::uint32_t at) {
        return packing_->value(records_[elements[at] & wide::few::kRow], feature);
    };
    return {midpoint(value(cut.left - 1), value(cut.left)), feature, Kind::real,
            2 * cut.left >= open.n};
}

void FewRows::plan_children(const Open& open, const Cut& cut, Plan& plan) {
    const auto left = static_cast<std::uint32_t>(plan.nodes.size());
    const std::uint32_t begin = plan.nodes[open.node].begin, n_right = open.n - cut.left;
    plan.nodes[open.node].left = left;
    const Counts counts_left = count_left(list(open, cut.list), cut.left);
    plan_child(plan, begin, [&](std::size_t c) { return counts_left[c]; });
    plan_child(plan, begin + cut.left,
               [&](std::size_t c) { return present_.counts[c] - counts_left[c]; });
    const Sides sides{plan.nodes[left].tally, plan.nodes[left + 1].tally};
    plan.nodes[open.node].floor = mass(sides);
    const Element* const elements = list(open, cut.list);
    const bool search_left = search_on(plan.nodes[left], open.depth + 1, elements);
    const bool search_right = search_on(plan.nodes[left + 1], open.depth + 1, elements + cut.left);
    if (!search_left) put_rows(elements, cut.left, begin);
    if (!search_right) put_rows(elements + cut.left, n_right, begin + cut.left);
    if (search_left || search_right) divide(open, cut, search_left, search_right, left);
}

template <typename CountOf>
void FewRows::plan_child(Plan& plan, std::uint32_t begin, CountOf count_of) const {
    PlannedNode& child = plan.nodes.emplace_back();
    child.counts_begin = static_cast<std::uint32_t>(plan.counts.size());
    for (std::size_t c = 0; c < present_.n; ++c) {
        const std::uint32_t count = count_of(c);
        if (count == 0) continue;
        plan.counts.push_back({classes_[present_.numbers[c]], count});
        child.tally.size += count;
        child.tally.squares += std::uint64_t{count} * count;
    }
    child.counts_end = static_cast<std::uint32_t>(plan.counts.size());
    child.begin = begin;
    child.end = begin + static_cast<std::uint32_t>(child.tally.size);
}

// Whether there is anything to be searched in a child, whose rows are these, and now.
bool FewRows::search_on(PlannedNode& child, std::uint32_t depth, const Element* elements) const {
    if (limits_.build_stops(child.tally, depth)) return false;
    child.put_off = child.tally.size <= put_off_.largest &&
                    std::none_of(elements, elements + child.tally.size, [&](Element e) {
                        return rows_[e & wide::few::kRow] >= put_off_.first_new;
                    });
    return !child.put_off;
}

void FewRows::divide(const Open& open, const Cut& cut, bool search_left, bool search_right,
                     std::uint32_t left_node) {
    Open left = open, right = open;
    left.place = right.place = 1 - open.place;
    left.depth = right.depth = open.depth + 1;
    left.node = left_node;
    left.n = cut.left;
    right.node = left_node + 1;
    right.n = open.n - cut.left;
    if (search_left) right.begin = open.begin + cut.left;
    Element* const to = elements_[left.place].get();
    wide::few::divide(lists(open), mark_left(open, cut).data(), rows_.size(),
                      {search_left ? to + left.begin : nullptr,
                       search_right ? to + right.begin : nullptr, cut.left});
    // The smaller side first, as everywhere.
    const bool left_first = left.n <= right.n;
    if (left_first && search_right) open_.push_back(right);
    if (search_left) open_.push_back(left);
    if (!left_first && search_right) open_.push_back(right);
}

// Bits by row. Those of other nodes' rows do not matter, so it is enough to go through the smaller
// side.
FewRows::Bits FewRows::mark_left(const Open& open, const Cut& cut) const {
    const bool left_smaller = 2 * cut.left <= open.n;
    const Element* const elements = list(open, cut.list);
    Bits bits;
    bits.fill(left_smaller ? 0 : ~std::uint64_t{0});
    const Element* const begin = elements + (left_smaller ? 0 : cut.left);
    const Element* const end = elements + (left_smaller ? cut.left : open.n);
    for (const Element* e = begin; e != end; ++e) {
        const std::uint32_t row = *e & wide::few::kRow;
        bits[row / 64] ^= std::uint64_t{1} << row % 64;
    }
    return bits;
}

void FewRows::put_rows(const Element* elements, std::uint32_t n, std::uint32_t at) const {
    for (std::uint32_t i = 0; i < n; ++i) order_[at + i] = rows_[elements[i] & wide::few::kRow];
}

}  // namespace evertree
