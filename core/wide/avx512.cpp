#include "avx512.hpp"

#include "wide.hpp"

namespace evertree::wide {

#ifdef EVERTREE_AVX512

namespace {

bool processor_has_avx512() {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2") &&
           __builtin_cpu_supports("avx512vpopcntdq") && __builtin_cpu_supports("bmi2") &&
           __builtin_cpu_supports("popcnt");
}

}  // namespace

bool has_avx512 = processor_has_avx512();

void use_avx512(bool use) { has_avx512 = use && processor_has_avx512(); }

#else

void use_avx512(bool) {}

#endif

}  // namespace evertree::wide
