// AVX-512: the versions of the wide loops for processors that have it. What each loop does is said
// in ../wide.hpp.
//
// The loops of this folder are compiled twice: for all of these processors, and with what Ice Lake
// and Zen 4 have beyond the first of them (icl.cpp): one instruction that would else take a dozen.
// Loops that would gain nothing from it stand beside the plain ones.
#pragma once

#include "../wide.hpp"

#if defined(__x86_64__) && defined(__GNUC__)
#define EVERTREE_AVX512 1

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#ifdef EVERTREE_AVX512_ICL
#define EVERTREE_WIDE                                                            \
    __attribute__((                                                              \
        target("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi2,avx512vpopcntdq," \
               "bmi,bmi2,popcnt")))
#else
#define EVERTREE_WIDE __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,bmi,bmi2,popcnt")))
#endif

namespace evertree::wide {

// ---- what the loops share: of each file its own, as they differ in their instructions -----------

namespace {

#ifdef EVERTREE_AVX512_ICL
constexpr Level kOwnLevel = Level::avx512_icl;
#else
constexpr Level kOwnLevel = Level::avx512;
#endif

// The first `count` of the lanes of a register.
inline __mmask64 first_of_64(std::size_t count) {
    return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}
inline __mmask32 first_of_32(std::size_t count) {
    return static_cast<__mmask32>(count >= 32 ? 0xffffffffu : (1u << count) - 1);
}
inline __mmask16 first_of_16(std::size_t count) {
    return static_cast<__mmask16>(count >= 16 ? 0xffffu : (1u << count) - 1);
}
inline __mmask8 first_of_8(std::size_t count) {
    return static_cast<__mmask8>(count >= 8 ? 0xffu : (1u << count) - 1);
}

#ifdef EVERTREE_AVX512_ICL
// How many bits each of sixteen lanes has.
EVERTREE_WIDE inline __m512i count_bits(__m512i lanes) { return _mm512_popcnt_epi32(lanes); }

// Writes those of 32 half words that are picked, side by side; how many there are.
EVERTREE_WIDE inline std::uint32_t store_picked(std::uint16_t* to, __mmask32 picked,
                                                __m512i half_words) {
    const auto count = static_cast<std::uint32_t>(_mm_popcnt_u32(picked));
    _mm512_mask_storeu_epi16(to, first_of_32(count),
                             _mm512_maskz_compress_epi16(picked, half_words));
    return count;
}
#else
EVERTREE_WIDE inline __m512i count_bits(__m512i lanes) {
    const __m512i four_bits = _mm512_set1_epi8(15);
    const __m512i counts =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
    const __m512i low = _mm512_and_si512(lanes, four_bits);
    const __m512i high = _mm512_and_si512(_mm512_srli_epi32(lanes, 4), four_bits);
    const __m512i of_bytes =
        _mm512_add_epi8(_mm512_shuffle_epi8(counts, low), _mm512_shuffle_epi8(counts, high));
    return _mm512_madd_epi16(_mm512_maddubs_epi16(of_bytes, _mm512_set1_epi8(1)),
                             _mm512_set1_epi16(1));
}

EVERTREE_WIDE inline std::uint32_t store_picked(std::uint16_t* to, __mmask16 picked,
                                                __m256i half_words) {
    const auto count = static_cast<std::uint32_t>(_mm_popcnt_u32(picked));
    const __m512i words = _mm512_maskz_compress_epi32(picked, _mm512_cvtepu16_epi32(half_words));
    _mm256_mask_storeu_epi16(to, first_of_16(count), _mm512_cvtepi32_epi16(words));
    return count;
}
EVERTREE_WIDE inline std::uint32_t store_picked(std::uint16_t* to, __mmask32 picked,
                                                __m512i half_words) {
    const std::uint32_t n_low =
        store_picked(to, static_cast<__mmask16>(picked), _mm512_castsi512_si256(half_words));
    return n_low + store_picked(to + n_low, static_cast<__mmask16>(picked >> 16),
                                _mm512_extracti64x4_epi64(half_words, 1));
}
#endif

// For each of sixteen lanes, which begin with `first`, how many of the bits up to it are set.
EVERTREE_WIDE inline __m512i count_up_to_lane(int first, std::uint32_t bits) {
    const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i shift = _mm512_sub_epi32(_mm512_set1_epi32(31 - first), lane);
    const __m512i up_to_lane = _mm512_srlv_epi32(_mm512_set1_epi32(-1), shift);
    return count_bits(_mm512_and_si512(_mm512_set1_epi32(static_cast<int>(bits)), up_to_lane));
}

}  // namespace

// ---- the loops of this folder, at either level --------------------------------------------------

namespace avx512 {

template <Level>
void best_scores(const TwoClassRows& rows, const std::uint32_t* const* lists, std::size_t n_lists,
                 float* scores);
template <Level>
void best_scores(const ManyClassRows& rows, const std::uint32_t* const* lists, std::size_t n_lists,
                 float* scores);
template <Level>
std::uint32_t cuts_that_reach(const TwoClassRows& rows, const std::uint32_t* list, float score,
                              std::uint32_t* cut, std::uint32_t* ones_left);

}  // namespace avx512

namespace few::avx512 {

template <Level>
float score_cuts(const Lists& lists, const Classes& classes, float* scores, std::uint8_t* has_cuts);
template <Level>
std::uint32_t cuts_that_reach(const float* scores, std::uint32_t n, float score,
                              std::uint16_t* cuts);
template <Level>
std::uint32_t count_class(const Element* list, std::uint32_t n, Element number);
template <Level>
void divide(const Lists& lists, const std::uint64_t* goes_left, std::size_t n_rows,
            const Sides& to);

}  // namespace few::avx512

namespace handful::avx512 {

template <Level>
void at_most(const std::uint64_t* keys, std::size_t n, Rows* at_most);
template <Level>
Cut best_cut(const Rows* at_most, std::size_t n_features, Rows set, const Classes& classes);

}  // namespace handful::avx512

}  // namespace evertree::wide

#endif
