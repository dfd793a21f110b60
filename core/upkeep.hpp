// Upkeep: Algorithm 1 of the paper, for one tree. The only place that decides when and where to
// rebuild.
//
// A request, a correction or a whole batch is one update: all changes are counted in along their
// paths, then the touched nodes are repaired once, from the root down. At the first node v where
// the rule fires, the highest node u above it (or v) of the same size class is rebuilt:
//     s(u) <= 2^ceil(log2 s(v)),  s = the size at the last build,
// which is what saves a factor of the height in the amortised cost. Two rules:
//   certified   v's split leaves more than beta * n above the floor, a lower bound of the mass that
//               any split leaves: the mass at v's build minus what deletions since then can have
//               taken, or the sum of the floors of nodes below it, if that is more. While it does
//               not fire, no split is more than beta better. Condition 1 of Definition 3.1 is
//               checked exactly, and a node that has lost more than half of s(v) is rebuilt.
//   the paper's c(v) > epsilon * s(v), updates since the build against the size at the build.
//
// After an update of one row, nodes of the new subtree are put off where no row has come since they
// were last built: most of them are rebuilt with an ancestor before anybody comes by. They are
// built when an update or a question does, from the very rows they would have been built from, so
// that nobody can tell.
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
    const double* x = nullptr;  // its values, if they are at hand: unpacking takes longer
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

    // Nodes that are put off look like leaves: whoever asks wants `finish` first.
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

    // What was put off is built: on the way of x, or everywhere. Not between prepare and commit.
    bool is_finished() const { return !tree_.any_put_off(); }
    void finish_way(const Examples& examples, const double* x, Watch& watch);
    void finish(const Examples& examples, Watch& watch);

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
    // Changes are counted where they pass. Returns how many of the touched nodes, from the first
    // on, need no repair.
    std::size_t route(const Examples& examples, Watch& watch);
    std::size_t route_one(const Examples& examples, Watch& watch);
    void make_room_for_one(NodeId node, ClassId label);
    void make_room(const Examples& examples, const Touched& at);
    void undo(const Examples& examples) noexcept;
    void apply(const Examples& examples, const Change& change, const Touched& at) noexcept;
    void undo(const Examples& examples, const Change& change, const Touched& at) noexcept;
    void enter(const Examples& examples, NodeId node, Slot slot) noexcept;
    void note_if_equal(const Examples& examples, Node& leaf, Slot coming) noexcept;
    void leave(const Examples& examples, NodeId node, Slot slot) noexcept;

    void repair(const Examples& examples, std::size_t first, Watch& watch);
    bool fires(const Examples& examples, const Touched& at, Watch& watch);
    bool leaf_must_split(const Examples& examples, Node& leaf, std::uint32_t depth);
    bool gap_may_exceed(const Examples& examples, const Touched& at, Watch& watch);
    double floor_since_build(const Node& node) const;
    double floor_by_parts(const Examples& examples, NodeId node, std::uint32_t depth, int levels,
                          Watch& watch);
    void look_again_above(NodeId rebuilt) noexcept;
    std::size_t highest_of_size_class(std::size_t touched) const;
    void plan_rebuild(const Examples& examples, std::size_t touched, bool may_put_off,
                      Watch& watch);
    void plan(const Examples& examples, NodeId node, std::uint32_t depth, bool may_put_off,
              Plan& plan, Watch& watch);
    void build_now(const Examples& examples, NodeId node, std::uint32_t depth, bool may_put_off,
                   Watch& watch);
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
    Plan late_plan_;  // of a node that was put off
    Stats work_;
};

}  // namespace evertree
