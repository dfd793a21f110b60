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
    void release();

  private:
    std::uint64_t key_of(std::uint64_t word) const { return keys_[(word & tag_mask_) >> 1]; }
    void settle_by_keys();

    std::size_t capacity_ = 0;
    Buffer<std::uint64_t> words_, spare_;
    std::span<const std::uint64_t> keys_;
    std::uint64_t tag_mask_ = 0;
    bool all_bits_fit_ = true;
};

// The keys of a column that has few different ones, numbered as they appear, without sorting it.
class KeyCodes {
  public:
    static constexpr std::size_t kMost = 4096;

    void start(std::size_t most);
    // Codes for the next keys; if there get to be too many, the column is given up.
    void add(std::span<const std::uint64_t> keys, std::uint16_t* codes);
    bool given_up() const { return keys_.size() > most_; }
    std::size_t size() const { return keys_.size(); }
    // Turns codes into ranks; afterwards `keys` is in ascending order.
    void to_ranks(std::span<std::uint16_t> codes);
    std::span<const std::uint64_t> keys() const { return keys_; }

  private:
    static constexpr std::uint16_t kNoCode = 0xffff;

    std::uint16_t code(std::uint64_t key) {
        for (std::size_t place = hash(key);; ++place) {
            const wide::KeyCode& entry = table_[place & (table_.size() - 1)];
            if (entry.key == key && entry.code != kNoCode) return entry.code;
            if (entry.code == kNoCode) return add(key);
        }
    }
    static std::size_t hash(std::uint64_t key) {
        return static_cast<std::size_t>((key * 0x9e3779b97f4a7c15u) >> 48);
    }
    std::uint16_t add(std::uint64_t key);
    void place(wide::KeyCode entry);

    std::size_t most_ = 0;
    std::vector<std::uint64_t> keys_;
    std::vector<wide::KeyCode> table_;  // by hash, at most a quarter full
    wide::KeyCode last_, one_before_;
};

}  // namespace evertree
