// Wide: the innermost loops of a build, several rows at a time.
//
// Each loop has three versions with the same answers: a plain one for every machine, one for
// processors with AVX2 and one for those with AVX-512, a few of them also one for what Ice Lake and
// Zen 4 have beyond it; chosen when the program starts. What is rough here (single precision) only
// says which cuts deserve an exact look.
//
// Must not know: what the rows are rows of.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace evertree {

enum class Form : std::uint8_t;  // packing.hpp

// An element of a sorted feature: a row, whether its value differs from the one before, and (with
// two classes) its class.
namespace element {
inline constexpr std::uint32_t kNewValue = std::uint32_t{1} << 31;
inline constexpr std::uint32_t kClassOne = std::uint32_t{1} << 30;
inline constexpr std::uint32_t kRow = kClassOne - 1;
}  // namespace element

namespace wide {

// Which of the versions are used: the best that the processor has or, for tests, one below.
enum class Level : std::uint8_t { plain, avx2, avx512, avx512_icl };
extern Level level;
Level best_level();

inline constexpr std::size_t kPadding = 16;  // elements that may be written behind the end

// ---- pack.cpp -----------------------------------------------------------------------------------

// The codes of some of the values of a row; false if one does not fit the form.
bool pack(const double* x, const std::uint32_t* features, std::size_t n, Form form, std::byte* out);

// ---- keys.cpp: codes of many rows ---------------------------------------------------------------

inline constexpr std::size_t kColumns = 8;  // a line of the cache

// What a column's keys have in common.
struct Column {
    std::uint64_t differing = 0;  // the bits in which any two of them differ
    std::uint64_t largest = 0;
};
// The codes of up to kColumns neighbouring values of each record, one column after the other.
void gather_keys(const std::byte* const* records, std::size_t n, std::size_t offset,
                 std::size_t code_bytes, std::size_t n_columns, std::uint64_t* keys,
                 Column* columns);

// The bits in which any two of n records differ.
void mark_differing(const std::byte* const* records, std::size_t n, std::size_t n_bytes,
                    std::byte* differing);

// ---- lists.cpp: rows as lists of places ---------------------------------------------------------

// Bits of the bytes in which a record differs from a common one, of those that are wanted; 64 bytes
// a word.
void mark_uncommon(const std::byte* record, std::size_t n_bytes, const std::byte* common,
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
bool sort(std::uint32_t* words, std::uint32_t* spare, std::size_t n, std::uint32_t low_bits);
// Words whose lower bits are a row and, below it, its class, as elements. A value is new where the
// bits above differ from those of the word before.
template <typename Word, typename Element>
void to_elements(const Word* words, std::size_t n, Word low_bits, int class_bits,
                 Element* elements);

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

// ---- bins.cpp: values, or bins of neighbouring ones, of which rows are counted ------------------

inline constexpr std::size_t kBins = 256;

// Where bins begin, in ascending order. All that counts are 32 bits of a key, the upper ones of
// those in which keys differ; behind the last bound there are only the largest of these.
struct Bounds {
    int shift;
    std::size_t n;
    std::uint32_t upper[kBins];

    std::uint32_t upper_bits(std::uint64_t key) const {
        return static_cast<std::uint32_t>(key >> shift);
    }
    // Whether keys that differ in these bits can be told apart by those.
    bool reach(std::uint64_t differing) const { return differing >> shift >> 32 == 0; }
};
// For each key the last bin that does not begin above it, or the first.
void find_bins(const std::uint64_t* keys, std::size_t n, const Bounds& bounds, std::uint16_t* bins);

// Rows of two classes, counted by value: zeros and ones in turn.
struct CountedRows {
    std::uint32_t n, ones;
    const std::uint32_t* counts;
    std::size_t n_values;
    const std::uint8_t* several;  // whether a value is a bin of several; null if none is
};
// The best rough scores (within 1e-6 * n) of the cuts between values, and what no cut within a bin
// exceeds: that of all its zeros, or all its ones, on the left. Negative if there is no such cut.
struct CountScores {
    float cut = -1.0f, within = -1.0f;
};
// Also those of the cut behind each value, and within it, if there is room for them.
CountScores score_counts(const CountedRows& rows, float* cuts, float* within);

// ---- divide.cpp ---------------------------------------------------------------------------------

// Divide a list of rows, stably: those that go left, then those that go right. `goes_left` has one
// byte a row, 0 or 1; `spare` has room for a list, with padding. How many go left.
std::uint32_t divide_rows(const std::uint8_t* goes_left, std::uint32_t* spare, std::uint32_t* list,
                          std::uint32_t n);
// The same for elements: a value is new on its side if any value since its neighbour there was new.
void divide_elements(const std::uint8_t* goes_left, std::uint32_t* spare, std::uint32_t* list,
                     std::uint32_t n);

// ---- few.cpp: few rows of few classes -----------------------------------------------------------

// An element of a sorted feature again, in half the space, with the number of its row's class
// between its row, whose flag fits a register, and the bit that says whether its value is new.
namespace few {
using Element = std::uint16_t;
inline constexpr int kRowBits = 11, kClassBits = 4;
inline constexpr Element kNewValue = 1 << 15, kRow = (1 << kRowBits) - 1;
inline constexpr Element kClass = kNewValue - 1 - kRow;
inline constexpr std::size_t kMostRows = kRow + 1, kMostClasses = 1 << kClassBits;
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
// The classes that occur, two or more: their numbers, ascending, and how many rows have each.
struct Classes {
    std::size_t n = 0;
    Element numbers[kMostClasses], counts[kMostClasses];
};
// The rough score of each cut, one list after the other, a stride apart; negative where it is not
// between different values. Within a millionth of itself, it is
//     (ones_left * n - ones * left)^2 / (left * right)   with two classes, the second the ones,
//     squares_left / left + squares_right / right        with more: of their counts.
// The best of all, and for each list whether it has any cut.
float score_cuts(const Lists& lists, const Classes& classes, float* scores, std::uint8_t* has_cuts);
// The cuts of one list that reach a score, in order: how many, and where.
std::uint32_t cuts_that_reach(const float* scores, std::uint32_t n, float score,
                              std::uint16_t* cuts);
// How many of the first elements are of a class.
std::uint32_t count_class(const Element* list, std::uint32_t n, Element number);

// Divides lists stably into others; a side that is not wanted has no place.
struct Sides {
    Element *left, *right;  // of list 0, or null
    std::uint32_t n_left;
};
void divide(const Lists& lists, const std::uint64_t* goes_left, std::size_t n_rows,
            const Sides& to);

// Whether all this, and a handful, is faster than the way of many rows; or as a test says.
bool pays();
void use(std::optional<bool> use);
}  // namespace few

// ---- handful.cpp: up to sixteen rows ------------------------------------------------------------

namespace handful {
using Rows = std::uint16_t;  // a set of them, a bit each
inline constexpr std::size_t kMostRows = 16, kMostClasses = 16;

// For each of n keys, the rows whose keys are not above it.
void at_most(const std::uint64_t* keys, std::size_t n, Rows* at_most);

struct Classes {
    std::size_t n = 0;
    std::array<Rows, kMostClasses> of_rows;
};
// Left are those rows of the set that are at most a certain one, by one of the features.
struct Cut {
    std::uint32_t feature = 0, row = 0;
    bool found = false;
};
// Of n rows there is, for each feature, what `at_most` says. The cut of a set of them that leaves
// the least mass; of equal ones that of the first feature, with the fewest on the left.
Cut best_cut(const Rows* at_most, std::size_t n_features, std::size_t n, Rows set,
             const Classes& classes);
}  // namespace handful

}  // namespace wide
}  // namespace evertree
