// Split: the best split of a set of rows, for Build, which divides one set again and again.
//
// The features of the set are loaded once. Then each feature is kept in whichever of two forms is
// cheaper for the part (segment) at hand:
//   sorted   its rows in the order of the values; dividing keeps the order (stable partition), so
//            nothing is sorted twice. Searching costs O(rows).
//   counted  examples per value and class. Searching costs O(values * classes); when a segment is
//            divided only the smaller side is counted, the larger one is what remains
//            (Theorem 3.3). It works for ordered values as for categories, but loses on segments
//            with few rows.
// A feature that is constant in a segment is dropped for everything below it.
//
// Candidates are the splits that leave two non-empty sides; the best leaves the least mass; ties go
// to the lowest feature, then the lowest threshold or category, then missing-left.
//
// load.cpp brings the features in, split.cpp searches, divide.cpp divides.
//
// Must not know: limits, nodes, rules.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "examples.hpp"
#include "impurity.hpp"
#include "order.hpp"
#include "tree.hpp"
#include "watch.hpp"
#include "wide/wide.hpp"

namespace evertree {

// The rows of one node under construction: a range of SplitSearch::rows and what is known of it.
struct Segment {
    static constexpr std::uint32_t kNoCounts = 0xffffffff;
    std::uint32_t begin = 0, end = 0;
    std::uint32_t features_at = 0, n_features = 0;  // those that may still vary
    std::uint32_t counts = kNoCounts;               // the block of the counted features

    std::uint32_t size() const { return end - begin; }
};

struct Candidate {
    Split split;  // its value is set when the search is over
    Sides sides;
    // The values that go left, as a range of positions (sorted) or of ranks (counted), beside the
    // missing ones if split.missing_left.
    std::uint32_t left_begin = 0, left_end = 0;
    std::uint32_t last_left = 0;  // the last of them that occurs
    bool counted = false;
    bool found = false;
};

class SplitSearch {
  public:
    explicit SplitSearch(std::span<const Kind> kinds) : kinds_(kinds.begin(), kinds.end()) {}

    // `classes` numbers the classes of the rows from 0 to n_classes - 1.
    Segment load(const Examples& examples, std::span<const Slot> slots,
                 std::span<const std::uint32_t> classes, std::uint32_t n_classes, Watch& watch);
    Candidate best(Segment& segment, std::span<const ClassCount> counts, Watch& watch);
    // Rows that go left come first; a side that is not searched again needs no features.
    void divide(const Segment& segment, const Candidate& split, bool search_left, bool search_right,
                Segment& left, Segment& right, Watch& watch);
    // A segment is done: what it held is free again.
    void close(const Segment& segment);
    std::span<const std::uint32_t> rows(std::uint32_t begin, std::uint32_t end) const {
        return {rows_.get() + begin, end - begin};
    }
    void release();

  private:
    struct Column {
        std::uint32_t n_values = 0;   // distinct ones, missing included
        std::uint32_t ranks_at = 0;   // counted: in ranks_, one per row
        std::uint32_t values_at = 0;  // counted: in values_
        std::uint32_t counts_at = 0;  // counted: in a block, n_values * n_classes
        bool any_missing = false;
    };
    // Entries of features_: the feature, and whether it is in counted form.
    static constexpr std::uint32_t kCounted = std::uint32_t{1} << 31;
    static constexpr std::uint32_t kNewValue = element::kNewValue, kRow = element::kRow;

    struct TwoClassCut;
    struct ManyClassCut;
    template <typename Cut>
    struct Search;

    void reserve(std::size_t n);
    void load_column(std::uint32_t feature, std::span<const std::uint64_t> keys,
                     const wide::Column& common, Watch& watch);
    bool load_counted(std::uint32_t feature, std::span<const std::uint64_t> keys);
    int tag_bits() const { return static_cast<int>(std::bit_width(n_ - 1)) + 1; }
    bool counting_pays(const Column& column, std::size_t n_rows) const;

    template <typename Cut>
    void search(Segment& segment, Search<Cut>& search, Watch& watch);
    template <typename Cut>
    void glance(const Segment& segment, Search<Cut>& search, std::span<std::uint32_t> features,
                Watch& watch);
    template <typename Cut>
    bool can_glance(std::uint32_t entry) const;
    template <typename Cut>
    bool search_sorted(Search<Cut>& search);
    bool search_glanced(Search<TwoClassCut>& search, float glanced);
    bool search_glanced(Search<ManyClassCut>& search, float glanced);
    wide::TwoClassRows two_class_rows(const Segment& segment, const TwoClassCut& cut) const;
    wide::TwoClassRows two_class_rows(const Segment& segment, const ManyClassCut& cut) const;
    static float doubt(const Segment& segment);
    bool search_sorted_present(Search<TwoClassCut>& search);
    bool search_sorted_present(Search<ManyClassCut>& search);
    template <typename Cut>
    bool search_sorted_missing(Search<Cut>& search, std::uint32_t present_end) const;
    template <typename Cut>
    bool search_sorted_categories(Search<Cut>& search) const;
    template <typename Cut>
    bool search_counted(Search<Cut>& search) const;
    template <typename Cut>
    bool search_counted_categories(Search<Cut>& search) const;
    void set_value(Candidate& best) const;

    void to_sorted(std::uint32_t feature, const Segment& segment, Watch& watch);
    bool is_missing_at(std::uint32_t feature, std::uint32_t position) const;
    std::uint32_t missing_begin(std::uint32_t feature, const Segment& segment) const;
    void mark_left(const Segment& segment, const Candidate& split);
    void mark_left_counted(const Segment& segment, const Candidate& split);
    void mark_left_sorted(const Segment& segment, const Candidate& split);
    void divide_counts(const Segment& segment, Segment& smaller, bool search_smaller,
                       Segment& larger, bool search_larger);
    void count(const Column& column, const Segment& segment, std::uint32_t* counts) const;
    bool any_counting_pays(const Segment& segment, std::size_t n_rows) const;
    std::uint32_t take_counts();

    std::uint32_t* elements(std::uint32_t feature) const {
        return elements_.get() + std::size_t{feature} * n_;
    }
    const std::uint16_t* ranks(const Column& column) const {
        return ranks_.data() + std::size_t{column.ranks_at} * n_;
    }
    double value_at(std::uint32_t feature, std::uint32_t position) const {
        return x_[elements(feature)[position] & kRow][feature];
    }

    std::vector<Kind> kinds_;
    std::span<const std::uint32_t> classes_;
    std::size_t n_ = 0;
    std::uint32_t n_classes_ = 0;

    // Scratch that lives from build to build, so that small builds do not allocate.
    std::size_t capacity_rows_ = 0, capacity_elements_ = 0;
    std::unique_ptr<std::uint32_t[]> rows_, spare_;
    std::unique_ptr<std::uint8_t[]> goes_left_;  // by row
    std::unique_ptr<std::uint32_t[]> elements_;  // sorted form, by feature
    std::vector<const double*> x_;               // by row
    std::vector<std::uint32_t> tags_;            // by row: it, and in the lowest bit its class
    std::vector<std::uint32_t> own_tags_;        // of the segment at hand
    std::size_t n_gathered_ = wide::kColumns;    // features whose keys are made at a time
    std::vector<std::uint64_t> keys_;
    Sorter sorter_;
    DistinctKeys distinct_;
    std::vector<Column> columns_;
    std::vector<std::uint16_t> ranks_;
    std::vector<double> values_;
    std::size_t counts_size_ = 0;
    std::vector<std::vector<std::uint32_t>> counts_;  // blocks
    std::vector<std::uint32_t> counts_free_;
    std::vector<std::uint32_t> features_;  // lists of the open segments
    std::vector<std::uint32_t> many_;      // class counts of ManyClassCut
    std::vector<double> inverse_;          // 1/n: multiplying is cheaper than dividing
    std::vector<float> rough_inverse_, rough_inverse_back_;  // the same, and read from the end
    std::vector<std::uint32_t*> lists_;                      // of the sorted features at hand
    std::vector<float> glanced_;                             // their best rough scores
    std::vector<std::uint32_t> cuts_, ones_left_;            // those that deserve an exact look
};

}  // namespace evertree
