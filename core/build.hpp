// Build: Algorithm 2 of the paper. The tree that a set of examples gets, planned beside the old
// one.
//
// The result depends on the multiset of examples alone, never on their order or history. It is
// iterative: a tree may be as deep as it has examples, and nothing here may overflow a stack.
//
// Must not know: the tree that is there now, when to rebuild.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "examples.hpp"
#include "limits.hpp"
#include "split.hpp"
#include "tree.hpp"

namespace evertree {

class Builder {
  public:
    Builder(const Limits& limits, std::span<const Kind> kinds)
        : limits_(limits), search_(kinds), n_features_(kinds.size()) {}

    // The plan's rows are `rows` in another order. `depth` is that of the subtree's root.
    void build(const Examples& examples, std::vector<Slot> rows, std::uint32_t depth, Plan& plan,
               Watch& watch);

  private:
    struct Open {
        std::uint32_t node;
        std::uint32_t depth;
        Segment segment;
    };
    void number_classes(const Examples& examples, std::span<const Slot> rows);
    void plan_root(Plan& plan, std::uint32_t n_rows);
    void plan_children(Plan& plan, const Open& parent, std::uint32_t middle);
    void plan_splits(const Examples& examples, std::span<const Slot> rows, std::uint32_t depth,
                     Plan& plan, Watch& watch);
    void finish(Plan& plan, std::span<const Slot> rows) const;

    Limits limits_;
    SplitSearch search_;
    std::size_t n_features_;
    // Scratch that lives from build to build.
    std::vector<Open> open_;
    std::vector<std::uint32_t> classes_;       // by row: the number of its class in this build
    std::vector<ClassId> class_ids_;           // by that number
    std::vector<std::uint32_t> numbers_;       // by ClassId: that number, or kNoNumber
    std::vector<std::uint32_t> class_counts_;  // by number; zero between nodes
};

}  // namespace evertree
