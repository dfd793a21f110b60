// Wide: the innermost loops of a build, several rows at a time.
//
// Each loop has two versions with the same answers: a plain one for every machine, and one for
// processors with AVX-512, chosen when the program starts. What is rough here (single precision)
// only says which cuts deserve an exact look.
//
// Must not know: what the rows are rows of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace evertree {

// An element of a sorted feature: a row, whether its value differs from the one before, and (with
// two classes) its class.
namespace element {
inline constexpr std::uint32_t kNewValue = std::uint32_t{1} << 31;
inline constexpr std::uint32_t kClassOne = std::uint32_t{1} << 30;
inline constexpr std::uint32_t kRow = kClassOne - 1;
}  // namespace element

namespace wide {

inline constexpr std::size_t kPadding = 16;  // elements that may be written behind the end

// ---- keys.cpp: doubles as integers that sort the same way, the missing value last ---------------

inline constexpr std::size_t kColumns = 8;  // a line of the cache

// What a column's keys have in common.
struct Column {
    std::uint64_t differing = 0;  // the bits in which any two of them differ
    std::uint64_t largest = 0;
};
// The keys of up to kColumns neighbouring values of each row, one column after the other.
void gather_keys(const double* const* rows, std::size_t n, std::size_t first_column,
                 std::size_t n_columns, std::uint64_t* keys, Column* columns);

// ---- lists.cpp: rows as lists of places ---------------------------------------------------------

// Bits of the features in which a row differs from the common values, of those that are wanted; 64
// features a word.
void mark_uncommon(const double* row, std::size_t n_features, const std::uint64_t* common,
                   const std::uint64_t* wanted, std::uint64_t* marks);

// Where a row's list begins, and how many places are on it.
class List {
  public:
    static constexpr std::size_t kMostPlaces = (1 << 20) - 1;

    List() = default;
    List(std::size_t first, std::size_t size) : packed_(first << kSizeBits | size) {}
    std::size_t first() const { return packed_ >> kSizeBits; }
    std::size_t size() const { return packed_ & kMostPlaces; }

  private:
    static constexpr int kSizeBits = 20;
    std::uint64_t packed_;
};
struct Lists {
    const List* of_row;
    const std::uint32_t* places;

    // Going through rows, whose lists lie anywhere in memory: fetches one that is soon needed.
    void fetch_ahead(const std::uint32_t* rows, std::size_t n, std::size_t at) const {
        constexpr std::size_t ahead = 8;
        if (at + 2 * ahead >= n) return;
        __builtin_prefetch(of_row + rows[at + 2 * ahead]);
        __builtin_prefetch(places + of_row[rows[at + ahead]].first());
    }
};
// For each of n rows the place on its list that is at least `first` and less than `first + width`,
// or else `common`.
void find_places(const Lists& lists, const std::uint32_t* rows, std::size_t n, std::uint32_t first,
                 std::uint32_t width, std::uint32_t common, std::uint32_t* out);

// ---- sort.cpp -----------------------------------------------------------------------------------

// Sorts different words by the bits above the lower ones, with a spare array of the same size;
// false if only the plain way is there.
bool sort(std::uint64_t* words, std::uint64_t* spare, std::size_t n, std::uint64_t low_bits);
// Words whose lower bits are a row and its class, as elements. A value is new where the bits above
// differ from those of the word before.
void to_elements(const std::uint64_t* words, std::size_t n, std::uint64_t low_bits,
                 std::uint32_t* elements);

// ---- cuts.cpp -----------------------------------------------------------------------------------

// Sorted lists of the same rows, which have two classes. Cut i of a list has elements 0 to i on its
// left; its score is ones_left^2/left + ones_right^2/right.
struct TwoClassRows {
    std::uint32_t n;
    std::uint32_t ones;         // of class one
    const float* inverse;       // inverse[i] = 1/(i + 1)
    const float* inverse_back;  // inverse_back[i] = 1/(n - 1 - i)
};

// For each list the best rough score (within 1e-6 * n) of a cut between different values; negative
// if there is no such cut.
void best_scores(const TwoClassRows& rows, const std::uint32_t* const* lists, std::size_t n_lists,
                 float* scores);

// The same for more classes; the score is the sum of the squared class counts on the left, divided
// by their number, plus that of the right.
struct ManyClassRows {
    static constexpr std::size_t kMostClasses = 8;

    std::uint32_t n;
    const std::uint32_t* class_of_row;
    std::size_t n_classes;  // that occur
    std::uint32_t classes[kMostClasses];
    float totals[kMostClasses];
    const float *inverse, *inverse_back;
};
void best_scores(const ManyClassRows& rows, const std::uint32_t* const* lists, std::size_t n_lists,
                 float* scores);

// The cuts between different values that reach a rough score, in order: how many, where, and how
// many of class one are on their left. There must be room for n of them.
std::uint32_t cuts_that_reach(const TwoClassRows& rows, const std::uint32_t* list, float score,
                              std::uint32_t* cut, std::uint32_t* ones_left);

// A bit for each of up to 64 counts: whether it is not zero.
std::uint64_t which_count(const std::uint32_t* counts, std::size_t n);

// ---- divide.cpp ---------------------------------------------------------------------------------

// Divide a list of rows, stably: those that go left, then those that go right. `goes_left` has one
// byte a row, 0 or 1; `spare` has room for a list, with padding. How many go left.
std::uint32_t divide_rows(const std::uint8_t* goes_left, std::uint32_t* spare, std::uint32_t* list,
                          std::uint32_t n);
// The same for elements: a value is new on its side if any value since its neighbour there was new.
void divide_elements(const std::uint8_t* goes_left, std::uint32_t* spare, std::uint32_t* list,
                     std::uint32_t n);

// ---- few.cpp: few rows of two classes -----------------------------------------------------------

// An element of a sorted feature again, in half the space: its row's flag fits a register.
namespace few {
using Element = std::uint16_t;
inline constexpr Element kNewValue = 1 << 15, kClassOne = 1 << 14, kRow = (1 << 11) - 1;
inline constexpr std::size_t kMostRows = kRow + 1;
inline constexpr std::size_t kLanes = 32;  // elements that may be read or written behind the end

// Some of many lists, which are `stride` elements apart: the part from `begin` on, of n elements.
struct Lists {
    Element* first;
    std::size_t stride;
    const std::uint16_t* which;
    std::size_t n_lists;
    std::uint32_t begin, n;

    Element* list(std::size_t i) const { return first + which[i] * stride + begin; }
};
// The rough score of each cut, one list after the other, a stride apart; negative where it is not
// between different values. It is (ones_left * n - ones * left)^2 / (left * right), within 1e-6 of
// itself. The best of all, and for each list whether it has any cut.
float score_cuts(const Lists& lists, std::uint32_t ones, float* scores, std::uint8_t* has_cuts);
// The cuts of one list that reach a score, in order: how many, and where.
std::uint32_t cuts_that_reach(const float* scores, std::uint32_t n, float score,
                              std::uint16_t* cuts);
// How many of the first elements are of class one.
std::uint32_t count_ones(const Element* list, std::uint32_t n);

// Divides lists stably into others; a side that is not wanted has no place.
struct Sides {
    Element *left, *right;  // of list 0, or null
};
void divide(const Lists& lists, const std::uint64_t* goes_left, std::size_t n_rows,
            const Sides& to);

// Whether all this is faster than the way of many rows; or as a test says.
bool pays();
void use(std::optional<bool> use);
}  // namespace few

// For tests: without, the plain versions are used on every machine.
void use_avx512(bool use);

}  // namespace wide
}  // namespace evertree
