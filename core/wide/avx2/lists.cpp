#include "avx2.hpp"

#ifdef EVERTREE_AVX2

namespace evertree::wide::avx2 {

namespace {

// Which of 32 bytes differ, as bits.
EVERTREE_WITH_AVX2 inline std::uint32_t differing(const std::byte* here, const std::byte* there) {
    const __m256i same = _mm256_cmpeq_epi8(load(here), load(there));
    return ~static_cast<std::uint32_t>(_mm256_movemask_epi8(same));
}

}  // namespace

EVERTREE_WITH_AVX2 void mark_uncommon(const std::byte* record, std::size_t n_bytes,
                                      const std::byte* common, const std::uint64_t* wanted,
                                      std::uint64_t* marks) {
    constexpr std::size_t width = 32;
    for (std::size_t begin = 0; begin < n_bytes; begin += 64) {
        std::uint64_t differ = 0;
        for (std::size_t at = begin; at < begin + 64 && at < n_bytes; at += width) {
            // Nothing is read behind the end: the last bytes once more with those before them.
            const std::size_t from = at + width <= n_bytes ? at : n_bytes - width;
            const std::uint32_t here = differing(record + from, common + from) >> (at - from);
            differ |= std::uint64_t{here} << (at - begin);
        }
        marks[begin / 64] = differ & wanted[begin / 64];
    }
}

}  // namespace evertree::wide::avx2

#endif
