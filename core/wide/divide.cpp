#include <algorithm>
#include <cstring>

#include "avx512.hpp"
#include "wide.hpp"

namespace evertree::wide {

using element::kNewValue;
using element::kRow;

// Both write to both sides and advance only one: which side is not predictable.
namespace plain {

std::uint32_t divide_rows(const std::uint8_t* goes_left, std::uint32_t* spare, std::uint32_t* first,
                          std::uint32_t n) {
    std::uint32_t *left = first, *right = spare;
    for (std::uint32_t i = 0; i < n; ++i) {
        const std::uint32_t row = first[i], is_left = goes_left[row];
        *left = *right = row;
        left += is_left;
        right += 1 - is_left;
    }
    std::memcpy(left, spare, static_cast<std::size_t>(right - spare) * sizeof *spare);
    return static_cast<std::uint32_t>(left - first);
}

void divide_elements(const std::uint8_t* goes_left, std::uint32_t* spare, std::uint32_t* first,
                     std::uint32_t n) {
    std::uint32_t *left = first, *right = spare;
    std::uint32_t left_new = kNewValue, right_new = kNewValue;
    for (std::uint32_t i = 0; i < n; ++i) {
        const std::uint32_t row = first[i] & ~kNewValue, is_new = first[i] & kNewValue;
        const std::uint32_t is_left = goes_left[row & kRow];
        left_new |= is_new;
        right_new |= is_new;
        *left = row | left_new;
        *right = row | right_new;
        left += is_left;
        right += 1 - is_left;
        left_new &= is_left - 1;
        right_new &= 0 - is_left;
    }
    std::memcpy(left, spare, static_cast<std::size_t>(right - spare) * sizeof *spare);
}

}  // namespace plain

#ifdef EVERTREE_AVX512

namespace {

constexpr std::uint32_t kLanes = 16;
constexpr std::size_t kRegisterRows = 512;

// Which of up to sixteen rows go left.
struct FlagsInMemory {
    const std::uint8_t* goes_left;

    EVERTREE_WIDE std::uint32_t operator()(const std::uint32_t* rows, std::uint32_t count,
                                           __m512i) const {
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
};
struct FlagsInRegister {
    const std::uint64_t* bits;

    EVERTREE_WIDE std::uint32_t operator()(const std::uint32_t*, std::uint32_t count,
                                           __m512i elements) const {
        const __m512i place = _mm512_and_si512(_mm512_srli_epi32(elements, 3),
                                               _mm512_set1_epi32(kRegisterRows / 8 - 1));
        const __m512i byte = _mm512_permutexvar_epi8(place, _mm512_load_si512(bits));
        const __m512i bit = _mm512_sllv_epi32(_mm512_set1_epi32(1),
                                              _mm512_and_si512(elements, _mm512_set1_epi32(7)));
        return _mm512_mask_test_epi32_mask(first_of_16(count), byte, bit);
    }
};

EVERTREE_WIDE inline __m512i pick(std::uint32_t lanes, __m512i from) {
    return _mm512_maskz_compress_epi32(static_cast<__mmask16>(lanes), from);
}

template <bool kMarkNew, typename Flags>
EVERTREE_WIDE inline std::uint32_t divide(const Flags flags, std::uint32_t* spare,
                                          std::uint32_t* first, std::uint32_t n) {
    const __m512i new_value = _mm512_set1_epi32(static_cast<int>(kNewValue));
    std::uint32_t *left = first, *right = spare;
    std::uint32_t left_pending = 1, right_pending = 1;
    for (std::uint32_t i = 0; i < n; i += kLanes) {
        const std::uint32_t count = std::min(n - i, kLanes);
        __m512i rows = _mm512_maskz_loadu_epi32(first_of_16(count), first + i);
        const std::uint32_t on_left = flags(first + i, count, rows);
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

template <typename Flags>
EVERTREE_WIDE std::uint32_t divide_rows_avx512(const Flags flags, std::uint32_t* spare,
                                               std::uint32_t* list, std::uint32_t n) {
    return divide<false>(flags, spare, list, n);
}

template <typename Flags>
EVERTREE_WIDE void divide_elements_avx512(const Flags flags, std::uint32_t* spare,
                                          std::uint32_t* const* lists, std::size_t n_lists,
                                          std::uint32_t n) {
    for (std::size_t l = 0; l < n_lists; ++l) divide<true>(flags, spare, lists[l], n);
}

EVERTREE_WIDE void pack(const std::uint8_t* flags, std::size_t n, std::uint64_t* bits) {
    for (std::size_t at = 0; at < n; at += 64) {
        const std::size_t rest = n - at;
        const std::uint64_t bytes = rest >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << rest) - 1;
        const __m512i some = _mm512_maskz_loadu_epi8(bytes, flags + at);
        bits[at / 64] = _mm512_test_epi8_mask(some, some);
    }
}

}  // namespace

#endif

Divider::Divider(const std::uint8_t* goes_left, [[maybe_unused]] std::size_t n_rows,
                 std::uint32_t* spare)
    : goes_left_(goes_left), spare_(spare) {
#ifdef EVERTREE_AVX512
    fits_register_ = has_avx512 && n_rows <= kRegisterRows;
    if (fits_register_) pack(goes_left, n_rows, bits_);
#endif
}

std::uint32_t Divider::rows(std::uint32_t* list, std::uint32_t n) const {
#ifdef EVERTREE_AVX512
    if (fits_register_) return divide_rows_avx512(FlagsInRegister{bits_}, spare_, list, n);
    if (has_avx512) return divide_rows_avx512(FlagsInMemory{goes_left_}, spare_, list, n);
#endif
    return plain::divide_rows(goes_left_, spare_, list, n);
}

void Divider::elements(std::uint32_t* const* lists, std::size_t n_lists, std::uint32_t n) const {
#ifdef EVERTREE_AVX512
    if (fits_register_) {
        return divide_elements_avx512(FlagsInRegister{bits_}, spare_, lists, n_lists, n);
    }
    if (has_avx512) {
        return divide_elements_avx512(FlagsInMemory{goes_left_}, spare_, lists, n_lists, n);
    }
#endif
    for (std::size_t l = 0; l < n_lists; ++l) {
        plain::divide_elements(goes_left_, spare_, lists[l], n);
    }
}

}  // namespace evertree::wide
