// Build: Algorithm 2 of the paper. The tree that a set of examples gets, planned beside the old
// one.
//
// The result depends on the multiset of examples alone, never on their order or history, nor on the
// number of threads. It is iterative: a tree may be as deep as it has examples, and nothing here
// may overflow a stack.
//
// With several workers, large nodes are searched and divided feature by feature, each by whichever
// worker is free, and within the bins of one feature by all; below that, every subtree has one
// worker.
//
// Must not know: the tree that is there now, when to rebuild.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "columns.hpp"
#include "crew.hpp"
#include "examples.hpp"
#include "few.hpp"
#include "handful.hpp"
#include "limits.hpp"
#include "memory.hpp"
#include "split.hpp"
#include "tree.hpp"

namespace evertree {

class Builder {
  public:
    Builder(const Limits& limits, std::span<const Kind> kinds, std::size_t n_workers)
        : limits_(limits), n_workers_(n_workers), handful_(limits), columns_(kinds) {
        workers_.push_back(std::make_unique<Worker>(columns_, limits_));
        if (std::ranges::count(kinds, Kind::categorical) > 0) return;
        for (std::uint32_t j = 0; j < kinds.size(); ++j) features_if_real_.push_back(j);
    }

    // The plan has the rows, and gets them in another order; `counts` are those of their classes,
    // sorted by class. `depth` is that of the subtree's root, which is never put off; the
    // rest may be.
    void build(const Examples& examples, std::span<const ClassCount> counts, std::uint32_t depth,
               std::optional<PutOff> put_off, Plan& plan, Watch& watch);

  private:
    static constexpr std::size_t kRowsAtOnce = 8192;  // of one worker, in what is shared by rows

    struct Open {
        std::uint32_t node;
        std::uint32_t depth;
        Segment segment;
    };
    struct alignas(kApart) Worker {
        Worker(Columns& columns, const Limits& limits) : search(columns), few(limits) {}
        SplitSearch search;
        FewRows few;
        std::vector<Open> open;
        std::vector<std::uint32_t> class_counts;  // by number; zero between nodes
    };
    struct Subtree {
        Open root;
        std::vector<std::uint32_t> features;
        Plan plan;                                  // its node 0 is the root
        std::uint32_t nodes_at = 0, counts_at = 0;  // in the whole plan, all but the root
    };

    void number_classes(const Examples& examples, std::span<const Slot> rows,
                        std::span<const ClassCount> counts, Watch& watch);
    static void plan_root(Plan& plan, std::span<const ClassCount> counts);
    bool plan_handful(const Examples& examples, std::span<const ClassCount> counts,
                      std::uint32_t depth, Plan& plan, Watch& watch);
    void plan_splits(const Examples& examples, std::span<const Slot> rows, std::uint32_t depth,
                     Plan& plan, Watch& watch);
    bool plan_few(std::uint32_t depth, Plan& plan, Watch& watch);
    void plan_few(Worker& worker, Plan& plan, Open open, Watch& watch);
    void bring_in(const Examples& examples, std::span<const Slot> rows, Watch& watch);
    void merge_copies(Watch& watch);
    void end_rows(const Segment& segment);
    Segment load(Watch& watch);
    void settle_codes(Watch& watch);
    void settle_sorting();
    void find_bins(Watch& watch);
    void count_chunk(std::size_t chunk, std::uint32_t* counts, Watch& watch);
    void plan_alone(Worker& worker, Plan& plan, Watch& watch);
    template <typename Best, typename DivideRows, typename DivideFeatures, typename End>
    void plan_node(Worker& worker, Plan& plan, Open open, Best best_of, DivideRows divide_rows,
                   DivideFeatures divide_features, End end);
    bool search_on(PlannedNode& child, std::uint32_t depth) const;
    void count_classes(Worker& worker, std::uint32_t begin, std::uint32_t end) const;
    void plan_children(Worker& worker, Plan& plan, const Open& parent, std::uint32_t middle);
    void order_rows(Plan& plan, Watch& watch);
    void start_scratch(const Examples& examples, std::size_t n_rows);
    void give_back_scratch(const Examples& examples);
    void release();

    // With a crew: do_this(worker, item, watch) for each item, by whichever worker is free; or
    // neighbours by the same one.
    template <typename Do>
    void each(std::size_t n_items, Watch& watch, Do do_this);
    template <typename Do>
    void each_near(std::size_t n_items, Watch& watch, Do do_this);
    // With a crew: do_this(worker, begin, end) for chunks of n rows, without one for all of them.
    template <typename Do>
    void each_chunk(std::size_t n, Watch& watch, Do do_this);
    void hire(std::size_t n_workers);
    std::size_t n_at_work() const { return crew_ == nullptr ? 1 : crew_->size(); }
    void plan_together(Plan& plan, Watch& watch);
    void plan_subtree(Worker& worker, const Plan& plan, Subtree& subtree, Watch& watch);
    void append_together(Plan& plan, std::span<Subtree> subtrees, Watch& watch);
    static void append(Plan& plan, const Subtree& subtree);
    // In together.cpp.
    Segment load_together(Watch& watch);
    void sort_together(Watch& watch);
    void count_together(std::uint32_t* counts, Watch& watch);
    Candidate best_together(Segment& segment, std::span<const ClassCount> counts, Watch& watch);
    void mark_left_together(const Segment& segment, const Candidate& split, Watch& watch);
    void divide_features_together(const Segment& segment, const Segment& left, const Segment& right,
                                  Watch& watch);
    std::uint32_t divide_rows_together(const Segment& segment, const Candidate& split,
                                       Watch& watch);

    Limits limits_;
    std::size_t n_workers_;
    Crew* crew_ = nullptr;  // of the build at hand
    PutOff put_off_;        // the same
    Handful handful_;
    std::vector<std::uint32_t> features_if_real_;  // all of them, if none is categorical
    Columns columns_;
    std::vector<std::unique_ptr<Worker>> workers_;
    // Scratch that lives from build to build, where it is kept.
    std::size_t scratch_bytes_ = 0;  // roughly, of the largest build since it was given back
    bool keeps_scratch_ = true;
    std::vector<std::uint32_t> classes_;  // by row: the number of its class in this build
    std::vector<ClassId> class_ids_;      // by number
    std::vector<std::uint32_t> numbers_;  // by ClassId, of those in this build
};

}  // namespace evertree
