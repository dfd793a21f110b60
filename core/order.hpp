// Order: the values of one feature, sorted.
//
// Keys are doubles turned into integers that sort the same way, the missing value last. What is
// sorted is one word a row: the bits in which the keys differ, as many as fit, above a
// tag. Where they do not all fit, rows with equal words are put in order by their keys. Where half
// a word is enough, it is half a word.
//
// Must not know: what the values are sorted for.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "memory.hpp"
#include "watch.hpp"
#include "wide/wide.hpp"

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

// What is sorted with the keys: for each one of n rows and, in the lowest bits, its class.
struct Tags {
    const std::uint32_t* of_key;
    int class_bits, bits;

    Tags(const std::uint32_t* tags, std::size_t n, int bits_of_class = 1)
        : of_key(tags),
          class_bits(bits_of_class),
          bits(static_cast<int>(std::bit_width((n << bits_of_class) - 1))) {}
};

class Sorter {
  public:
    // `differing` has (at least) the bits in which any two keys differ; not zero. All tags are
    // different. The order among equal keys is not specified.
    void sort(std::span<const std::uint64_t> keys, std::uint64_t differing, const Tags& tags,
              Watch& watch);
    // What was sorted as elements. Where the bits of the keys did not all fit, the row must be the
    // key's place.
    template <typename Element>
    void elements(Element* out) const;
    void release();

  private:
    std::uint64_t key_of(std::uint64_t word) const {
        return keys_[(word & tag_mask_) >> class_bits_];
    }
    bool sort_narrow(const std::uint32_t* tags, int shared);
    void settle_by_keys();

    std::size_t capacity_ = 0;
    Buffer<std::uint64_t> words_, spare_;
    Buffer<std::uint32_t> narrow_words_, narrow_spare_;
    bool narrow_ = false;
    std::span<const std::uint64_t> keys_;
    std::uint64_t tag_mask_ = 0;
    int class_bits_ = 1;
    bool all_bits_fit_ = true;
};

}  // namespace evertree
