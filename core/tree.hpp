// Tree: nodes, class counts, the leaf of an x, the label of an x.
//
// A node keeps counts, never rows; a leaf lists the slots of its examples. Siblings lie side by
// side, so the right child is left + 1. What the maintenance rules need since the node's last build
// (built_size, updates, departures, floor) stands here, but only upkeep.cpp decides by it.
//
// Invariants (certify checks them): size and squares follow from the class counts, the counts of a
// node are the sum of its children's, a leaf lists exactly the examples that route to it.
//
// A new subtree is planned (build.cpp), then grown beside the old one (`grow`, may fail), then
// swapped in (`replace`, cannot fail). Some of its nodes may be put off: they look like leaves and
// list their examples, and are built when somebody comes by (upkeep.cpp).
//
// Must not know: how splits are found, when to rebuild.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "examples.hpp"
#include "impurity.hpp"
#include "memory.hpp"

namespace evertree {

using NodeId = std::uint32_t;
inline constexpr NodeId kNoNode = 0xffffffff;
inline constexpr NodeId kRoot = 0;

struct ClassCount {
    ClassId label;
    std::uint32_t count;
};

// A place for up to 2^capacity_log2 elements in a BlockPool.
struct Block {
    static constexpr std::uint8_t kNoCapacity = 0xff;
    std::uint32_t at = 0;
    std::uint8_t capacity_log2 = kNoCapacity;

    std::uint32_t capacity() const {
        return capacity_log2 == kNoCapacity ? 0 : std::uint32_t{1} << capacity_log2;
    }
};

// What was freed long ago lies anywhere in memory: it is fetched so many turns ahead of its own.
inline constexpr std::size_t kFetchAhead = 4;

// Blocks of 2^i elements in one array; freed blocks are chained through a side list that `take`
// makes room for, so that giving back cannot fail.
template <typename T>
class BlockPool {
  public:
    Block take(std::size_t count) {
        const auto log2 = static_cast<std::uint8_t>(std::bit_width(count > 1 ? count - 1 : 0));
        std::vector<std::uint32_t>& freed = freed_[log2];
        if (!freed.empty()) {
            const Block block{freed.back(), log2};
            freed.pop_back();
            if (freed.size() >= kFetchAhead) {
                __builtin_prefetch(elements_.data() + freed[freed.size() - kFetchAhead], 1);
            }
            return block;
        }
        const std::size_t at = elements_.size();
        // Room for every block of this size on the free list: give_back must not allocate.
        if (freed.capacity() <= taken_[log2]) freed.reserve(2 * taken_[log2] + 4);
        elements_.resize(at + (std::size_t{1} << log2));
        ++taken_[log2];
        return Block{static_cast<std::uint32_t>(at), log2};
    }
    void give_back(Block& block) noexcept {
        if (block.capacity_log2 != Block::kNoCapacity) {
            freed_[block.capacity_log2].push_back(block.at);
        }
        block = Block{};
    }
    // Room for `count` elements in the block, the first `used` of which are kept.
    void grow(Block& block, std::size_t used, std::size_t count) {
        if (count <= block.capacity()) return;
        Block larger = take(count);
        for (std::size_t i = 0; i < used; ++i) {
            elements_[larger.at + i] = elements_[block.at + i];
        }
        give_back(block);
        block = larger;
    }
    T* data(const Block& block) { return elements_.data() + block.at; }
    const T* data(const Block& block) const { return elements_.data() + block.at; }

  private:
    std::vector<T, LargePages<T>> elements_;
    std::vector<std::uint32_t> freed_[32];
    std::size_t taken_[32] = {};
};

enum class Kind : std::uint8_t { leaf, real, categorical };

struct Split {
    double value = 0;  // threshold, or category (kMissing: the missing ones go left)
    std::uint32_t feature = 0;
    Kind kind = Kind::leaf;
    bool missing_left = false;

    bool goes_left(const double* x) const { return sends_left(x[feature]); }
    bool sends_left(double v) const {
        const bool below = kind == Kind::categorical ? v == value : v <= value;
        return below || (missing_left && is_missing(v));
    }
};

// Of a class that a node had when it was built: how many examples, and how many have gone since.
struct Departures {
    static constexpr ClassId kNoClass = 0xffffffff;
    ClassId label = kNoClass;
    std::uint32_t built = 0;
    std::uint32_t gone = 0;
};

struct Node {
    static constexpr std::size_t kFewClasses = 2;

    Split split;
    NodeId left = kNoNode;
    std::uint32_t n_classes = 0;
    Tally tally;
    // Sorted by class, none of them zero: here if they are few, else in a block.
    std::array<ClassCount, kFewClasses> few_counts{};
    std::uint32_t updates_since_build = 0;  // c(v)
    std::uint32_t safe_updates = 0;         // up to so many since the build, no gap is possible
    std::uint32_t built_size = 0;           // s(v)
    NodeId parent = kNoNode;
    double floor_at_build = 0;  // the mass that the split left when it was built: the least of all
    std::uint32_t deletions_since_build = 0;
    // Of an internal node, sorted by class, what is left over is of none: here, or in a block.
    std::array<Departures, kFewClasses> few_departures{};
    bool built_inseparable = false;  // a leaf only because all its examples had the same x
    bool all_equal = false;          // known: all its examples have the same x
    bool put_off = false;            // not built yet, and no update has come by
    bool places_known = false;       // of a leaf: where on its list each example is
    Block many_counts;
    Block many_departures;
    Block rows;  // of a leaf; as many as tally.size

    bool is_leaf() const { return split.kind == Kind::leaf; }
    NodeId right() const { return left + 1; }
};

// A subtree as Build returns it: parents before children, children side by side.
struct PlannedNode {
    Split split;
    double floor = 0;
    Tally tally;
    std::uint32_t left = 0;                          // in Plan::nodes
    std::uint32_t begin = 0, end = 0;                // in Plan::rows
    std::uint32_t counts_begin = 0, counts_end = 0;  // in Plan::counts
    NodeId place = kNoNode;                          // where it is grown
    bool inseparable = false;
    bool put_off = false;
};
struct Plan {
    std::vector<PlannedNode> nodes;
    std::vector<ClassCount> counts;
    std::vector<Slot> rows;
};

// What a build leaves for later: nodes of few rows, none of which is new. A row is new if its
// number in the build is `first_new` or higher.
struct PutOff {
    std::uint32_t largest = 0;
    std::uint32_t first_new = 0;
};

class Tree {
  public:
    Tree();

    const Node& operator[](NodeId id) const { return nodes_[id]; }
    Node& operator[](NodeId id) { return nodes_[id]; }
    const Node& root() const { return nodes_[kRoot]; }

    NodeId child(const Node& node, const double* x) const {
        return node.left + (node.split.goes_left(x) ? 0u : 1u);
    }
    NodeId leaf_of(const double* x) const;
    // The leaf of x or, where that has become empty, its nearest ancestor that is not.
    NodeId answering(const double* x) const;
    // The most frequent class; of several, the one with the lowest rank. The node is not empty.
    ClassId majority(NodeId id, std::span<const std::uint32_t> rank) const;

    std::span<const ClassCount> counts(const Node& node) const {
        return {counts_of(node), node.n_classes};
    }
    std::span<const Departures> departures(const Node& node) const {
        if (node.many_departures.capacity() == 0) return node.few_departures;
        return {departures_.data(node.many_departures), node.many_departures.capacity()};
    }
    // How many have gone of a class that the node had when it was built; null for any other class.
    std::uint32_t* gone_of(NodeId id, ClassId label);
    std::span<const Slot> rows(const Node& leaf) const {
        return {rows_.data(leaf.rows), static_cast<std::size_t>(leaf.tally.size)};
    }
    void collect_rows(NodeId subtree, std::vector<Slot>& rows) const;
    // The same, those first that were there when their leaf was made; returns their number. With
    // deletions roughly: only what is put off depends on it, never the tree.
    std::size_t collect_rows_by_age(NodeId subtree, std::vector<Slot>& rows) const;

    // Counting in and out. The make_room calls may fail and change nothing that can be seen; after
    // them, `count_in` and `list` cannot fail.
    void make_room_for_classes(NodeId id, std::size_t more);
    void make_room_for_rows(NodeId leaf, std::size_t more);
    void make_room_for_places(Slot slots_end);  // before the first deletion, and from then on
    bool has_places() const { return !places_.empty(); }
    bool has_class(NodeId id, ClassId label) const {
        return find_count(nodes_[id], label) != nullptr;
    }
    void count_in(NodeId id, ClassId label) noexcept {
        Node& node = nodes_[id];
        ClassCount* const count = find_count(node, label);
        if (count == nullptr) return count_in_first(node, label);
        node.tally.add(count->count++);
    }
    void count_out(NodeId id, ClassId label) noexcept;
    void list(NodeId leaf, Slot slot) noexcept;
    void unlist(NodeId leaf, Slot slot) noexcept;
    std::uint32_t place_in_leaf(Slot slot) const { return places_[slot]; }  // if they are known

    // A planned subtree with its own nodes and blocks, not yet reachable.
    Node grow(Plan& plan);
    void discard(Node& grown) noexcept;
    void replace(NodeId at, const Node& grown) noexcept;

    std::size_t n_nodes() const { return n_nodes_; }
    std::size_t n_leaves() const { return (n_nodes_ + 1) / 2; }
    std::uint32_t depth() const;
    std::uint32_t depth_of(NodeId id) const;

    bool any_put_off() const { return n_put_off_ > 0; }
    NodeId any_of_put_off();  // there is one

  private:
    template <typename Do>
    void each_leaf(NodeId subtree, Do do_this) const;
    NodeId take_pair();
    void free_below(Node& node) noexcept;
    void fill(Node& node, const PlannedNode& planned, const Plan& plan);
    void note_put_off(NodeId id);
    const ClassCount* counts_of(const Node& node) const {
        return node.many_counts.capacity() == 0 ? node.few_counts.data()
                                                : counts_.data(node.many_counts);
    }
    ClassCount* counts_of(Node& node) {
        return node.many_counts.capacity() == 0 ? node.few_counts.data()
                                                : counts_.data(node.many_counts);
    }
    // Where a class is counted, if it is.
    const ClassCount* find_count(const Node& node, ClassId label) const {
        if (node.n_classes > Node::kFewClasses) return find_among_many(node, label);
        const ClassCount* const first = counts_of(node);
        for (std::uint32_t i = 0; i < node.n_classes; ++i) {
            if (first[i].label == label) return first + i;
        }
        return nullptr;
    }
    ClassCount* find_count(Node& node, ClassId label) {
        return const_cast<ClassCount*>(std::as_const(*this).find_count(node, label));
    }
    const ClassCount* find_among_many(const Node& node, ClassId label) const;
    void count_in_first(Node& node, ClassId label) noexcept;
    void start_departures(Node& node);
    void find_places(Node& leaf, std::size_t n_listed) noexcept;

    std::vector<Node, LargePages<Node>> nodes_;
    std::vector<NodeId> free_pairs_;  // with room for all: freeing must not fail
    std::size_t n_nodes_ = 1;
    std::size_t n_put_off_ = 0;
    std::vector<NodeId> put_off_;  // all of them, and some that no longer are
    BlockPool<Slot> rows_;
    BlockPool<ClassCount> counts_;
    BlockPool<Departures> departures_;
    // By slot: its place on its leaf's list. Many streams never delete, and most leaves are rebuilt
    // before anybody does: a leaf finds them out when it loses its first example.
    std::vector<std::uint32_t, LargePages<std::uint32_t>> places_;
};

}  // namespace evertree
