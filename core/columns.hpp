// Columns: the features of a set of rows, loaded for Build, which divides the set again and again.
//
// Each feature is kept in whichever of two forms is cheaper for the part (segment) at hand:
//   sorted   its rows in the order of the values; dividing keeps the order (stable partition), so
//            nothing is sorted twice. Searching costs O(rows).
//   counted  examples per value and class; rows list the values that are not the common one.
//            Searching costs O(values * classes); when a segment is divided only the smaller side
//            is counted, the larger one is what remains (Theorem 3.3). It works for ordered values
//            as for categories, but loses on segments with few rows. Where values are many, and
//            classes two, neighbouring values are counted together, in bins: what no cut within a
//            bin can exceed says into which of them the search has to look.
//
// Several threads may work on different features, or on different segments, at the same time: they
// write to different places.
//
// Must not know: how splits are found, limits, nodes.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "codes.hpp"
#include "copies.hpp"
#include "examples.hpp"
#include "memory.hpp"
#include "tree.hpp"
#include "wide/wide.hpp"

namespace evertree {

struct Column {
    bool varies = false;  // else it is not loaded
    bool counted = false;
    bool binned = false;  // counted, and some of its values together
    bool any_missing = false;
    std::uint32_t n_values = 0;   // counted: distinct ones, missing included
    std::uint32_t counts_at = 0;  // counted: in a block of counts, n_values * n_classes
    std::vector<double> values;   // counted: in ascending order, missing last
};

// Features side by side in a record, by their positions there.
struct Neighbours {
    std::size_t begin, end;
    std::size_t offset;  // of the first
    std::size_t code_bytes;
};

// Some of them whose values are being put into bins.
struct BinGroup {
    Neighbours neighbours;
    bool done = false;
    std::array<bool, wide::kColumns> wanted{};
    std::array<std::uint64_t, wide::kColumns> first_keys;
    std::array<wide::Column, wide::kColumns> keys{};  // what all rows so far have in common
    std::array<wide::Bounds, wide::kColumns> bounds;
};

struct Columns {
    explicit Columns(std::span<const Kind> of_features)
        : kinds(of_features.begin(), of_features.end()), columns(of_features.size()) {}

    // Makes room for a set of rows, whose classes are numbered from 0 to classes - 1.
    void prepare(const Packing& of_records, std::span<const std::uint32_t> row_classes,
                 std::uint32_t n_row_classes);
    void forget_features();
    // Bring some of the rows in.
    void find_records(const Examples& examples, std::span<const Slot> slots, std::size_t begin,
                      std::size_t end);
    void number_rows(std::size_t begin, std::size_t end);
    void tag_rows(std::size_t begin, std::size_t end);
    void release();

    // From here on a row stands for all that are equal to it, as `copies` has found them; it is
    // listed once among the rows of a segment, and in sorted features as often as it counts.
    void merge_copies(std::span<const std::uint32_t> row_classes);
    // A list of rows or elements, each as often as it counts, in the same place.
    void repeat(std::uint32_t* list, std::size_t n_rows, std::size_t n_listed) const;
    // The rows as they were before they were merged: of a range that has each as often as it
    // counts, and of one that has each once, up to rows_end.
    void name_rows(std::uint32_t begin, std::uint32_t end);
    void name_all_rows(std::uint32_t begin, std::uint32_t rows_end, std::uint32_t end);

    std::uint32_t* elements(std::size_t feature) const { return sorted.get() + feature * n_all; }
    std::span<const std::uint32_t> row_span(std::uint32_t begin, std::uint32_t end) const {
        return {rows.get() + begin, end - begin};
    }
    bool counting_pays(const Column& column, std::size_t n_rows) const;
    // The most elements that a list of the feature has when it is sorted.
    std::size_t longest_list(const Column& column) const;

    // The features with few values: worth looking for at all; and when rows are coded and all keys
    // found, which it is. Then the values of each.
    bool start_codes(std::size_t n_workers);
    void settle_codes();
    void find_values(std::size_t feature);
    // Those of a range of positions that are wanted, some at once, and what lies between them.
    template <typename Wanted, typename Do>
    void each_neighbours(std::size_t begin, std::size_t end, std::size_t at_once, Wanted wanted,
                         Do do_this) const;

    // Real features of many values can be counted in bins: groups of them, and some of the rows.
    // When bins have been found, whether they are right for all rows of all groups: a few keys may
    // differ in more bits than some had told, then again, now that all are known. In the end, where
    // they are counted.
    bool can_bin() const;
    void start_bins();
    bool settle_groups();
    void settle_bins();

    // Once all features are loaded.
    void make_inverses();

    // Blocks of counts for all counted features.
    std::uint32_t* take_counts();
    void give_back_counts(std::uint32_t* block);

    std::vector<Kind> kinds;
    const Packing* packing = nullptr;  // of the records
    std::vector<Column> columns;
    std::span<const std::uint32_t> classes;  // by row
    std::uint32_t n_classes = 0;
    std::size_t n = 0;  // rows, and those they stand for
    std::size_t n_all = 0;
    const std::uint32_t* times = nullptr;  // by row: how often it counts, if any does so twice

    // Memory that lives from build to build, so that small builds do not allocate.
    Buffer<std::uint32_t> rows;      // by position: those of a segment side by side
    Buffer<std::uint8_t> goes_left;  // by row
    Buffer<std::uint32_t> sorted;    // elements by feature and position, of all that are shared
    CodedRows coded;                 // the counted features
    Copies copies;
    Buffer<const std::byte*> records;  // by row
    Buffer<std::uint32_t> tags;        // by row: it, and in the lowest bit its class
    // 1/n: multiplying is cheaper than dividing. The same, and from the end.
    Buffer<float> rough_inverse, rough_inverse_back;
    std::size_t n_inverses = 0;
    std::size_t counts_size = 0;
    std::vector<BinGroup> bin_groups;
    std::vector<const std::byte*> some_records;

  private:
    static constexpr std::size_t kMostCounts = std::size_t{1} << 28;

    void make_room(std::size_t n_rows);
    void make_inverses(std::size_t n_rows);

    bool coding_ = false;   // the rows of this build
    bool sharing_ = false;  // they are several workers'
    std::size_t capacity_rows_ = 0, capacity_goes_left_ = 0, capacity_records_ = 0,
                capacity_tags_ = 0;
    std::size_t capacity_sorted_ = 0;
    std::size_t counts_block_size_ = 0;
    std::vector<std::unique_ptr<std::uint32_t[]>> counts_blocks_;
    std::vector<std::uint32_t*> counts_free_;
    std::mutex counts_mutex_;
};

template <typename Wanted, typename Do>
void Columns::each_neighbours(std::size_t begin, std::size_t end, std::size_t at_once,
                              Wanted wanted, Do do_this) const {
    const std::span<const std::uint32_t> order = packing->order();
    for (const Packing::Group& group : packing->groups()) {
        const std::size_t group_end = std::min<std::size_t>(end, group.end);
        std::size_t first = std::max<std::size_t>(begin, group.begin);
        while (first < group_end) {
            if (!wanted(order[first])) {
                ++first;
                continue;
            }
            std::size_t last = std::min(first + at_once, group_end);
            while (!wanted(order[last - 1])) --last;
            const std::size_t offset = group.offset + (first - group.begin) * group.code_bytes;
            do_this(Neighbours{first, last, offset, group.code_bytes});
            first = last;
        }
    }
}

}  // namespace evertree
