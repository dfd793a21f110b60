// Upkeep: Algorithm 1 of the paper, for one tree. The only place that decides when and where to
// rebuild.
//
// A request, a correction or a whole batch is one update: all changes are counted in along their
// paths, then the touched nodes are repaired once, from the root down. At the first node v where
// the rule fires, the highest node u above it (or v) of the same size class is rebuilt:
//     s(u) <= 2^ceil(log2 s(v)),  s = the size at the last build,
// which is what saves a factor of the height in the amortised cost. Two rules:
//   certified   v's split leaves more than beta * n above the floor, a lower bound of the mass that
//               any split leaves: the mass at v's build minus 2 for every deletion since. While it
//               does not fire, no split is more than beta better. Condition 1 of Definition 3.1 is
//               checked exactly, and a node that has lost more than half of s(v) is rebuilt.
//   the paper's c(v) > epsilon * s(v), updates since the build against the size at the build.
//
// All or nothing: `prepare` builds new subtrees beside the old ones, and counts back if it fails;
// `commit` swaps them in, `cancel` takes everything back, and neither can fail. So one update may
// change several trees, or none.
//
// Must not know: whose examples they are, Python, files, clocks, randomness.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "build.hpp"
#include "examples.hpp"
#include "limits.hpp"
#include "tree.hpp"

namespace evertree {

struct Change {
    Slot slot;
    bool is_insertion;
};

struct Stats {
    std::uint64_t inserts = 0;
    std::uint64_t deletes = 0;
    std::uint64_t rebuilds = 0;
    std::uint64_t rows_rebuilt = 0;
};

class Upkeep {
  public:
    // Large builds use up to n_workers threads.
    Upkeep(std::span<const Kind> kinds, const Limits& limits, std::size_t n_workers)
        : limits_(limits), kinds_(kinds.begin(), kinds.end()), builder_(limits, kinds, n_workers) {}

    const Tree& tree() const { return tree_; }
    const Limits& limits() const { return limits_; }
    std::span<const Kind> kinds() const { return kinds_; }
    const Stats& stats() const { return stats_; }

    // Deleted slots are in the tree, inserted ones are not; all have their values.
    void prepare(const Examples& examples, std::span<const Change> changes, Watch& watch);
    // The tree that Build gives for the examples that are in it now, whatever the history.
    void prepare_rebuild(const Examples& examples, Watch& watch);
    void commit() noexcept;
    void cancel(const Examples& examples) noexcept;

  private:
    struct Touched {
        NodeId node;
        std::uint32_t depth;
        std::uint32_t begin, end;  // in changes_
    };
    struct Rebuild {
        NodeId node;
        std::size_t touched;  // where the node stands in touched_
        Plan plan;
        Node grown;
    };

    void start(std::span<const Change> changes);
    void route(const Examples& examples);
    void route_one(const Examples& examples);
    void make_room(const Examples& examples, const Touched& at);
    void apply(const Examples& examples) noexcept;
    void undo(const Examples& examples) noexcept;
    void apply(const Examples& examples, const Change& change, const Touched& at) noexcept;
    void undo(const Examples& examples, const Change& change, const Touched& at) noexcept;
    void enter(const Examples& examples, NodeId node, Slot slot) noexcept;
    void leave(const Examples& examples, NodeId node, Slot slot) noexcept;

    void repair(const Examples& examples, Watch& watch);
    bool fires(const Examples& examples, const Touched& at);
    bool leaf_must_split(const Examples& examples, Node& leaf, std::uint32_t depth);
    bool gap_may_exceed(Node& node) const;
    std::size_t highest_of_size_class(std::size_t touched) const;
    void plan_rebuild(const Examples& examples, std::size_t touched, Watch& watch);
    void grow_rebuilds();
    std::span<Rebuild> rebuilds() { return {rebuilds_.data(), n_rebuilds_}; }
    void forget_rebuilds() noexcept;

    Limits limits_;
    std::vector<Kind> kinds_;
    Tree tree_;
    Builder builder_;
    Stats stats_;

    // One update at work; kept for their memory.
    std::vector<Change> changes_;   // in the order of the leaves, once routed
    std::vector<Touched> touched_;  // preorder, left before right
    std::vector<Touched> to_route_;
    std::vector<Rebuild> rebuilds_;  // the first of them; small plans are kept for their memory
    std::size_t n_rebuilds_ = 0;
    std::vector<Slot> rows_;  // of the subtree to be rebuilt
    Stats work_;
};

}  // namespace evertree
