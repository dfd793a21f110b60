#include <algorithm>
#include <cstring>

#include "avx2/avx2.hpp"
#include "avx512/avx512.hpp"
#include "element_bits.hpp"
#include "progress.hpp"
#include "wide.hpp"

namespace evertree::wide {

using element::kNewValue;
using element::kRow;

// Both write to both sides and advance only one: which side is not predictable.
namespace plain {

std::uint32_t divide_rows(const std::uint8_t* goes_left, std::uint32_t* spare, std::uint32_t* first,
                          std::uint32_t n, Dividing at) {
    for (std::uint32_t i = at.n_read; i < n; ++i) {
        const std::uint32_t row = first[i], is_left = goes_left[row];
        *at.left = *at.right = row;
        at.left += is_left;
        at.right += 1 - is_left;
    }
    std::memcpy(at.left, spare, static_cast<std::size_t>(at.right - spare) * sizeof *spare);
    return static_cast<std::uint32_t>(at.left - first);
}

void divide_elements(const std::uint8_t* goes_left, std::uint32_t* spare, std::uint32_t* first,
                     std::uint32_t n, Dividing at) {
    for (std::uint32_t i = at.n_read; i < n; ++i) {
        const std::uint32_t row = first[i] & ~kNewValue, is_new = first[i] & kNewValue;
        const std::uint32_t is_left = goes_left[row & kRow];
        at.left_new |= is_new;
        at.right_new |= is_new;
        *at.left = row | at.left_new;
        *at.right = row | at.right_new;
        at.left += is_left;
        at.right += 1 - is_left;
        at.left_new &= is_left - 1;
        at.right_new &= 0 - is_left;
    }
    std::memcpy(at.left, spare, static_cast<std::size_t>(at.right - spare) * sizeof *spare);
}

}  // namespace plain

#ifdef EVERTREE_AVX512

namespace {

constexpr std::uint32_t kLanes = 16;

// Which of up to sixteen rows go left.
EVERTREE_WIDE inline std::uint32_t flags_of(const std::uint8_t* goes_left,
                                            const std::uint32_t* rows, std::uint32_t count) {
    std::uint32_t low = 0, high = 0;
    if (count == kLanes) {
        for (std::uint32_t j = 8; j-- > 0;) {
            low = 2 * low + goes_left[rows[j] & kRow];
            high = 2 * high + goes_left[rows[j + 8] & kRow];
        }
        return low | high << 8;
    }
    for (std::uint32_t j = 0; j < count; ++j) {
        low |= std::uint32_t{goes_left[rows[j] & kRow]} << j;
    }
    return low;
}

EVERTREE_WIDE inline __m512i pick(std::uint32_t lanes, __m512i from) {
    return _mm512_maskz_compress_epi32(static_cast<__mmask16>(lanes), from);
}

template <bool kMarkNew>
EVERTREE_WIDE std::uint32_t divide(const std::uint8_t* goes_left, std::uint32_t* spare,
                                   std::uint32_t* first, std::uint32_t n) {
    const __m512i new_value = _mm512_set1_epi32(static_cast<int>(kNewValue));
    std::uint32_t *left = first, *right = spare;
    std::uint32_t left_pending = 1, right_pending = 1;
    for (std::uint32_t i = 0; i < n; i += kLanes) {
        const std::uint32_t count = std::min(n - i, kLanes);
        __m512i rows = _mm512_maskz_loadu_epi32(first_of_16(count), first + i);
        const std::uint32_t on_left = flags_of(goes_left, first + i, count);
        const std::uint32_t on_right = first_of_16(count) & ~on_left;
        if constexpr (kMarkNew) {
            const std::uint32_t is_new = _mm512_movepi32_mask(rows);
            const std::uint32_t marked =
                new_lanes<kLanes>(is_new, on_left, on_right, left_pending) |
                new_lanes<kLanes>(is_new, on_right, on_left, right_pending);
            rows = _mm512_andnot_si512(new_value, rows);
            rows = _mm512_mask_or_epi32(rows, static_cast<__mmask16>(marked), rows, new_value);
        }
        const auto n_left = static_cast<std::uint32_t>(_mm_popcnt_u32(on_left));
        // Left rows overwrite only what has been read.
        _mm512_mask_storeu_epi32(left, first_of_16(n_left), pick(on_left, rows));
        _mm512_storeu_si512(right, pick(on_right, rows));
        left += n_left;
        right += count - n_left;
    }
    const auto n_right = static_cast<std::uint32_t>(right - spare);
    for (std::uint32_t i = 0; i < n_right; i += kLanes) {
        const __m512i rows = _mm512_loadu_si512(spare + i);
        _mm512_mask_storeu_epi32(left + i, first_of_16(n_right - i), rows);
    }
    return n - n_right;
}

}  // namespace

#endif

std::uint32_t divide_rows(const std::uint8_t* goes_left, std::uint32_t* spare, std::uint32_t* list,
                          std::uint32_t n) {
#ifdef EVERTREE_AVX512
    if (level >= Level::avx512) return divide<false>(goes_left, spare, list, n);
    if (level == Level::avx2) {
        const Dividing rest = avx2::divide_rows(goes_left, spare, list, n);
        return plain::divide_rows(goes_left, spare, list, n, rest);
    }
#endif
    return plain::divide_rows(goes_left, spare, list, n, {list, spare});
}

void divide_elements(const std::uint8_t* goes_left, std::uint32_t* spare, std::uint32_t* list,
                     std::uint32_t n) {
#ifdef EVERTREE_AVX512
    if (level >= Level::avx512) {
        divide<true>(goes_left, spare, list, n);
        return;
    }
    if (level == Level::avx2) {
        const Dividing rest = avx2::divide_elements(goes_left, spare, list, n);
        return plain::divide_elements(goes_left, spare, list, n, rest);
    }
#endif
    plain::divide_elements(goes_left, spare, list, n, {list, spare});
}

}  // namespace evertree::wide
