#include "order.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <utility>

namespace evertree {

namespace {

constexpr std::size_t kRun = 8;              // sorted by insertion
constexpr std::size_t kRadixFrom = 1 << 10;  // below, merging beats filling histograms
constexpr int kDigitBits = 8;
constexpr std::size_t kDigits = 64 / kDigitBits;
constexpr std::size_t kBuckets = std::size_t{1} << kDigitBits;

void insertion_sort(Keyed* first, Keyed* last) {
    for (Keyed* next = first + 1; next < last; ++next) {
        const Keyed item = *next;
        Keyed* hole = next;
        for (; hole != first && hole[-1].key > item.key; --hole) *hole = hole[-1];
        *hole = item;
    }
}

// Without a branch on the comparison: which side comes next is not predictable.
void merge(const Keyed* a, const Keyed* a_end, const Keyed* b, const Keyed* b_end, Keyed* out) {
    while (a != a_end && b != b_end) {
        const bool take_b = b->key < a->key;
        *out++ = take_b ? *b : *a;
        a += take_b ? 0 : 1;
        b += take_b ? 1 : 0;
    }
    out = std::copy(a, a_end, out);
    std::copy(b, b_end, out);
}

void merge_sort(Keyed* items, Keyed* spare, std::size_t n) {
    for (std::size_t at = 0; at < n; at += kRun) {
        insertion_sort(items + at, items + std::min(at + kRun, n));
    }
    Keyed *from = items, *to = spare;
    for (std::size_t width = kRun; width < n; width *= 2) {
        for (std::size_t at = 0; at < n; at += 2 * width) {
            const std::size_t middle = std::min(at + width, n), end = std::min(at + 2 * width, n);
            merge(from + at, from + middle, from + middle, from + end, to + at);
        }
        std::swap(from, to);
    }
    if (from != items) std::memcpy(items, from, n * sizeof(Keyed));
}

void radix_sort(Keyed* items, Keyed* spare, std::size_t n) {
    std::array<std::array<std::uint32_t, kBuckets>, kDigits> counts{};
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t digit = 0; digit < kDigits; ++digit) {
            ++counts[digit][(items[i].key >> (digit * kDigitBits)) & (kBuckets - 1)];
        }
    }
    Keyed *from = items, *to = spare;
    for (std::size_t digit = 0; digit < kDigits; ++digit) {
        const std::size_t shift = digit * kDigitBits;
        auto& places = counts[digit];
        // A digit that all keys share moves nothing.
        if (places[(from[0].key >> shift) & (kBuckets - 1)] == n) continue;
        std::uint32_t place = 0;
        for (std::uint32_t& bucket : places) place += std::exchange(bucket, place);
        for (std::size_t i = 0; i < n; ++i) {
            to[places[(from[i].key >> shift) & (kBuckets - 1)]++] = from[i];
        }
        std::swap(from, to);
    }
    if (from != items) std::memcpy(items, from, n * sizeof(Keyed));
}

}  // namespace

void Sorter::sort(std::span<Keyed> items) {
    const std::size_t n = items.size();
    if (n <= 2 * kRun) return insertion_sort(items.data(), items.data() + n);
    if (spare_.size() < n) spare_.resize(n);
    if (n < kRadixFrom) {
        merge_sort(items.data(), spare_.data(), n);
    } else {
        radix_sort(items.data(), spare_.data(), n);
    }
}

}  // namespace evertree
