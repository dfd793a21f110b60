// Update: the active examples and the one tree that follows them.
//
// A request, a correction or a whole batch is one update. All or nothing: it is prepared completely
// (new examples staged, new subtrees built beside the old ones) before anything changes.
//
// Must not know: Python, files, clocks, randomness.
#pragma once

#include <span>
#include <vector>

#include "examples.hpp"
#include "limits.hpp"
#include "upkeep.hpp"

namespace evertree {

class DynamicTree {
  public:
    // Large builds use up to n_workers threads.
    DynamicTree(std::span<const Kind> kinds, const Limits& limits, std::size_t n_workers = 1)
        : examples_(kinds.size()), upkeep_(kinds, limits, n_workers) {}

    const Examples& examples() const { return examples_; }
    // Before examples are looked for by value.
    void index_values() { examples_.index_values(); }
    std::vector<Slot> active() const { return examples_.active(); }
    const Upkeep& upkeep() const { return upkeep_; }
    const Tree& tree() const { return upkeep_.tree(); }
    std::span<const Kind> kinds() const { return upkeep_.kinds(); }
    const Stats& stats() const { return upkeep_.stats(); }

    // The slots are active and differ; the ids are new, or those of deleted slots.
    void update(std::span<const Slot> deleted, std::span<const Insertion> inserted, Watch& watch);
    // The tree that Build gives for the examples that are in now, whatever the history.
    void rebuild(Watch& watch);

    // Before the tree is looked at: on the way of x, or everywhere (see Upkeep).
    bool is_finished() const { return upkeep_.is_finished(); }
    void finish_way(const double* x, Watch& watch) { upkeep_.finish_way(examples_, x, watch); }
    void finish(Watch& watch) { upkeep_.finish(examples_, watch); }

  private:
    void stage(std::span<const Slot> deleted, std::span<const Insertion> inserted);

    Examples examples_;
    Upkeep upkeep_;
    // Of one update at work; kept for their memory.
    std::vector<Slot> staged_;
    std::vector<Change> changes_;
};

}  // namespace evertree
