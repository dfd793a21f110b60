#include "build.hpp"

#include <algorithm>
#include <utility>

namespace evertree {

namespace {

constexpr std::uint32_t kNoNumber = 0xffffffff;
constexpr std::size_t kKeepScratchUpTo = std::size_t{1} << 19;  // elements
constexpr std::size_t kTogetherFrom = std::size_t{1} << 18;     // elements: below, one is faster

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
    if (plan.rows.size() * columns_.kinds.size() > kKeepScratchUpTo) release();
}

void Builder::release() {
    columns_.release();
    workers_.resize(1);
    workers_[0]->search.release();
}

// Classes are numbered in the order of their ids, so that counts stay sorted by class.
void Builder::number_classes(const Examples& examples, std::span<const Slot> rows) {
    for (const ClassId id : class_ids_) numbers_[id] = kNoNumber;
    class_ids_.clear();
    classes_.resize(rows.size());
    for (std::size_t row = 0; row < rows.size(); ++row) {
        examples.prefetch_ahead(rows, row);
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
}

void Builder::plan_root(Plan& plan, std::uint32_t n_rows) {
    PlannedNode& root = plan.nodes.emplace_back();
    root.end = n_rows;
    for (std::uint32_t c = 0; c < class_ids_.size(); ++c) plan.counts.push_back({c, 0});
    for (const std::uint32_t c : classes_) root.tally.add(plan.counts[c].count++);
    root.counts_end = static_cast<std::uint32_t>(plan.counts.size());
}

void Builder::plan_splits(const Examples& examples, std::span<const Slot> rows, std::uint32_t depth,
                          Plan& plan, Watch& watch) {
    Worker& first = *workers_[0];
    first.open.clear();
    columns_.prepare(examples, rows, classes_, static_cast<std::uint32_t>(class_ids_.size()));
    if (n_workers_ > 1 && rows.size() * columns_.kinds.size() >= kTogetherFrom) {
        Crew crew(n_workers_);
        hire(crew.size());
        first.open.push_back({0, depth, load(&crew, watch)});
        plan_together(crew, plan, watch);
    } else {
        hire(1);
        first.open.push_back({0, depth, load(nullptr, watch)});
        plan_alone(first, plan, watch);
    }
}

void Builder::hire(std::size_t n_workers) {
    while (workers_.size() < n_workers) workers_.push_back(std::make_unique<Worker>(columns_));
    for (std::size_t w = 0; w < n_workers; ++w) {
        workers_[w]->search.reserve();
        workers_[w]->class_counts.assign(class_ids_.size(), 0);
    }
}

void Builder::plan_alone(Worker& worker, Plan& plan, Watch& watch) {
    SplitSearch& search = worker.search;
    const auto best_of = [&](Segment& segment, std::span<const ClassCount> counts) {
        return search.best(segment, counts, watch);
    };
    const auto divide = [&](const Segment& segment, const Candidate& split, bool search_left,
                            bool search_right, Segment& left, Segment& right) {
        search.divide(segment, split, search_left, search_right, left, right, watch);
    };
    while (!worker.open.empty()) {
        const Open open = worker.open.back();
        worker.open.pop_back();
        plan_node(worker, plan, open, best_of, divide);
    }
}

template <typename Best, typename Divide>
void Builder::plan_node(Worker& worker, Plan& plan, Open open, Best best_of, Divide divide) {
    PlannedNode* node = &plan.nodes[open.node];
    const std::span<const ClassCount> counts(plan.counts.data() + node->counts_begin,
                                             node->counts_end - node->counts_begin);
    const Candidate best = best_of(open.segment, counts);
    if (!best.found) {
        node->inseparable = true;
        return worker.search.close(open.segment);
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
    divide(open.segment, best, search_left, search_right, on_left.segment, on_right.segment);
    plan_children(worker, plan, open, on_left.segment.end);
    // The smaller side first: then at most log2(n) sides wait at any time.
    const bool left_first = on_left.segment.size() <= on_right.segment.size();
    if (left_first && search_right) worker.open.push_back(on_right);
    if (search_left) worker.open.push_back(on_left);
    if (!left_first && search_right) worker.open.push_back(on_right);
}

// Row ranges and class counts of the two children; only the smaller side is counted.
void Builder::plan_children(Worker& worker, Plan& plan, const Open& parent, std::uint32_t middle) {
    std::vector<std::uint32_t>& class_counts = worker.class_counts;
    const std::uint32_t left_id = plan.nodes[parent.node].left;
    const std::uint32_t counts_begin = plan.nodes[parent.node].counts_begin;
    const std::uint32_t counts_end = plan.nodes[parent.node].counts_end;
    PlannedNode &left = plan.nodes[left_id], &right = plan.nodes[left_id + 1];
    left.begin = parent.segment.begin;
    left.end = right.begin = middle;
    right.end = parent.segment.end;
    const bool left_smaller = left.end - left.begin <= right.end - right.begin;
    const PlannedNode& smaller = left_smaller ? left : right;
    for (const std::uint32_t row : columns_.row_span(smaller.begin, smaller.end)) {
        ++class_counts[classes_[row]];
    }
    const auto append = [&](PlannedNode& node, bool is_smaller) {
        node.counts_begin = static_cast<std::uint32_t>(plan.counts.size());
        for (std::uint32_t i = counts_begin; i < counts_end; ++i) {
            const ClassCount all = plan.counts[i];
            const std::uint32_t of_smaller = class_counts[all.label];
            const std::uint32_t count = is_smaller ? of_smaller : all.count - of_smaller;
            if (count > 0) plan.counts.push_back({all.label, count});
        }
        node.counts_end = static_cast<std::uint32_t>(plan.counts.size());
    };
    append(left, left_smaller);
    append(right, !left_smaller);
    for (std::uint32_t i = counts_begin; i < counts_end; ++i)
        class_counts[plan.counts[i].label] = 0;
}

void Builder::finish(Plan& plan, std::span<const Slot> rows) const {
    const auto order = columns_.row_span(0, static_cast<std::uint32_t>(rows.size()));
    plan.rows.resize(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) plan.rows[i] = rows[order[i]];
}

// ---- several workers ----------------------------------------------------------------------------

namespace {

constexpr std::size_t kTaskShare = 32;       // nodes with less of the rows are one worker's
constexpr std::size_t kMarkedAtOnce = 8192;  // rows

}  // namespace

Segment Builder::load(Crew* crew, Watch& watch) {
    const std::size_t n_features = columns_.kinds.size();
    SplitSearch& first = workers_[0]->search;
    if (crew == nullptr) {
        first.code(0, n_features, watch);
        first.sort(0, n_features, watch);
        const Segment whole = first.open();
        for (const std::uint32_t entry : first.features(whole)) {
            first.count_whole(whole, entry, watch);
        }
        return whole;
    }
    // A row's values lie side by side: for coding, each worker takes a part of every row.
    const std::size_t at_once = std::min(wide::kColumns, (n_features + 1) / crew->size());
    crew->each((n_features + at_once - 1) / at_once, watch,
               [&](std::size_t w, std::size_t item, Watch& own_watch) {
                   const std::size_t begin = item * at_once;
                   const std::size_t end = std::min(begin + at_once, n_features);
                   workers_[w]->search.code(begin, end, own_watch);
               });
    constexpr std::size_t few = 2;
    crew->each((n_features + few - 1) / few, watch,
               [&](std::size_t w, std::size_t item, Watch& own_watch) {
                   const std::size_t begin = item * few;
                   const std::size_t end = std::min(begin + few, n_features);
                   workers_[w]->search.sort(begin, end, own_watch);
               });
    const Segment whole = first.open();
    const auto features = first.features(whole);
    crew->each(features.size(), watch, [&](std::size_t w, std::size_t item, Watch& own_watch) {
        workers_[w]->search.count_whole(whole, features[item], own_watch);
    });
    return whole;
}

void Builder::plan_together(Crew& crew, Plan& plan, Watch& watch) {
    Worker& first = *workers_[0];
    const auto best_of = [&](Segment& segment, std::span<const ClassCount> counts) {
        return best_together(crew, segment, counts, watch);
    };
    const auto divide = [&](const Segment& segment, const Candidate& split, bool search_left,
                            bool search_right, Segment& left, Segment& right) {
        divide_together(crew, segment, split, search_left, search_right, left, right, watch);
    };
    std::vector<Subtree> subtrees;
    while (!first.open.empty()) {
        const Open open = first.open.back();
        first.open.pop_back();
        if (open.segment.size() * kTaskShare >= columns_.n) {
            plan_node(first, plan, open, best_of, divide);
        } else {
            const auto features = first.search.features(open.segment);
            subtrees.push_back({open, {features.begin(), features.end()}, {}});
        }
    }
    std::sort(subtrees.begin(), subtrees.end(), [](const Subtree& a, const Subtree& b) {
        return a.root.segment.size() > b.root.segment.size();
    });
    crew.each(subtrees.size(), watch, [&](std::size_t w, std::size_t item, Watch& own_watch) {
        plan_subtree(*workers_[w], plan, subtrees[item], own_watch);
    });
    for (const Subtree& subtree : subtrees) append(plan, subtree);
}

void Builder::plan_subtree(Worker& worker, const Plan& plan, Subtree& subtree, Watch& watch) {
    const PlannedNode& root = plan.nodes[subtree.root.node];
    subtree.plan.nodes.push_back(root);
    subtree.plan.counts.assign(plan.counts.begin() + root.counts_begin,
                               plan.counts.begin() + root.counts_end);
    subtree.plan.nodes[0].counts_begin = 0;
    subtree.plan.nodes[0].counts_end = root.counts_end - root.counts_begin;
    Open open = subtree.root;
    open.node = 0;
    worker.search.set_features(open.segment, subtree.features);
    worker.open.assign(1, open);
    plan_alone(worker, subtree.plan, watch);
}

void Builder::append(Plan& plan, const Subtree& subtree) {
    const auto nodes_before = static_cast<std::uint32_t>(plan.nodes.size() - 1);
    const auto counts_before = static_cast<std::uint32_t>(plan.counts.size());
    plan.counts.insert(plan.counts.end(), subtree.plan.counts.begin(), subtree.plan.counts.end());
    for (std::size_t i = 0; i < subtree.plan.nodes.size(); ++i) {
        PlannedNode node = subtree.plan.nodes[i];
        node.left += nodes_before;
        node.counts_begin += counts_before;
        node.counts_end += counts_before;
        if (i == 0) {
            plan.nodes[subtree.root.node] = node;
        } else {
            plan.nodes.push_back(node);
        }
    }
}

Candidate Builder::best_together(Crew& crew, Segment& segment, std::span<const ClassCount> counts,
                                 Watch& watch) {
    SplitSearch& first = workers_[0]->search;
    const std::span<std::uint32_t> features = first.open_features(segment);
    std::vector<Candidate> found(features.size());
    crew.each(features.size(), watch, [&](std::size_t w, std::size_t item, Watch& own_watch) {
        found[item] =
            workers_[w]->search.best_of(features.subspan(item, 1), segment, counts, own_watch);
    });
    Candidate best;
    for (const Candidate& other : found) {  // ties go to the lower feature
        if (!other.found) continue;
        if (!best.found || leaves_less(other.sides, best.sides)) best = other;
    }
    first.close_features(segment);
    first.set_value(best);
    return best;
}

void Builder::divide_together(Crew& crew, const Segment& segment, const Candidate& split,
                              bool search_left, bool search_right, Segment& left, Segment& right,
                              Watch& watch) {
    SplitSearch& first = workers_[0]->search;
    const std::size_t n_marks = (segment.size() + kMarkedAtOnce - 1) / kMarkedAtOnce;
    crew.each(n_marks, watch, [&](std::size_t w, std::size_t item, Watch& own_watch) {
        const auto begin = static_cast<std::uint32_t>(segment.begin + item * kMarkedAtOnce);
        const auto end = static_cast<std::uint32_t>(begin + kMarkedAtOnce);
        workers_[w]->search.mark_left(segment, split, begin, std::min(end, segment.end));
        own_watch.worked(kMarkedAtOnce);
    });
    first.divide_rows(segment, split, left, right, watch);
    if (!search_left && !search_right) return first.close(segment);
    const std::span<const std::uint32_t> features = first.features(segment);
    first.begin_counts(segment, features, left, search_left, right, search_right);
    crew.each(features.size(), watch, [&](std::size_t w, std::size_t item, Watch& own_watch) {
        const auto one = features.subspan(item, 1);
        workers_[w]->search.divide_features(one, segment, own_watch);
        workers_[w]->search.divide_counts(one, left, right, own_watch);
    });
    first.end_counts(left, search_left, right, search_right);
}

}  // namespace evertree
