#include "build.hpp"

#include <algorithm>
#include <utility>

namespace evertree {

namespace {

constexpr std::uint32_t kNoNumber = 0xffffffff;
constexpr std::size_t kKeepScratchUpTo = std::size_t{1} << 19;  // elements

}  // namespace

void Builder::build(const Examples& examples, std::vector<Slot> rows, std::uint32_t depth,
                    Plan& plan, Watch& watch) {
    plan.nodes.clear();
    plan.counts.clear();
    number_classes(examples, rows);
    plan_root(plan, static_cast<std::uint32_t>(rows.size()));
    const bool leaf = limits_.build_stops(plan.nodes[0].tally, depth);
    if (!leaf) plan_splits(examples, rows, depth, plan, watch);
    if (leaf) {
        plan.rows = std::move(rows);
    } else {
        finish(plan, rows);
    }
    for (ClassCount& c : plan.counts) c.label = class_ids_[c.label];
    // A large rebuild must not leave its scratch behind for a million small ones.
    if (plan.rows.size() * n_features_ > kKeepScratchUpTo) search_.release();
}

// Classes are numbered in the order of their ids, so that counts stay sorted by class.
void Builder::number_classes(const Examples& examples, std::span<const Slot> rows) {
    for (const ClassId id : class_ids_) numbers_[id] = kNoNumber;
    class_ids_.clear();
    classes_.resize(rows.size());
    for (std::size_t row = 0; row < rows.size(); ++row) {
        const ClassId id = examples.label(rows[row]);
        if (id >= numbers_.size()) numbers_.resize(id + std::size_t{1}, kNoNumber);
        if (numbers_[id] == kNoNumber) {
            class_ids_.push_back(id);
            numbers_[id] = 0;
        }
        classes_[row] = id;
    }
    std::sort(class_ids_.begin(), class_ids_.end());
    for (std::size_t i = 0; i < class_ids_.size(); ++i) {
        numbers_[class_ids_[i]] = static_cast<std::uint32_t>(i);
    }
    for (std::uint32_t& c : classes_) c = numbers_[c];
    class_counts_.assign(class_ids_.size(), 0);
}

void Builder::plan_root(Plan& plan, std::uint32_t n_rows) {
    PlannedNode& root = plan.nodes.emplace_back();
    root.end = n_rows;
    for (const std::uint32_t c : classes_) root.tally.add(class_counts_[c]++);
    for (std::uint32_t c = 0; c < class_ids_.size(); ++c) {
        plan.counts.push_back({c, std::exchange(class_counts_[c], 0)});
    }
    root.counts_end = static_cast<std::uint32_t>(plan.counts.size());
}

void Builder::plan_splits(const Examples& examples, std::span<const Slot> rows, std::uint32_t depth,
                          Plan& plan, Watch& watch) {
    open_.clear();
    const auto n_classes = static_cast<std::uint32_t>(class_ids_.size());
    open_.push_back({0, depth, search_.load(examples, rows, classes_, n_classes, watch)});
    while (!open_.empty()) {
        Open open = open_.back();
        open_.pop_back();
        PlannedNode* node = &plan.nodes[open.node];
        const std::span<const ClassCount> counts(plan.counts.data() + node->counts_begin,
                                                 node->counts_end - node->counts_begin);
        const Candidate best = search_.best(open.segment, counts, watch);
        if (!best.found) {
            node->inseparable = true;
            search_.close(open.segment);
            continue;
        }
        node->split = best.split;
        node->floor = mass(best.sides);
        node->left = static_cast<std::uint32_t>(plan.nodes.size());
        const std::uint32_t left = node->left;
        plan.nodes.resize(plan.nodes.size() + 2);
        plan.nodes[left].tally = best.sides.left;
        plan.nodes[left + 1].tally = best.sides.right;
        const bool search_left = !limits_.build_stops(best.sides.left, open.depth + 1);
        const bool search_right = !limits_.build_stops(best.sides.right, open.depth + 1);
        Open on_left{left, open.depth + 1, {}}, on_right{left + 1, open.depth + 1, {}};
        search_.divide(open.segment, best, search_left, search_right, on_left.segment,
                       on_right.segment, watch);
        plan_children(plan, open, on_left.segment.end);
        // The smaller side first: then at most log2(n) sides wait at any time.
        const bool left_first = on_left.segment.size() <= on_right.segment.size();
        if (left_first && search_right) open_.push_back(on_right);
        if (search_left) open_.push_back(on_left);
        if (!left_first && search_right) open_.push_back(on_right);
    }
}

// Row ranges and class counts of the two children; only the smaller side is counted.
void Builder::plan_children(Plan& plan, const Open& parent, std::uint32_t middle) {
    const std::uint32_t left_id = plan.nodes[parent.node].left;
    const std::uint32_t counts_begin = plan.nodes[parent.node].counts_begin;
    const std::uint32_t counts_end = plan.nodes[parent.node].counts_end;
    PlannedNode &left = plan.nodes[left_id], &right = plan.nodes[left_id + 1];
    left.begin = parent.segment.begin;
    left.end = right.begin = middle;
    right.end = parent.segment.end;
    const bool left_smaller = left.end - left.begin <= right.end - right.begin;
    const PlannedNode& smaller = left_smaller ? left : right;
    for (const std::uint32_t row : search_.rows(smaller.begin, smaller.end)) {
        ++class_counts_[classes_[row]];
    }
    const auto append = [&](PlannedNode& node, bool is_smaller) {
        node.counts_begin = static_cast<std::uint32_t>(plan.counts.size());
        for (std::uint32_t i = counts_begin; i < counts_end; ++i) {
            const ClassCount all = plan.counts[i];
            const std::uint32_t of_smaller = class_counts_[all.label];
            const std::uint32_t count = is_smaller ? of_smaller : all.count - of_smaller;
            if (count > 0) plan.counts.push_back({all.label, count});
        }
        node.counts_end = static_cast<std::uint32_t>(plan.counts.size());
    };
    append(left, left_smaller);
    append(right, !left_smaller);
    for (std::uint32_t i = counts_begin; i < counts_end; ++i)
        class_counts_[plan.counts[i].label] = 0;
}

void Builder::finish(Plan& plan, std::span<const Slot> rows) const {
    const auto order = search_.rows(0, static_cast<std::uint32_t>(rows.size()));
    plan.rows.resize(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) plan.rows[i] = rows[order[i]];
}

}  // namespace evertree
