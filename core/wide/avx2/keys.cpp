#include <algorithm>

#include "avx2.hpp"

#ifdef EVERTREE_AVX2

namespace evertree::wide::avx2 {

namespace {

constexpr std::size_t kRowsAhead = 16;  // a record lies anywhere in memory

// Four neighbouring codes, a word each. What is read behind the last one is never used.
template <typename Code>
EVERTREE_WITH_AVX2 inline __m256i load_four(const std::byte* at) {
    if constexpr (sizeof(Code) == 1) return _mm256_cvtepu8_epi64(_mm_loadu_si32(at));
    if constexpr (sizeof(Code) == 2) return _mm256_cvtepu16_epi64(_mm_loadu_si64(at));
    if constexpr (sizeof(Code) == 4) {
        return _mm256_cvtepu32_epi64(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
    }
    return load(at);
}

template <typename Code>
EVERTREE_WITH_AVX2 inline __m256i larger(__m256i a, __m256i b) {
    if constexpr (sizeof(Code) < 8) return _mm256_max_epu32(a, b);
    const __m256i sign = _mm256_set1_epi64x(static_cast<long long>(std::uint64_t{1} << 63));
    const __m256i is_above =
        _mm256_cmpgt_epi64(_mm256_xor_si256(a, sign), _mm256_xor_si256(b, sign));
    return _mm256_blendv_epi8(b, a, is_above);
}

// Four columns of all rows.
template <typename Code>
struct FourColumns {
    std::size_t n_columns;
    std::uint64_t* keys;  // of the first one
    std::size_t n;
    __m256i first, differing, largest;

    EVERTREE_WITH_AVX2 FourColumns(std::size_t columns, std::uint64_t* to, std::size_t n_rows,
                                   const std::byte* codes)
        : n_columns(columns),
          keys(to),
          n(n_rows),
          first(load_four<Code>(codes)),
          differing(_mm256_setzero_si256()),
          largest(first) {}

    EVERTREE_WITH_AVX2 void read(const std::byte* const* codes, std::size_t offset,
                                 std::size_t row) {
        // Behind the last row, the last row again.
        const std::size_t last = n - 1 - row;
        __m256i line[4];
        for (std::size_t i = 0; i < 4; ++i) {
            line[i] = load_four<Code>(codes[row + std::min(i, last)] + offset);
            differing = _mm256_or_si256(differing, _mm256_xor_si256(line[i], first));
            largest = larger<Code>(line[i], largest);
        }
        const __m256i a = _mm256_unpacklo_epi64(line[0], line[1]);
        const __m256i b = _mm256_unpackhi_epi64(line[0], line[1]);
        const __m256i c = _mm256_unpacklo_epi64(line[2], line[3]);
        const __m256i d = _mm256_unpackhi_epi64(line[2], line[3]);
        put(0, row, _mm256_permute2x128_si256(a, c, 0x20));
        put(1, row, _mm256_permute2x128_si256(b, d, 0x20));
        put(2, row, _mm256_permute2x128_si256(a, c, 0x31));
        put(3, row, _mm256_permute2x128_si256(b, d, 0x31));
    }
    EVERTREE_WITH_AVX2 void put(std::size_t column, std::size_t row, __m256i four) {
        if (column >= n_columns) return;
        std::uint64_t* const to = keys + column * n + row;
        if (row + 4 <= n) return store(to, four);
        alignas(32) std::uint64_t some[4];
        store(some, four);
        std::copy_n(some, n - row, to);
    }
    EVERTREE_WITH_AVX2 void tell(Column* columns) const {
        alignas(32) std::uint64_t lanes[2][4];
        store(lanes[0], differing);
        store(lanes[1], largest);
        for (std::size_t c = 0; c < n_columns; ++c) columns[c] = {lanes[0][c], lanes[1][c]};
    }
};

}  // namespace

template <typename Code>
EVERTREE_WITH_AVX2 void gather_keys(const std::byte* const* records, std::size_t n,
                                    std::size_t offset, std::size_t n_columns, std::uint64_t* keys,
                                    Column* columns) {
    const std::size_t n_first = std::min<std::size_t>(n_columns, 4), n_second = n_columns - n_first;
    const std::size_t second_offset = offset + (n_second > 0 ? 4 * sizeof(Code) : 0);
    FourColumns<Code> first(n_first, keys, n, records[0] + offset);
    FourColumns<Code> second(n_second, keys + 4 * n, n, records[0] + second_offset);
    for (std::size_t row = 0; row < n; row += 4) {
        for (std::size_t i = row; i < std::min(row + 4, n); ++i) {
            const std::byte* const ahead = records[std::min(i + kRowsAhead, n - 1)] + offset;
            __builtin_prefetch(ahead);
            __builtin_prefetch(ahead + n_columns * sizeof(Code) - 1);
        }
        first.read(records, offset, row);
        if (n_second > 0) second.read(records, second_offset, row);
    }
    first.tell(columns);
    second.tell(columns + n_first);
}

template void gather_keys<std::uint8_t>(const std::byte* const*, std::size_t, std::size_t,
                                        std::size_t, std::uint64_t*, Column*);
template void gather_keys<std::uint16_t>(const std::byte* const*, std::size_t, std::size_t,
                                         std::size_t, std::uint64_t*, Column*);
template void gather_keys<std::uint32_t>(const std::byte* const*, std::size_t, std::size_t,
                                         std::size_t, std::uint64_t*, Column*);
template void gather_keys<std::uint64_t>(const std::byte* const*, std::size_t, std::size_t,
                                         std::size_t, std::uint64_t*, Column*);

EVERTREE_WITH_AVX2 void mark_differing(const std::byte* const* records, std::size_t n,
                                       std::size_t n_bytes, std::byte* differing) {
    for (std::size_t begin = 0; begin < n_bytes; begin += 32) {
        const __m256i first = load(records[0] + begin);
        __m256i all = _mm256_setzero_si256();
        for (std::size_t row = 1; row < n; ++row) {
            __builtin_prefetch(records[std::min(row + kRowsAhead, n - 1)] + begin);
            all = _mm256_or_si256(all, _mm256_xor_si256(load(records[row] + begin), first));
        }
        store(differing + begin, all);
    }
}

}  // namespace evertree::wide::avx2

#endif
