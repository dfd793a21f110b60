// AVX2: the versions of the wide loops for processors that have this and no AVX-512, which is most
// of them. Registers are half as wide and there are no masks: what is behind the end is computed
// too and left out, and lanes are picked by tables. What each loop does is said in ../wide.hpp.
//
// Loops that end before the last rows say how far they got (../progress.hpp); the plain ones do the
// rest.
#pragma once

#include "../progress.hpp"
#include "../tables.hpp"
#include "../wide.hpp"

#if defined(__x86_64__) && defined(__GNUC__)
#define EVERTREE_AVX2 1

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#define EVERTREE_WITH_AVX2 __attribute__((target("avx2,fma,bmi,popcnt")))

namespace evertree::wide::avx2 {

// ---- what the loops share -----------------------------------------------------------------------

// Eight bytes as eight words.
EVERTREE_WITH_AVX2 inline __m256i widened(const std::uint64_t& bytes) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(&bytes)));
}

EVERTREE_WITH_AVX2 inline __m256i load(const void* from) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}
EVERTREE_WITH_AVX2 inline void store(void* to, __m256i lanes) {
    _mm256_storeu_si256(static_cast<__m256i*>(to), lanes);
}
EVERTREE_WITH_AVX2 inline __m256i lane_numbers() {
    return _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0);
}
// All bits of the first `count` of eight lanes.
EVERTREE_WITH_AVX2 inline __m256i first_of_8(std::uint32_t count) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count < 8 ? count : 8)),
                              lane_numbers());
}
// The sign bits of eight lanes.
EVERTREE_WITH_AVX2 inline std::uint32_t signs(__m256i lanes) {
    return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(lanes)));
}
EVERTREE_WITH_AVX2 inline std::uint32_t count_bits(std::uint32_t bits) {
    return static_cast<std::uint32_t>(_mm_popcnt_u32(bits));
}
EVERTREE_WITH_AVX2 inline float largest_lane(__m256 lanes) {
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps(lanes, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

// ---- sort.cpp -----------------------------------------------------------------------------------

void sort(std::uint64_t* words, std::uint64_t* spare, std::size_t n, std::uint64_t low_bits);
void sort(std::uint32_t* words, std::uint32_t* spare, std::size_t n, std::uint32_t low_bits);
template <typename Word, typename Element>
std::size_t to_elements(const Word* words, std::size_t n, Word low_bits, int class_bits,
                        Element* elements);

// ---- lists.cpp ----------------------------------------------------------------------------------

// Of records of 32 bytes or more.
void mark_uncommon(const std::byte* record, std::size_t n_bytes, const std::byte* common,
                   const std::uint64_t* wanted, std::uint64_t* marks);

// ---- bins.cpp -----------------------------------------------------------------------------------

std::size_t find_bins(const std::uint64_t* keys, std::size_t n, const Bounds& bounds,
                      std::uint16_t* bins);
CountScores score_counts(const CountedRows& rows, float* cuts, float* within);

// ---- cuts.cpp -----------------------------------------------------------------------------------

TwoClassScores best_score(const TwoClassRows& rows, const std::uint32_t* list);
ManyClassScores best_score(const ManyClassRows& rows, const std::uint32_t* list);

// ---- divide.cpp ---------------------------------------------------------------------------------

Dividing divide_rows(const std::uint8_t* goes_left, std::uint32_t* spare, std::uint32_t* list,
                     std::uint32_t n);
Dividing divide_elements(const std::uint8_t* goes_left, std::uint32_t* spare, std::uint32_t* list,
                         std::uint32_t n);

// ---- keys.cpp -----------------------------------------------------------------------------------

template <typename Code>
void gather_keys(const std::byte* const* records, std::size_t n, std::size_t offset,
                 std::size_t n_columns, std::uint64_t* keys, Column* columns);
void mark_differing(const std::byte* const* records, std::size_t n, std::size_t n_bytes,
                    std::byte* differing);

}  // namespace evertree::wide::avx2

namespace evertree::wide::few::avx2 {

float score_cuts(const Lists& lists, const Classes& classes, float* scores, std::uint8_t* has_cuts);
std::uint32_t cuts_that_reach(const float* scores, std::uint32_t n, float score,
                              std::uint16_t* cuts);
std::uint32_t count_class(const Element* list, std::uint32_t n, Element number);
void divide(const Lists& lists, const std::uint64_t* goes_left, std::size_t n_rows,
            const Sides& to);

}  // namespace evertree::wide::few::avx2

namespace evertree::wide::handful::avx2 {

void at_most(const std::uint64_t* keys, std::size_t n, Rows* at_most);
Cut best_cut(const Rows* at_most, std::size_t n_features, Rows set, const Classes& classes);

}  // namespace evertree::wide::handful::avx2

#endif
