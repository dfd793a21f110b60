// Order: the values of one feature, sorted.
//
// Keys are doubles turned into integers that sort the same way, the missing value last.
// Must not know: what the values are sorted for.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace evertree {

struct Keyed {
    std::uint64_t key;
    std::uint32_t row;
};

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
    // Sorts by key; the order among equal keys is not specified.
    void sort(std::span<Keyed> items);
    void release() { spare_ = {}; }

   private:
    std::vector<Keyed> spare_;
};

}  // namespace evertree
