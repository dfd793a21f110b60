#include <algorithm>
#include <cstring>

#include "../packing.hpp"
#include "avx2/avx2.hpp"
#include "avx512/avx512.hpp"
#include "wide.hpp"

namespace evertree::wide {

namespace {

constexpr std::size_t kRowsAhead = 16;         // a record lies anywhere in memory
constexpr std::size_t kColumnsAtOnceFrom = 3;  // fewer are read one by one

}  // namespace

namespace plain {

template <typename Code>
void gather_keys(const std::byte* const* records, std::size_t n, std::size_t offset,
                 std::size_t n_columns, std::uint64_t* keys, Column* columns) {
    for (std::size_t c = 0; c < n_columns; ++c) {
        const auto key_of = [&](std::size_t row) {
            Code code;
            std::memcpy(&code, records[row] + offset + c * sizeof code, sizeof code);
            return std::uint64_t{code};
        };
        columns[c] = {0, 0};
        const std::uint64_t first = key_of(0);
        for (std::size_t row = 0; row < n; ++row) {
            if (row + kRowsAhead < n) __builtin_prefetch(records[row + kRowsAhead] + offset);
            const std::uint64_t key = key_of(row);
            keys[c * n + row] = key;
            columns[c].differing |= key ^ first;
            columns[c].largest = std::max(columns[c].largest, key);
        }
    }
}

void mark_differing(const std::byte* const* records, std::size_t n, std::size_t n_bytes,
                    std::byte* differing) {
    std::fill_n(differing, n_bytes, std::byte{0});
    for (std::size_t row = 1; row < n; ++row) {
        for (std::size_t i = 0; i < n_bytes; ++i) differing[i] |= records[row][i] ^ records[0][i];
    }
}

}  // namespace plain

#ifdef EVERTREE_AVX512

namespace {

// What is read of a record lies on two lines of the cache at the most.
inline void fetch(const std::byte* codes, std::size_t bytes) {
    __builtin_prefetch(codes);
    __builtin_prefetch(codes + bytes - 1);
}

struct Block {
    __m512i line[8];
};

// Rows become columns.
EVERTREE_WIDE inline Block transposed(const Block& b) {
    __m512i pair[8], four[8];
    Block out;
    for (int i = 0; i < 8; i += 2) {
        pair[i] = _mm512_unpacklo_epi64(b.line[i], b.line[i + 1]);
        pair[i + 1] = _mm512_unpackhi_epi64(b.line[i], b.line[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        for (int odd = 0; odd < 2; ++odd) {
            four[i + odd] = _mm512_shuffle_i64x2(pair[i + odd], pair[i + 2 + odd], 0x88);
            four[i + 2 + odd] = _mm512_shuffle_i64x2(pair[i + odd], pair[i + 2 + odd], 0xdd);
        }
    }
    for (int i = 0; i < 4; ++i) {
        out.line[i] = _mm512_shuffle_i64x2(four[i], four[i + 4], 0x88);
        out.line[i + 4] = _mm512_shuffle_i64x2(four[i], four[i + 4], 0xdd);
    }
    return out;
}

// Up to eight neighbouring codes.
template <typename Code>
EVERTREE_WIDE inline __m512i load(const std::byte* at, __mmask8 used) {
    if constexpr (sizeof(Code) == 1) return _mm512_cvtepu8_epi64(_mm_maskz_loadu_epi8(used, at));
    if constexpr (sizeof(Code) == 2) return _mm512_cvtepu16_epi64(_mm_maskz_loadu_epi16(used, at));
    if constexpr (sizeof(Code) == 4) {
        return _mm512_cvtepu32_epi64(_mm256_maskz_loadu_epi32(used, at));
    }
    return _mm512_maskz_loadu_epi64(used, at);
}

template <typename Code>
EVERTREE_WIDE void gather_keys_avx512(const std::byte* const* records, std::size_t n,
                                      std::size_t offset, std::size_t n_columns,
                                      std::uint64_t* keys, Column* columns) {
    const __mmask8 used = first_of_8(n_columns);
    const __m512i first = load<Code>(records[0] + offset, used);
    __m512i differing = _mm512_setzero_si512(), largest = first;
    for (std::size_t row = 0; row < n; row += 8) {
        const std::size_t count = std::min<std::size_t>(n - row, 8);
        Block block;
        for (std::size_t i = 0; i < 8; ++i) {
            // Behind the last row, the last row again.
            const std::byte* const from = records[row + std::min(i, count - 1)] + offset;
            fetch(records[std::min(row + i + kRowsAhead, n - 1)] + offset,
                  n_columns * sizeof(Code));
            block.line[i] = load<Code>(from, used);
            differing = _mm512_or_si512(differing, _mm512_xor_si512(block.line[i], first));
            largest = _mm512_max_epu64(largest, block.line[i]);
        }
        block = transposed(block);
        for (std::size_t c = 0; c < n_columns; ++c) {
            _mm512_mask_storeu_epi64(keys + c * n + row, first_of_8(count), block.line[c]);
        }
    }
    alignas(64) std::uint64_t lanes[2][8];
    _mm512_store_si512(lanes[0], differing);
    _mm512_store_si512(lanes[1], largest);
    for (std::size_t c = 0; c < n_columns; ++c) columns[c] = {lanes[0][c], lanes[1][c]};
}

EVERTREE_WIDE void mark_differing_avx512(const std::byte* const* records, std::size_t n,
                                         std::size_t n_bytes, std::byte* differing) {
    for (std::size_t begin = 0; begin < n_bytes; begin += 64) {
        const __mmask64 used = first_of_64(n_bytes - begin);
        const __m512i first = _mm512_maskz_loadu_epi8(used, records[0] + begin);
        __m512i all = _mm512_setzero_si512();
        for (std::size_t row = 1; row < n; ++row) {
            __builtin_prefetch(records[std::min(row + kRowsAhead, n - 1)] + begin);
            const __m512i here = _mm512_maskz_loadu_epi8(used, records[row] + begin);
            all = _mm512_or_si512(all, _mm512_xor_si512(here, first));
        }
        _mm512_mask_storeu_epi8(differing + begin, used, all);
    }
}

}  // namespace

#endif

template <typename Code>
void gather_keys(const std::byte* const* records, std::size_t n, std::size_t offset,
                 std::size_t n_columns, std::uint64_t* keys, Column* columns) {
#ifdef EVERTREE_AVX512
    if (level != Level::plain && n_columns >= kColumnsAtOnceFrom) {
        const auto gather =
            level >= Level::avx512 ? gather_keys_avx512<Code> : avx2::gather_keys<Code>;
        return gather(records, n, offset, n_columns, keys, columns);
    }
#endif
    plain::gather_keys<Code>(records, n, offset, n_columns, keys, columns);
}

void gather_keys(const std::byte* const* records, std::size_t n, std::size_t offset,
                 std::size_t code_bytes, std::size_t n_columns, std::uint64_t* keys,
                 Column* columns) {
    switch (code_bytes) {
        case 1:
            return gather_keys<std::uint8_t>(records, n, offset, n_columns, keys, columns);
        case 2:
            return gather_keys<std::uint16_t>(records, n, offset, n_columns, keys, columns);
        case 4:
            return gather_keys<std::uint32_t>(records, n, offset, n_columns, keys, columns);
        default:
            return gather_keys<std::uint64_t>(records, n, offset, n_columns, keys, columns);
    }
}

void mark_differing(const std::byte* const* records, std::size_t n, std::size_t n_bytes,
                    std::byte* differing) {
#ifdef EVERTREE_AVX512
    if (level >= Level::avx512) return mark_differing_avx512(records, n, n_bytes, differing);
    if (level == Level::avx2) return avx2::mark_differing(records, n, n_bytes, differing);
#endif
    plain::mark_differing(records, n, n_bytes, differing);
}

}  // namespace evertree::wide
