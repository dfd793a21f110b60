// Few: the subtree of few rows, planned by itself.
//
// However large a build, most of its nodes have few rows, and so have most builds. Up to 2,048 rows
// of up to 16 classes, whose features are real and have no value missing, are numbered anew, and so
// are their classes: an element takes 16 bits, and the sides of all rows fit a few registers. All
// others, and those on processors without AVX2, go the general way (split.hpp), which finds the
// same splits.
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
    // rows are put into the order of the plan. False, and nothing is done, if a value is missing.
    bool plan(Columns& columns, SplitSearch& search, const Segment& segment, PutOff put_off,
              Plan& plan, std::uint32_t node, std::uint32_t depth, Watch& watch);

  private:
    using Element = wide::few::Element;
    using Bits = std::array<std::uint64_t, wide::few::kMostRows / 64>;
    using Counts = std::array<std::uint32_t, wide::few::kMostClasses>;  // of those that are present

    // A node to be searched. Its lists are in one of two places, its children's in the other.
    struct Open {
        std::uint32_t node, depth;
        std::uint32_t begin, n;           // of its lists: where, how many
        std::uint32_t lists_at, n_lists;  // in which_
        std::size_t place;
    };
    struct Cut {
        std::uint32_t list = 0, left = 0;  // none: there is no cut
        // squares_left / left + squares_right / right of the counts, as a fraction.
        std::uint64_t purity = 0, sides = 1;
    };

    void make_room(std::size_t n_rows, std::size_t n_lists);
    bool load(Columns& columns, SplitSearch& search, const Segment& segment, Watch& watch);
    void number_anew(Columns& columns, SplitSearch& search, const Segment& segment);
    void plan_node(Open open, Plan& plan);
    Cut best_cut(Open& open, std::span<const ClassCount> counts);
    void consider(Cut& best, const Open& open, std::uint32_t of_list, std::uint32_t left) const;
    Counts count_left(const Element* elements, std::uint32_t left) const;
    Split split_at(const Open& open, const Cut& cut) const;
    void plan_children(const Open& open, const Cut& cut, Plan& plan);
    template <typename CountOf>
    void plan_child(Plan& plan, std::uint32_t begin, CountOf count_of) const;
    bool search_on(PlannedNode& child, std::uint32_t depth, const Element* elements) const;
    void divide(const Open& open, const Cut& cut, bool search_left, bool search_right,
                std::uint32_t left_node);
    Bits mark_left(const Open& open, const Cut& cut) const;
    void put_rows(const Element* elements, std::uint32_t n, std::uint32_t at) const;
    const Element* list(const Open& open, std::uint32_t which) const {
        return elements_[open.place].get() + which * stride_ + open.begin;
    }
    wide::few::Lists lists(const Open& open) const {
        return {elements_[open.place].get(),
                stride_,
                which_.data() + open.lists_at,
                open.n_lists,
                open.begin,
                open.n};
    }

    Limits limits_;
    PutOff put_off_;                         // of the build at hand
    std::uint32_t* order_ = nullptr;         // of the rows in the plan
    std::vector<ClassId> classes_;           // by new number
    std::vector<std::uint16_t> numbers_;     // by class, the new one
    wide::few::Classes present_;             // in the node at hand
    std::vector<std::uint32_t> rows_;        // by new number
    std::vector<const std::byte*> records_;  // the same
    std::vector<std::uint32_t> tags_;        // the same: it, and in the lowest bits its class
    const Packing* packing_ = nullptr;
    std::vector<std::uint32_t> features_;  // by list
    std::vector<std::uint16_t> which_;     // lists of the open nodes
    std::vector<Open> open_;
    std::size_t stride_ = 0, capacity_ = 0;
    std::array<Buffer<Element>, 2> elements_;
    Buffer<float> scores_;                         // by list and cut
    std::vector<std::uint8_t> has_cuts_, varies_;  // by list
    std::array<std::uint16_t, wide::few::kMostRows> cuts_;
};

}  // namespace evertree
