// Split: the best split of a set of rows, for Build, which divides one set again and again.
//
// A SplitSearch is one worker on shared columns; it has what a thread needs for itself. A feature
// that is constant in a segment is dropped for everything below it.
//
// Candidates are the splits that leave two non-empty sides; the best leaves the least mass; ties go
// to the lowest feature, then the lowest threshold or category, then missing-left.
//
// load.cpp brings the features in, with bins.cpp for those of many values, split.cpp searches, with
// counts.cpp for those that are counted, and divide.cpp divides.
//
// Must not know: limits, nodes, rules.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "columns.hpp"
#include "impurity.hpp"
#include "memory.hpp"
#include "order.hpp"
#include "tree.hpp"
#include "watch.hpp"
#include "wide/wide.hpp"

namespace evertree {

// The rows of one node under construction: a range of Columns::rows and what is known of it. Where
// rows count several times, the range has room for all, and each is listed once at its beginning.
struct Segment {
    std::uint32_t begin = 0, end = 0, rows_end = 0;
    std::uint32_t features_at = 0, n_features = 0;  // those that may still vary
    std::uint32_t* counts = nullptr;                // the block of the counted features

    std::uint32_t size() const { return end - begin; }
    std::uint32_t n_rows() const { return rows_end - begin; }
};
// By what there is to go through: the smaller one may count for more.
struct BySize {
    const Segment &smaller, &larger;
};
inline BySize by_size(const Segment& left, const Segment& right) {
    return left.n_rows() <= right.n_rows() ? BySize{left, right} : BySize{right, left};
}

// The threshold between two neighbouring values: their midpoint, correctly rounded, or the lower
// one where the midpoint is not below the upper.
double midpoint(double low, double high);

struct Candidate {
    Split split;  // its value is set when the search is over
    Sides sides;
    // The values that go left, as a range of places on the list (sorted) or of ranks (counted),
    // beside the missing ones if split.missing_left.
    std::uint32_t left_begin = 0, left_end = 0;
    std::uint32_t last_left = 0;  // the last of them that occurs
    bool counted = false;
    bool found = false;
    // Of a binned feature, where last_left is a bin: the keys on both sides of the cut, known from
    // the start if it is within the bin.
    bool within = false;
    std::uint64_t last_key = 0, next_key = 0;
};

// Which of the bins that deserve a look within are looked at: those of one part in so many, by the
// rows in them; with no parts none.
struct BinShare {
    std::uint32_t part = 0, n_parts = 1;
};

class SplitSearch {
  public:
    explicit SplitSearch(Columns& columns) : columns_(columns) {}

    // Makes room for the rows of the columns.
    void reserve();
    void release();
    void release_sorting();  // only what sorts, until the next build

    // Loads those of neighbouring features that are not counted, so many at a time; they are named
    // by their positions in a record.
    std::size_t n_columns_at_once() const;
    void sort(std::size_t begin, std::size_t end, Watch& watch);
    // Bins of many values, in steps that several workers share (see Columns::start_bins): where
    // those of a group begin; the bins of some of the rows; what this worker has seen of them.
    void begin_bins(std::size_t group, Watch& watch);
    void find_bins(std::size_t begin, std::size_t end, Watch& watch);
    void tell_seen();
    // The whole set, with a block of counts that are still to be counted; or with nothing loaded.
    Segment open();
    Segment open_unloaded();

    // The features of a segment, to be searched all at once or some by each of several workers.
    std::span<std::uint32_t> features(const Segment& segment) {
        return {features_.data() + segment.features_at, segment.n_features};
    }
    void set_features(Segment& segment, std::span<const std::uint32_t> features);
    Candidate best(Segment& segment, std::span<const ClassCount> counts, Watch& watch);
    // Among `features` only, which may change form; those that do not vary become kDropped.
    // What is below that score need not be found.
    Candidate best_of(std::span<std::uint32_t> features, const Segment& segment,
                      std::span<const ClassCount> counts, double to_reach, BinShare share,
                      Watch& watch);
    // What counts tell at a glance: a score that the best split of all features reaches, and the
    // features that have to be looked at within bins for it.
    struct Glance {
        double to_reach = -1.0;
        std::vector<std::uint32_t> within;
    };
    Glance first_glance(std::span<const std::uint32_t> features, const Segment& segment,
                        std::span<const ClassCount> counts);
    // How long that takes for one of them, roughly.
    std::size_t cost(std::uint32_t entry, const Segment& segment) const;
    std::span<std::uint32_t> open_features(Segment& segment);
    void close_features(Segment& segment);
    void set_value(Candidate& best, const Segment& segment) const;

    // To divide a segment, in steps that can be shared by several workers: which rows go left, of
    // all or, if the split is counted, some of them; the rows, or some of them (how many go left),
    // those that go left first; counts begun for the sides that are searched again; features and
    // counts.
    void mark_left(const Segment& segment, const Candidate& split);
    void mark_left_counted(const Candidate& split, std::uint32_t begin, std::uint32_t end);
    void divide_rows(const Segment& segment, const Candidate& split, Segment& left, Segment& right,
                     Watch& watch);
    std::uint32_t divide_some_rows(std::uint32_t begin, std::uint32_t end) const;
    // Once they are divided: the sides, and the rows of the right one where that begins.
    void set_sides(const Segment& segment, const Candidate& split, std::uint32_t n_left,
                   Segment& left, Segment& right) const;
    void divide_features(std::span<const std::uint32_t> features, const Segment& segment,
                         Watch& watch);
    // Features to be shared out: those that rows list, which are counted in one walk; the others.
    struct Shares {
        std::span<const std::uint32_t> listed, others;
    };
    Shares shares(std::span<const std::uint32_t> features);
    // Only the smaller side is counted; the larger one keeps the counts that remain.
    void begin_counts(const Segment& segment, std::span<const std::uint32_t> features,
                      Segment& left, bool search_left, Segment& right, bool search_right);
    void divide_counts(std::span<const std::uint32_t> features, const Segment& left,
                       const Segment& right, Watch& watch) const;
    // The same by several: one as if the smaller side had some of its rows only, the others count
    // the rest into blocks of their own, which are then merged.
    void divide_counts(std::span<const std::uint32_t> features, const Segment& left,
                       const Segment& right, std::span<const std::uint32_t> some,
                       Watch& watch) const;
    void count_rest(std::span<const std::uint32_t> features, const Segment& left,
                    const Segment& right, std::span<const std::uint32_t> rest,
                    std::uint32_t* counts) const;
    void merge_rest(std::span<const std::uint32_t> features, const Segment& left,
                    const Segment& right, const std::uint32_t* counts) const;
    // Whether that pays for those that rows list.
    bool walk_is_long(std::span<const std::uint32_t> listed, const Segment& left,
                      const Segment& right) const;
    // Room for a list, free between the steps.
    std::uint32_t* spare() const { return spare_.get(); }
    // Counted features are sorted where counting no longer pays. False if one has one value only.
    bool to_sorted(std::uint32_t feature, const Segment& segment, Watch& watch);
    // The same for all counted ones of a list of features and few rows, into lists of their own,
    // one for each feature: whether it varies, and its elements. False if a value is missing.
    struct FewLists {
        const std::byte* const* records;
        Tags tags;
        std::size_t n, stride;
        wide::few::Element* first;
        std::uint8_t* varies;
    };
    bool sort_few(std::span<const std::uint32_t> features, const FewLists& lists, Watch& watch);
    // From here on this worker is alone with what it plans: lists that it sorts are its own.
    void work_alone();
    // The sorted rows of a segment.
    std::uint32_t* list(std::size_t feature, const Segment& segment) const {
        const OwnList& own = own_lists_[feature];
        return own.first == nullptr ? columns_.elements(feature) + segment.begin
                                    : own.first + (segment.begin - own.begin);
    }
    // Few rows are planned as all that they stand for, none of their features loaded.
    void repeat_rows(Segment& segment);
    // A segment is done: what it held is free again.
    void close(const Segment& segment) { columns_.give_back_counts(segment.counts); }

    // Entries of feature lists: the feature, and whether it is in counted form.
    static constexpr std::uint32_t kCounted = std::uint32_t{1} << 31;
    static constexpr std::uint32_t kDropped = 0xffffffff;

  private:
    static constexpr std::uint32_t kNewValue = element::kNewValue, kRow = element::kRow;

    struct TwoClassCut;
    struct ManyClassCut;
    template <typename Cut>
    struct Search;

    static TwoClassCut cut_of(const Segment& segment, std::span<const ClassCount> counts);
    // Rows to be loaded.
    struct RowSet {
        const std::byte* const* records;
        std::size_t n;
    };
    struct Keys {
        std::span<const std::uint64_t> of_row;
        std::uint64_t differing;
        bool any_missing;
    };
    template <typename Wanted, typename Take>
    void load(const RowSet& rows, std::size_t begin, std::size_t end, Wanted wanted, Watch& watch,
              Take take);
    void sort(std::uint32_t feature, const Keys& keys, Watch& watch);
    void find_bins(const BinGroup& group, std::size_t row, std::size_t n, wide::Column* seen);
    template <typename Cut>
    void search(std::span<std::uint32_t> features, Search<Cut>& search, Watch& watch);
    template <typename Cut>
    bool search_feature(std::uint32_t entry, Search<Cut>& search, const float* glanced);
    void sort_if_few(std::uint32_t& entry, const Segment& segment, Watch& watch);
    static bool can_glance(const Search<TwoClassCut>& search);
    static bool can_glance(const Search<ManyClassCut>& search);
    template <typename Cut>
    void glance(std::span<const std::uint32_t> features, Search<Cut>& search);
    bool can_glance(std::uint32_t entry) const;
    bool can_glance_at_counts(const Search<TwoClassCut>& search, std::uint32_t entry) const;
    bool can_glance_at_counts(const Search<ManyClassCut>&, std::uint32_t) const { return false; }
    void glance_at_counts(std::span<const std::uint32_t> features, Search<TwoClassCut>& search);
    void glance_at_counts(std::span<const std::uint32_t>, Search<ManyClassCut>&) {}
    wide::CountedRows counted_rows(const Search<TwoClassCut>& search, std::uint32_t feature) const;
    bool search_glanced_counts(Search<TwoClassCut>& search, std::uint32_t entry,
                               const wide::CountScores& glanced, Watch& watch);
    bool search_glanced_counts(Search<ManyClassCut>&, std::uint32_t, const wide::CountScores&,
                               Watch&) {
        return false;
    }
    static bool reaches(const Search<TwoClassCut>& search, float score);
    bool choose_bins(const Search<TwoClassCut>& search, const wide::CountedRows& rows);
    bool sort_bins(const Search<TwoClassCut>& search, Watch& watch);
    void search_bin(Search<TwoClassCut>& search, std::uint32_t rank,
                    const std::uint32_t* element) const;
    void find_keys(Candidate& best, const Segment& segment) const;
    bool search_glanced(Search<TwoClassCut>& search, float glanced);
    bool search_glanced(Search<ManyClassCut>& search, float glanced);
    wide::TwoClassRows rows_of(const Search<TwoClassCut>& search) const;
    wide::ManyClassRows rows_of(const Search<ManyClassCut>& search) const;
    static float doubt(const Segment& segment);
    template <typename Cut>
    bool search_sorted(Search<Cut>& search);
    bool search_sorted_present(Search<TwoClassCut>& search);
    bool search_sorted_present(Search<ManyClassCut>& search);
    template <typename Cut>
    bool search_sorted_missing(Search<Cut>& search, std::uint32_t present_end) const;
    template <typename Cut>
    bool search_sorted_categories(Search<Cut>& search) const;
    template <typename Cut>
    bool search_counted(Search<Cut>& search) const;
    void count_common(std::uint32_t feature, const Segment& segment,
                      std::span<const ClassCount> counts) const;
    template <typename Cut>
    bool search_counted_categories(Search<Cut>& search) const;

    double value_at(std::uint32_t feature, const Segment& segment, std::uint32_t place) const;
    bool is_missing_at(std::uint32_t feature, const Segment& segment, std::uint32_t place) const;
    std::uint32_t missing_begin(std::uint32_t feature, const Segment& segment) const;
    void mark_left_binned(const Candidate& split, std::uint32_t begin, std::uint32_t end);
    void mark_left_sorted(const Segment& segment, const Candidate& split);
    bool pays(std::uint32_t entry, std::size_t n_rows) const;
    bool any_pays(std::span<const std::uint32_t> features, std::size_t n_rows) const;
    template <typename Do>
    void each_counted(std::span<const std::uint32_t> features, std::size_t n_rows,
                      Do do_this) const;
    std::size_t count_of(std::span<const std::uint32_t> features, std::size_t n_rows) const;
    void count(std::span<const std::uint32_t> features, std::size_t n_rows,
               std::span<const std::uint32_t> rows, std::uint32_t* counts) const;
    void add_rows(std::span<const std::uint32_t> features, std::size_t n_rows,
                  std::span<const std::uint32_t> rows, std::uint32_t* counts,
                  std::uint32_t by) const;
    void add_counts(std::span<const std::uint32_t> features, std::size_t n_rows,
                    const std::uint32_t* from, std::uint32_t* to, std::uint32_t by) const;
    std::span<const std::uint32_t> rows(const Segment& segment) const {
        return {columns_.rows.get() + segment.begin, segment.n_rows()};
    }

    Columns& columns_;
    std::vector<std::uint32_t> features_;  // lists of the open segments
    std::vector<std::uint32_t> shared_;    // one of them, as it is shared out

    // By feature: where lists of its own are, and the segment that the last one began with.
    struct OwnList {
        std::uint32_t* room = nullptr;
        std::uint32_t* first = nullptr;  // nothing if its list is shared
        std::uint32_t begin = 0;
    };
    std::vector<OwnList> own_lists_;

    // Scratch that lives from build to build.
    std::size_t n_reserved_ = 0, n_keys_ = 0, n_own_ = 0;
    Buffer<std::uint32_t> own_;
    Buffer<std::uint32_t> spare_;
    Buffer<std::uint32_t> cuts_, ones_left_;  // those that deserve an exact look
    Buffer<std::uint32_t> own_tags_;          // of the segment at hand
    std::vector<std::uint32_t> list_of_;      // by feature, of few rows
    std::vector<std::byte> differing_;        // of their records
    Buffer<std::uint64_t> keys_;
    Sorter sorter_;
    std::vector<std::uint64_t> sorted_keys_;
    std::vector<wide::Column> seen_keys_;            // while bins are found, by group and feature
    std::vector<float> cut_scores_, within_scores_;  // of a counted feature, by rank
    std::vector<std::uint8_t> looked_at_;            // the same
    std::vector<wide::CountScores> counted_scores_;  // the best, by feature at hand
    std::vector<std::uint32_t> many_;                // class counts of ManyClassCut
    std::vector<std::uint32_t*> lists_;              // of the sorted features at hand
    std::vector<float> glanced_;                     // their best rough scores
};

}  // namespace evertree
