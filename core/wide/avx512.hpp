// What the wide versions share: the instructions they may use, and whether this machine has them.
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

extern bool has_avx512;

// The first `count` of the lanes of a register.
inline __mmask16 first_of_16(std::size_t count) {
    return static_cast<__mmask16>(count >= 16 ? 0xffffu : (1u << count) - 1);
}
inline __mmask8 first_of_8(std::size_t count) {
    return static_cast<__mmask8>(count >= 8 ? 0xffu : (1u << count) - 1);
}

}  // namespace evertree::wide

#endif
