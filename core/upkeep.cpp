#include "upkeep.hpp"

#include <algorithm>
#include <bit>

namespace evertree {

namespace {

// 2^ceil(log2 s), and 0 for the empty set: the size class of Algorithm 1, line 8.
std::uint64_t size_class(std::uint32_t built_size) {
    return built_size == 0 ? 0 : std::bit_ceil(std::uint64_t{built_size});
}

bool goes_left(const Examples& examples, const Change& change, const Split& split) {
    return split.sends_left(change.x != nullptr ? change.x[split.feature]
                                                : examples.value(change.slot, split.feature));
}

constexpr std::uint32_t kMostUpdates = std::uint32_t{1} << 31;
constexpr std::size_t kKeepRowsUpTo = 4096, kKeepPlansUpTo = 4;
constexpr int kLevelsOfParts = 3;        // below a node that its floor may be made up of
constexpr std::size_t kFewChanges = 2;   // a correction takes one row out and another in
constexpr std::size_t kPutOffShare = 4;  // larger parts of a subtree are built at once

}  // namespace

void Upkeep::prepare(const Examples& examples, std::span<const Change> changes, Watch& watch) {
    start(changes);
    const bool any_deletion = work_.deletes > stats_.deletes;
    if (any_deletion || tree_.has_places()) tree_.make_room_for_places(examples.slots_end());
    try {
        repair(examples, route(examples, watch), watch);
        grow_rebuilds();
    } catch (...) {
        undo(examples);
        throw;
    }
}

void Upkeep::prepare_rebuild(const Examples& examples, Watch& watch) {
    start({});
    touched_.assign(1, Touched{kRoot, 0, 0, 0});
    plan_rebuild(examples, 0, false, watch);
    grow_rebuilds();
}

void Upkeep::commit() noexcept {
    for (Rebuild& rebuild : rebuilds()) {
        tree_.replace(rebuild.node, rebuild.grown);
        look_again_above(rebuild.node);
    }
    forget_rebuilds();
    stats_ = work_;
}

void Upkeep::cancel(const Examples& examples) noexcept {
    for (Rebuild& rebuild : rebuilds()) tree_.discard(rebuild.grown);
    forget_rebuilds();
    undo(examples);
}

// ---- what was put off ---------------------------------------------------------------------------

void Upkeep::finish_way(const Examples& examples, const double* x, Watch& watch) {
    NodeId id = kRoot;
    for (std::uint32_t depth = 0;; ++depth) {
        if (tree_[id].put_off) build_now(examples, id, depth, true, watch);
        if (tree_[id].is_leaf()) return;
        id = tree_.child(tree_[id], x);
    }
}

void Upkeep::finish(const Examples& examples, Watch& watch) {
    while (tree_.any_put_off()) {
        const NodeId id = tree_.any_of_put_off();
        build_now(examples, id, tree_.depth_of(id), false, watch);
    }
}

void Upkeep::build_now(const Examples& examples, NodeId node, std::uint32_t depth, bool may_put_off,
                       Watch& watch) {
    plan(examples, node, depth, may_put_off, late_plan_, watch);
    const Node grown = tree_.grow(late_plan_);
    tree_.replace(node, grown);
    if (late_plan_.rows.capacity() > 2 * kKeepRowsUpTo) late_plan_ = {};
}

// ---- changes ------------------------------------------------------------------------------------

void Upkeep::start(std::span<const Change> changes) {
    changes_.assign(changes.begin(), changes.end());
    forget_rebuilds();
    work_ = stats_;
    for (const Change& change : changes) ++(change.is_insertion ? work_.inserts : work_.deletes);
}

// A row that comes takes nothing away: a split that was allowed stays so, and one that is safe from
// gaps needs no look. What may have to be repaired is at the end of the way. (By the paper's rule
// nothing is ever known to be safe.)
std::size_t Upkeep::route_one(const Examples& examples, Watch& watch) {
    const Change change = changes_[0];
    const ClassId label = examples.label(change.slot);
    touched_.clear();
    std::size_t n_safe = 0;
    bool all_safe = change.is_insertion;
    for (NodeId id = kRoot;;) {
        const Touched at{id, static_cast<std::uint32_t>(touched_.size()), 0, 1};
        if (tree_[id].put_off) build_now(examples, id, at.depth, true, watch);
        if (change.is_insertion) make_room_for_one(id, label);
        touched_.push_back(at);
        apply(examples, change, at);
        const Node& node = tree_[id];
        if (node.is_leaf()) return n_safe;
        all_safe = all_safe && node.updates_since_build <= node.safe_updates;
        n_safe += all_safe ? 1 : 0;
        id = node.left + (goes_left(examples, change, node.split) ? 0u : 1u);
    }
}

// What make_room does, for one row that comes: 2 % of a stream.
void Upkeep::make_room_for_one(NodeId id, ClassId label) {
    if (!tree_.has_class(id, label)) tree_.make_room_for_classes(id, 1);
    if (tree_[id].is_leaf()) tree_.make_room_for_rows(id, 1);
}

// The nodes that the changes pass, each with its range of changes_, where they are counted.
std::size_t Upkeep::route(const Examples& examples, Watch& watch) {
    if (changes_.size() == 1) return route_one(examples, watch);
    touched_.clear();
    to_route_.assign(1, Touched{kRoot, 0, 0, static_cast<std::uint32_t>(changes_.size())});
    while (!to_route_.empty()) {
        const Touched at = to_route_.back();
        to_route_.pop_back();
        if (tree_[at.node].put_off) build_now(examples, at.node, at.depth, true, watch);
        make_room(examples, at);
        touched_.push_back(at);
        for (std::uint32_t i = at.begin; i < at.end; ++i) apply(examples, changes_[i], at);
        const Node& node = tree_[at.node];
        if (node.is_leaf()) continue;
        const auto middle = std::partition(
            changes_.begin() + at.begin, changes_.begin() + at.end,
            [&](const Change& change) { return goes_left(examples, change, node.split); });
        const auto split_at = static_cast<std::uint32_t>(middle - changes_.begin());
        if (split_at < at.end) to_route_.push_back({node.right(), at.depth + 1, split_at, at.end});
        if (at.begin < split_at) to_route_.push_back({node.left, at.depth + 1, at.begin, split_at});
    }
    return 0;
}

void Upkeep::make_room(const Examples& examples, const Touched& at) {
    std::size_t n_new_class = 0, n_inserted = 0;
    for (std::uint32_t i = at.begin; i < at.end; ++i) {
        if (!changes_[i].is_insertion) continue;
        ++n_inserted;
        n_new_class += !tree_.has_class(at.node, examples.label(changes_[i].slot));
    }
    if (n_new_class > 0) tree_.make_room_for_classes(at.node, n_new_class);
    if (n_inserted > 0 && tree_[at.node].is_leaf()) tree_.make_room_for_rows(at.node, n_inserted);
}

void Upkeep::undo(const Examples& examples) noexcept {
    for (const Touched& at : touched_) {
        for (std::uint32_t i = at.end; i > at.begin; --i) undo(examples, changes_[i - 1], at);
    }
}

void Upkeep::apply(const Examples& examples, const Change& change, const Touched& at) noexcept {
    Node& node = tree_[at.node];
    const ClassId label = examples.label(change.slot);
    // Counted on the whole path, also where nothing is rebuilt: the amortised charge rests on it.
    ++node.updates_since_build;
    if (change.is_insertion) {
        enter(examples, at.node, change.slot);
    } else {
        ++node.deletions_since_build;
        if (std::uint32_t* const gone = tree_.gone_of(at.node, label)) ++*gone;
        leave(examples, at.node, change.slot);
    }
}

void Upkeep::undo(const Examples& examples, const Change& change, const Touched& at) noexcept {
    Node& node = tree_[at.node];
    const ClassId label = examples.label(change.slot);
    node.safe_updates = 0;  // it may have been set with the changes in
    --node.updates_since_build;
    if (change.is_insertion) {
        leave(examples, at.node, change.slot);
    } else {
        --node.deletions_since_build;
        if (std::uint32_t* const gone = tree_.gone_of(at.node, label)) --*gone;
        enter(examples, at.node, change.slot);
    }
}

void Upkeep::enter(const Examples& examples, NodeId id, Slot slot) noexcept {
    const bool is_leaf = tree_[id].is_leaf();
    if (is_leaf) note_if_equal(examples, tree_[id], slot);
    tree_.count_in(id, examples.label(slot));
    if (is_leaf) tree_.list(id, slot);
}

void Upkeep::note_if_equal(const Examples& examples, Node& leaf, Slot coming) noexcept {
    const auto rows = tree_.rows(leaf);
    leaf.all_equal = rows.empty() || (leaf.all_equal && examples.same_x(rows[0], coming));
}

void Upkeep::leave(const Examples& examples, NodeId id, Slot slot) noexcept {
    tree_.count_out(id, examples.label(slot));
    if (tree_[id].is_leaf()) tree_.unlist(id, slot);
}

// ---- repair -------------------------------------------------------------------------------------

void Upkeep::repair(const Examples& examples, std::size_t first, Watch& watch) {
    for (std::size_t i = first; i < touched_.size();) {
        if (!fires(examples, touched_[i], watch)) {
            ++i;
            continue;
        }
        const std::size_t highest = highest_of_size_class(i);
        // What was planned below the new subtree's root is planned again as a part of it.
        while (n_rebuilds_ > 0 && rebuilds().back().touched > highest) --n_rebuilds_;
        plan_rebuild(examples, highest, changes_.size() <= kFewChanges, watch);
        const std::uint32_t depth = touched_[highest].depth;
        do ++i;
        while (i < touched_.size() && touched_[i].depth > depth);
    }
}

bool Upkeep::fires(const Examples& examples, const Touched& at, Watch& watch) {
    Node& node = tree_[at.node];
    if (node.updates_since_build >= kMostUpdates) return true;  // before the counters run over
    if (!limits_.certified_rule()) {
        const double size = node.built_size;
        if (node.updates_since_build > limits_.epsilon * size + kTolerance * size) return true;
        // A leaf for want of a separating split: our exception, so we end it with its reason.
        return node.built_inseparable && leaf_must_split(examples, node, at.depth);
    }
    if (node.is_leaf()) {
        // Built on nothing: whatever fills an empty tree first is one Build.
        const bool is_first = node.built_size == 0 && node.tally.size > 0;
        return is_first || leaf_must_split(examples, node, at.depth);
    }
    // A subtree of which most has left may be all emptied leaves: rebuilt, it bounds the space.
    const bool has_shrunk = 2 * node.tally.size < node.built_size;
    return has_shrunk || !limits_.may_split(node.tally, at.depth) ||
           gap_may_exceed(examples, at, watch);
}

// M_sigma - floor > beta * n: from here on some split may be more than beta better. An update
// brings the two sides at most 2 + beta closer, so there is nothing to compute for a while.
bool Upkeep::gap_may_exceed(const Examples& examples, const Touched& at, Watch& watch) {
    const Node& node = tree_[at.node];
    if (node.updates_since_build <= node.safe_updates) return false;
    const double left_by_split = mass({tree_[node.left].tally, tree_[node.right()].tally});
    const double wanted =
        left_by_split - (limits_.max_gap - kTolerance) * static_cast<double>(node.tally.size);
    double floor = floor_since_build(node);
    if (floor < wanted) floor = floor_by_parts(examples, at.node, at.depth, kLevelsOfParts, watch);
    if (floor < wanted) return true;
    const double n_safe = (floor - wanted) / (kMassPerDeletion + limits_.max_gap) - 1.0;
    if (n_safe >= 1.0) {
        tree_[at.node].safe_updates =
            tree_[at.node].updates_since_build + static_cast<std::uint32_t>(std::min(n_safe, 1e9));
    }
    return false;
}

// Examples of a class that came after the build go as they came: no loss.
double Upkeep::floor_since_build(const Node& node) const {
    if (node.deletions_since_build == 0) return node.floor_at_build;
    Tally built;
    for (const Departures& each : tree_.departures(node)) {
        built.size += each.built;
        built.squares += std::uint64_t{each.built} * each.built;
    }
    double floor = node.floor_at_build;
    for (const Departures& each : tree_.departures(node)) {
        floor -= mass_lost(built, node.floor_at_build, each.built, each.gone);
    }
    return std::max(0.0, floor);
}

// No split leaves less of a set than of its parts, and the parts may have been built lately.
double Upkeep::floor_by_parts(const Examples& examples, NodeId id, std::uint32_t depth, int levels,
                              Watch& watch) {
    if (tree_[id].put_off) build_now(examples, id, depth, true, watch);
    if (tree_[id].is_leaf()) return 0.0;
    const double since_build = floor_since_build(tree_[id]);
    if (levels == 0) return since_build;
    const NodeId left = tree_[id].left;
    const double of_left = floor_by_parts(examples, left, depth + 1, levels - 1, watch);
    const double of_right = floor_by_parts(examples, left + 1, depth + 1, levels - 1, watch);
    return std::max(since_build, of_left + of_right);
}

// A part that has become a leaf has no floor.
void Upkeep::look_again_above(NodeId rebuilt) noexcept {
    NodeId above = tree_[rebuilt].parent;
    for (int level = 0; level < kLevelsOfParts && above != kNoNode; ++level) {
        tree_[above].safe_updates = 0;
        above = tree_[above].parent;
    }
}

bool Upkeep::leaf_must_split(const Examples& examples, Node& leaf, std::uint32_t depth) {
    if (leaf.all_equal || !limits_.must_split(leaf.tally, depth)) return false;
    const auto rows = tree_.rows(leaf);
    leaf.all_equal = std::all_of(rows.begin(), rows.end(),
                                 [&](Slot slot) { return examples.same_x(slot, rows[0]); });
    return !leaf.all_equal;
}

std::size_t Upkeep::highest_of_size_class(std::size_t touched) const {
    const std::uint64_t limit = size_class(tree_[touched_[touched].node].built_size);
    NodeId highest = touched_[touched].node;
    for (NodeId id = highest; id != kNoNode; id = tree_[id].parent) {
        if (tree_[id].built_size <= limit) highest = id;
    }
    // Whatever an update touches, it touches the path to it as well.
    while (touched_[touched].node != highest) --touched;
    return touched;
}

void Upkeep::plan_rebuild(const Examples& examples, std::size_t touched, bool may_put_off,
                          Watch& watch) {
    const Touched& at = touched_[touched];
    if (n_rebuilds_ == rebuilds_.size()) rebuilds_.emplace_back();
    Rebuild& rebuild = rebuilds_[n_rebuilds_];
    rebuild.node = at.node;
    rebuild.touched = touched;
    ++work_.rebuilds;
    work_.rows_rebuilt += tree_[at.node].tally.size;
    plan(examples, at.node, at.depth, may_put_off, rebuild.plan, watch);
    ++n_rebuilds_;
}

void Upkeep::plan(const Examples& examples, NodeId node, std::uint32_t depth, bool may_put_off,
                  Plan& plan, Watch& watch) {
    const std::size_t n_old = tree_.collect_rows_by_age(node, plan.rows);
    std::optional<PutOff> put_off;
    if (may_put_off) {
        put_off = {static_cast<std::uint32_t>(plan.rows.size() / kPutOffShare),
                   static_cast<std::uint32_t>(n_old)};
    }
    builder_.build(examples, tree_.counts(tree_[node]), depth, put_off, plan, watch);
}

void Upkeep::forget_rebuilds() noexcept {
    n_rebuilds_ = 0;
    if (rebuilds_.size() > kKeepPlansUpTo) rebuilds_.resize(kKeepPlansUpTo);
    for (Rebuild& rebuild : rebuilds_) {
        if (rebuild.plan.rows.size() > kKeepRowsUpTo) rebuild.plan = {};
    }
}

void Upkeep::grow_rebuilds() {
    std::size_t n_grown = 0;
    try {
        for (; n_grown < n_rebuilds_; ++n_grown) {
            rebuilds_[n_grown].grown = tree_.grow(rebuilds_[n_grown].plan);
        }
    } catch (...) {
        while (n_grown > 0) tree_.discard(rebuilds_[--n_grown].grown);
        throw;
    }
}

}  // namespace evertree
