#include "../element_bits.hpp"
#include "avx2.hpp"

#ifdef EVERTREE_AVX2

namespace evertree::wide::avx2 {

namespace {

using element::kNewValue;
using element::kRow;

EVERTREE_WITH_AVX2 inline std::uint32_t flags_of(const std::uint8_t* goes_left,
                                                 const std::uint32_t* rows) {
    std::uint32_t low = 0, high = 0;
    for (std::uint32_t j = 4; j-- > 0;) {
        low = 2 * low + goes_left[rows[j] & kRow];
        high = 2 * high + goes_left[rows[j + 4] & kRow];
    }
    return low | high << 4;
}

// All bits of the lanes that are in a set of eight.
EVERTREE_WITH_AVX2 inline __m256i lanes_in(std::uint32_t set) {
    const __m256i bit = _mm256_set_epi32(128, 64, 32, 16, 8, 4, 2, 1);
    return _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(static_cast<int>(set)), bit), bit);
}

EVERTREE_WITH_AVX2 inline __m256i pick(std::uint32_t lanes, __m256i from) {
    return _mm256_permutevar8x32_epi32(from, widened(kOrders.of[lanes]));
}

template <bool kMarkNew>
EVERTREE_WITH_AVX2 Dividing divide(const std::uint8_t* goes_left, std::uint32_t* spare,
                                   std::uint32_t* list, std::uint32_t n) {
    const __m256i new_value = _mm256_set1_epi32(static_cast<int>(kNewValue));
    std::uint32_t *left = list, *right = spare;
    std::uint32_t left_pending = 1, right_pending = 1, i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256i rows = load(list + i);
        const std::uint32_t on_left = flags_of(goes_left, list + i), on_right = on_left ^ 0xff;
        if constexpr (kMarkNew) {
            const std::uint32_t is_new = signs(rows);
            const std::uint32_t marked = new_lanes<8>(is_new, on_left, on_right, left_pending) |
                                         new_lanes<8>(is_new, on_right, on_left, right_pending);
            rows = _mm256_or_si256(_mm256_andnot_si256(new_value, rows),
                                   _mm256_and_si256(new_value, lanes_in(marked)));
        }
        // Left rows overwrite only what has been read.
        store(left, pick(on_left, rows));
        store(right, pick(on_right, rows));
        left += count_bits(on_left);
        right += count_bits(on_right);
    }
    return {left, right, i, left_pending * kNewValue, right_pending * kNewValue};
}

}  // namespace

Dividing divide_rows(const std::uint8_t* goes_left, std::uint32_t* spare, std::uint32_t* list,
                     std::uint32_t n) {
    return divide<false>(goes_left, spare, list, n);
}

Dividing divide_elements(const std::uint8_t* goes_left, std::uint32_t* spare, std::uint32_t* list,
                         std::uint32_t n) {
    return divide<true>(goes_left, spare, list, n);
}

}  // namespace evertree::wide::avx2

#endif
