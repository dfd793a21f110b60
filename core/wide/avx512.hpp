// What the versions for AVX-512 share: the instructions they may use.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__x86_64__) && defined(__GNUC__)
#define EVERTREE_AVX512 1

#include <immintrin.h>

#define EVERTREE_WIDE                                                       \
    __attribute__((                                                         \
        target("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx512vbmi2," \
               "avx512vpopcntdq,bmi,bmi2,popcnt")))

namespace evertree::wide {

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

// For each of sixteen lanes, which begin with `first`, the bits of all lanes up to it.
EVERTREE_WIDE inline __m512i up_to_lane(int first) {
    const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i shift = _mm512_sub_epi32(_mm512_set1_epi32(31 - first), lane);
    return _mm512_srlv_epi32(_mm512_set1_epi32(-1), shift);
}

}  // namespace evertree::wide

#endif
