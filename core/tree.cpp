#include "tree.hpp"

#include <algorithm>
#include <utility>

namespace evertree {

// The root has a neighbour that is never used, so that every pair starts at an even number.
Tree::Tree() : nodes_(2) {}

NodeId Tree::leaf_of(const double* x) const {
    NodeId id = kRoot;
    while (!nodes_[id].is_leaf()) id = child(nodes_[id], x);
    return id;
}

NodeId Tree::answering(const double* x) const {
    NodeId id = leaf_of(x);
    while (nodes_[id].tally.size == 0 && id != kRoot) id = nodes_[id].parent;
    return id;
}

ClassId Tree::majority(NodeId id, std::span<const std::uint32_t> rank) const {
    const auto precedes = [&](const ClassCount& a, const ClassCount& b) {
        return a.count != b.count ? a.count > b.count : rank[a.label] < rank[b.label];
    };
    const auto all = counts(nodes_[id]);
    return std::min_element(all.begin(), all.end(), precedes)->label;
}

template <typename Do>
void Tree::each_leaf(NodeId subtree, Do do_this) const {
    const auto is_right = [](NodeId id) { return id % 2 == 1; };
    for (NodeId id = subtree;; ++id) {
        while (!nodes_[id].is_leaf()) id = nodes_[id].left;
        do_this(nodes_[id]);
        while (id != subtree && is_right(id)) id = nodes_[id].parent;
        if (id == subtree) return;
    }
}

void Tree::collect_rows(NodeId subtree, std::vector<Slot>& rows_out) const {
    each_leaf(subtree, [&](const Node& leaf) {
        const auto own = rows(leaf);
        rows_out.insert(rows_out.end(), own.begin(), own.end());
    });
}

std::size_t Tree::collect_rows_by_age(NodeId subtree, std::vector<Slot>& rows_out) const {
    rows_out.resize(static_cast<std::size_t>(nodes_[subtree].tally.size));
    auto old_end = rows_out.begin(), new_begin = rows_out.end();
    each_leaf(subtree, [&](const Node& leaf) {
        // A leaf lists what comes behind what it has.
        const auto own = rows(leaf);
        const std::size_t n_gone = std::min(leaf.deletions_since_build, leaf.built_size);
        const std::size_t n_old = std::min(leaf.built_size - n_gone, own.size());
        old_end = std::copy_n(own.begin(), n_old, old_end);
        new_begin = std::copy_backward(own.begin() + n_old, own.end(), new_begin);
    });
    return static_cast<std::size_t>(old_end - rows_out.begin());
}

void Tree::make_room_for_classes(NodeId id, std::size_t more) {
    Node& node = nodes_[id];
    const std::size_t wanted = node.n_classes + more;
    if (node.many_counts.capacity() > 0) {
        counts_.grow(node.many_counts, node.n_classes, wanted);
    } else if (wanted > Node::kFewClasses) {
        node.many_counts = counts_.take(wanted);
        std::copy_n(node.few_counts.data(), node.n_classes, counts_.data(node.many_counts));
    }
}

void Tree::make_room_for_rows(NodeId leaf, std::size_t more) {
    Node& node = nodes_[leaf];
    rows_.grow(node.rows, node.tally.size, node.tally.size + more);
}

void Tree::make_room_for_places(Slot slots_end) {
    if (slots_end > places_.size()) places_.resize(slots_end);
}

const ClassCount* Tree::find_among_many(const Node& node, ClassId label) const {
    const auto all = counts(node);
    const auto place = std::ranges::lower_bound(all, label, {}, &ClassCount::label);
    return place != all.end() && place->label == label ? &*place : nullptr;
}

void Tree::count_in_first(Node& node, ClassId label) noexcept {
    ClassCount* const first = counts_of(node);
    ClassCount* const end = first + node.n_classes;
    ClassCount* const place = std::ranges::lower_bound(first, end, label, {}, &ClassCount::label);
    std::copy_backward(place, end, end + 1);
    *place = ClassCount{label, 1};
    ++node.n_classes;
    node.tally.add(0);
}

void Tree::count_out(NodeId id, ClassId label) noexcept {
    Node& node = nodes_[id];
    ClassCount* const count = find_count(node, label);
    node.tally.remove(count->count--);
    if (count->count == 0) {
        std::copy(count + 1, counts_of(node) + node.n_classes, count);
        --node.n_classes;
    }
}

void Tree::start_departures(Node& node) {
    Departures* place = node.few_departures.data();
    if (node.n_classes > Node::kFewClasses) {
        node.many_departures = departures_.take(node.n_classes);
        place = departures_.data(node.many_departures);
        std::fill_n(place, node.many_departures.capacity(), Departures{});
    }
    for (const ClassCount& each : counts(node)) *place++ = {each.label, each.count};
}

std::uint32_t* Tree::gone_of(NodeId id, ClassId label) {
    Node& node = nodes_[id];
    const bool are_few = node.many_departures.capacity() == 0;
    Departures* const first =
        are_few ? node.few_departures.data() : departures_.data(node.many_departures);
    Departures* const end = first + departures(node).size();
    Departures* const place = std::ranges::lower_bound(first, end, label, {}, &Departures::label);
    return place != end && place->label == label ? &place->gone : nullptr;
}

void Tree::list(NodeId leaf, Slot slot) noexcept {
    // The example has been counted in already: the last place is its own.
    const Node& node = nodes_[leaf];
    const auto place = static_cast<std::uint32_t>(node.tally.size - 1);
    rows_.data(node.rows)[place] = slot;
    if (node.places_known) places_[slot] = place;
}

void Tree::unlist(NodeId leaf, Slot slot) noexcept {
    // The example has been counted out already: the one behind the last takes its place.
    Node& node = nodes_[leaf];
    Slot* const rows = rows_.data(node.rows);
    if (rows[node.tally.size] == slot) return;
    if (!node.places_known) find_places(node, node.tally.size + 1);
    const std::uint32_t place = places_[slot];
    rows[place] = rows[node.tally.size];
    places_[rows[place]] = place;
}

void Tree::find_places(Node& leaf, std::size_t n_listed) noexcept {
    const Slot* const rows = rows_.data(leaf.rows);
    for (std::uint32_t i = 0; i < n_listed; ++i) places_[rows[i]] = i;
    leaf.places_known = true;
}

NodeId Tree::take_pair() {
    if (free_pairs_.empty()) {
        const auto pair = static_cast<NodeId>(nodes_.size());
        if (2 * free_pairs_.capacity() <= nodes_.size()) free_pairs_.reserve(nodes_.size());
        nodes_.resize(nodes_.size() + 2);
        n_nodes_ += 2;
        return pair;
    }
    n_nodes_ += 2;
    const NodeId pair = free_pairs_.back();
    free_pairs_.pop_back();
    if (free_pairs_.size() >= kFetchAhead) {
        const Node* const soon = &nodes_[free_pairs_[free_pairs_.size() - kFetchAhead]];
        for (const Node* node : {soon, soon + 1}) {
            __builtin_prefetch(node, 1);
            __builtin_prefetch(&node->rows, 1);
        }
    }
    nodes_[pair] = Node{};
    nodes_[pair + 1] = Node{};
    return pair;
}

void Tree::fill(Node& node, const PlannedNode& planned, const Plan& plan) {
    const auto n_rows = planned.end - planned.begin;
    const auto n_classes = planned.counts_end - planned.counts_begin;
    node.floor_at_build = planned.floor;
    node.tally = planned.tally;
    node.built_size = n_rows;
    node.built_inseparable = node.all_equal = planned.inseparable;
    if (planned.put_off) note_put_off(planned.place);
    node.put_off = planned.put_off;
    n_put_off_ += planned.put_off;
    if (n_classes > Node::kFewClasses) node.many_counts = counts_.take(n_classes);
    node.n_classes = n_classes;
    std::copy_n(plan.counts.data() + planned.counts_begin, n_classes, counts_of(node));
    if (!node.is_leaf()) start_departures(node);
    if (planned.split.kind == Kind::leaf && n_rows > 0) {
        node.rows = rows_.take(n_rows);
        std::copy_n(plan.rows.data() + planned.begin, n_rows, rows_.data(node.rows));
    }
}

void Tree::note_put_off(NodeId id) {
    constexpr std::size_t few = 64;
    if (put_off_.size() > 2 * n_put_off_ + few) {
        std::erase_if(put_off_, [&](NodeId other) { return !nodes_[other].put_off; });
        std::sort(put_off_.begin(), put_off_.end());
        put_off_.erase(std::unique(put_off_.begin(), put_off_.end()), put_off_.end());
    }
    put_off_.push_back(id);
}

NodeId Tree::any_of_put_off() {
    while (!nodes_[put_off_.back()].put_off) put_off_.pop_back();
    return put_off_.back();
}

Node Tree::grow(Plan& plan) {
    Node grown;
    plan.nodes[0].place = kNoNode;  // the root stays outside until it is swapped in
    try {
        for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
            const PlannedNode& planned = plan.nodes[i];
            const bool internal = planned.split.kind != Kind::leaf;
            const NodeId pair = internal ? take_pair() : kNoNode;
            Node& node = i == 0 ? grown : nodes_[planned.place];
            if (internal) {
                node.split = planned.split;
                node.left = pair;
                nodes_[pair].parent = nodes_[pair + 1].parent = planned.place;
                plan.nodes[planned.left].place = pair;
                plan.nodes[planned.left + 1].place = pair + 1;
            }
            fill(node, planned, plan);
        }
    } catch (...) {
        discard(grown);
        throw;
    }
    return grown;
}

void Tree::free_below(Node& top) noexcept {
    // No recursion and no stack of its own: a tree may be as deep as it has examples, and freeing
    // must not allocate.
    NodeId pending = kNoNode;  // pairs still to be freed, chained by the left node's parent
    const auto free = [&](Node& node) {
        rows_.give_back(node.rows);
        counts_.give_back(node.many_counts);
        departures_.give_back(node.many_departures);
        n_put_off_ -= std::exchange(node.put_off, false);
        if (node.is_leaf()) return;
        nodes_[node.left].parent = pending;
        pending = node.left;
    };
    free(top);
    while (pending != kNoNode) {
        const NodeId pair = pending;
        pending = nodes_[pair].parent;
        for (const NodeId id : {pair, pair + 1}) free(nodes_[id]);
        n_nodes_ -= 2;
        free_pairs_.push_back(pair);
    }
}

void Tree::discard(Node& grown) noexcept { free_below(grown); }

void Tree::replace(NodeId at, const Node& grown) noexcept {
    Node& place = nodes_[at];
    const NodeId parent = place.parent;
    free_below(place);
    place = grown;
    place.parent = parent;
    if (!place.is_leaf()) nodes_[place.left].parent = nodes_[place.right()].parent = at;
}

std::uint32_t Tree::depth_of(NodeId id) const {
    std::uint32_t depth = 0;
    for (; id != kRoot; id = nodes_[id].parent) ++depth;
    return depth;
}

std::uint32_t Tree::depth() const {
    std::uint32_t deepest = 0;
    std::vector<std::pair<NodeId, std::uint32_t>> stack{{kRoot, 0}};
    while (!stack.empty()) {
        const auto [id, depth] = stack.back();
        stack.pop_back();
        deepest = std::max(deepest, depth);
        if (nodes_[id].is_leaf()) continue;
        stack.emplace_back(nodes_[id].left, depth + 1);
        stack.emplace_back(nodes_[id].right(), depth + 1);
    }
    return deepest;
}

}  // namespace evertree
