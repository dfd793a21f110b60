// Order: the values of one feature, sorted.
//
// Keys are doubles turned into integers that sort the same way, the missing value last. What is
// sorted is one word a row: the bits in which the keys differ, as many as fit, above a
// tag. Where they do not all fit, rows with equal words are put in order by their keys.
//
// Must not know: what the values are sorted for.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "watch.hpp"

namespace evertree {

inline std::uint64_t sort_key(double value) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    constexpr std::uint64_t sign = std::uint64_t{1} << 63;
    return (bits & sign) != 0 ? ~bits : bits | sign;
}
inline double value_of_key(std::uint64_t key) {
    constexpr std::uint64_t sign = std::uint64_t{1} << 63;
    return std::bit_cast<double>((key & sign) != 0 ? key & ~sign : ~key);
}

class Sorter {
  public:
    // `differing` has (at least) the bits in which any two keys differ; not zero. `tags` go with
    // the keys; they are different, and below 2^tag_bits. The order among equal keys is not
    // specified.
    void sort(std::span<const std::uint64_t> keys, std::uint64_t differing,
              const std::uint32_t* tags, int tag_bits, Watch& watch);
    // What was sorted as elements; a tag is a row and, in its lowest bit, a class. Where the bits
    // of the keys did not all fit, the row must be the key's place.
    void elements(std::uint32_t* out) const;
    void release() { words_ = spare_ = {}; }

  private:
    std::uint64_t key_of(std::uint64_t word) const { return keys_[(word & tag_mask_) >> 1]; }
    void settle_by_keys();

    std::vector<std::uint64_t> words_, spare_;
    std::span<const std::uint64_t> keys_;
    std::uint64_t tag_mask_ = 0;
    bool all_bits_fit_ = true;
};

// The keys of a column that has few different ones, without sorting the column.
class DistinctKeys {
  public:
    static constexpr std::size_t kMost = 4096;

    // Ranks the rows by their keys; false, and nothing else, if there are more than `most` of them.
    bool rank(std::span<const std::uint64_t> keys, std::size_t most, std::uint16_t* ranks);
    // In ascending order.
    std::span<const std::uint64_t> keys() const { return keys_; }

  private:
    std::uint16_t code(std::uint64_t key);

    std::vector<std::uint64_t> keys_;
    std::vector<std::uint16_t> table_;  // codes by hash, at most half full
    std::vector<std::uint16_t> rank_of_code_;
};

}  // namespace evertree
