#include "wide.hpp"

namespace evertree::wide {

Level best_level() {
#if defined(__x86_64__) && defined(__GNUC__)
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
        !__builtin_cpu_supports("bmi") || !__builtin_cpu_supports("popcnt")) {
        return Level::plain;
    }
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq") ||
        !__builtin_cpu_supports("bmi2")) {
        return Level::avx2;
    }
    const bool has_icl =
        __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx512vpopcntdq");
    return has_icl ? Level::avx512_icl : Level::avx512;
#else
    return Level::plain;
#endif
}

Level level = best_level();

}  // namespace evertree::wide
