// Few: the subtree of few rows, planned by itself.
//
// However large a build, most of its nodes have few rows, and so have most builds. Up to 512 rows
// whose features are real, none of their values missing, and of two classes are numbered anew, so
// that an element takes 16 bits and the sides of all rows one register. All the rest, and other
// processors, go the general way (split.hpp), which finds the same splits.
//
// Must not know: the tree that is there now, when to rebuild.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "columns.hpp"
#include "limits.hpp"
#include "memory.hpp"
#include "split.hpp"
#include "tree.hpp"
#include "wide/wide.hpp"

namespace evertree {

class FewRows {
  public:
    explicit FewRows(const Limits& limits) : limits_(limits) {}

    static bool can_plan(const Columns& columns, std::span<const std::uint32_t> features,
                         std::uint32_t n_rows, std::size_t n_classes);

    // Plans what is below a node, whose rows and features are those of the segment. The segment's
    // rows are put into the order of the plan.
    void plan(Columns& columns, SplitSearch& search, const Segment& segment, Plan& plan,
              std::uint32_t node, std::uint32_t depth, Watch& watch);

  private:
    using Element = wide::few::Element;

    // A node to be searched. Its lists are in one of two places, its children's in the other.
    struct Open {
        std::uint32_t node, depth;
        std::uint32_t begin, n, ones;
        std::uint32_t lists_at, n_lists;  // in which_
        std::size_t place;
    };
    struct Cut {
        std::uint32_t list = 0, left = 0, ones_left = 0;
        std::int64_t excess = 0;  // ones_left * n - ones * left
        bool found = false;
    };

    using Bits = std::array<std::uint64_t, wide::few::kMostRows / 64>;

    void load(Columns& columns, SplitSearch& search, const Segment& segment, Watch& watch);
    void plan_node(Open open, Plan& plan);
    Cut best_cut(Open& open);
    void consider(Cut& best, const Open& open, std::uint32_t of_list, std::uint32_t left) const;
    Split split_at(const Open& open, const Cut& cut) const;
    void plan_children(const Open& open, const Cut& cut, Plan& plan);
    void plan_counts(PlannedNode& node, std::uint32_t ones, Plan& plan) const;
    Bits mark_left(const Open& open, const Cut& cut) const;
    void put_rows(const Element* elements, std::uint32_t n, std::uint32_t at) const;
    const Element* list(const Open& open, std::uint32_t which) const {
        return elements_[open.place].get() + which * stride_ + open.begin;
    }

    Limits limits_;
    std::uint32_t* order_ = nullptr;       // of the rows in the plan
    std::array<ClassId, 2> classes_{};     // in the order of their numbers
    std::vector<std::uint32_t> rows_;      // by new number
    std::vector<const double*> x_;         // the same
    std::vector<std::uint32_t> features_;  // by list
    std::vector<std::uint16_t> which_;     // lists of the open nodes
    std::vector<Open> open_;
    std::size_t stride_ = 0, capacity_lists_ = 0, capacity_scores_ = 0;
    std::array<Buffer<Element>, 2> elements_;
    Buffer<float> scores_;                // by list and cut
    std::vector<std::uint8_t> has_cuts_;  // by list
    std::array<std::uint16_t, wide::few::kMostRows> cuts_;
};

}  // namespace evertree
