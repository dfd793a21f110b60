#include <algorithm>

#include "../order.hpp"
#include "avx512.hpp"
#include "wide.hpp"

namespace evertree::wide {

namespace plain {

void gather_keys(const double* const* rows, std::size_t n, std::size_t first_column,
                 std::size_t n_columns, std::uint64_t* keys, Column* columns) {
    for (std::size_t c = 0; c < n_columns; ++c) {
        columns[c] = {0, 0};
        const std::uint64_t first = sort_key(rows[0][first_column + c]);
        for (std::size_t row = 0; row < n; ++row) {
            const std::uint64_t key = sort_key(rows[row][first_column + c]);
            keys[c * n + row] = key;
            columns[c].differing |= key ^ first;
            columns[c].largest = std::max(columns[c].largest, key);
        }
    }
}

}  // namespace plain

#ifdef EVERTREE_AVX512

namespace {

// A row lies anywhere in memory, and its eight values mostly on two lines of the cache.
constexpr std::size_t kRowsAhead = 16;
inline void fetch(const double* values) {
    __builtin_prefetch(values);
    __builtin_prefetch(values + 7);
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

EVERTREE_WIDE inline __m512i sort_keys(__m512i bits) {
    const __m512i sign = _mm512_set1_epi64(static_cast<long long>(std::uint64_t{1} << 63));
    return _mm512_xor_si512(bits, _mm512_or_si512(_mm512_srai_epi64(bits, 63), sign));
}

EVERTREE_WIDE void gather_keys_avx512(const double* const* rows, std::size_t n,
                                      std::size_t first_column, std::size_t n_columns,
                                      std::uint64_t* keys, Column* columns) {
    const __mmask8 used = first_of_8(n_columns);
    const __m512i first = sort_keys(_mm512_maskz_loadu_epi64(used, rows[0] + first_column));
    __m512i differing = _mm512_setzero_si512(), largest = first;
    for (std::size_t row = 0; row < n; row += 8) {
        const std::size_t count = std::min<std::size_t>(n - row, 8);
        Block block;
        for (std::size_t i = 0; i < 8; ++i) {
            // Behind the last row, the last row again.
            const double* const x = rows[row + std::min(i, count - 1)] + first_column;
            fetch(rows[std::min(row + i + kRowsAhead, n - 1)] + first_column);
            block.line[i] = sort_keys(_mm512_maskz_loadu_epi64(used, x));
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

}  // namespace

#endif

void gather_keys(const double* const* rows, std::size_t n, std::size_t first_column,
                 std::size_t n_columns, std::uint64_t* keys, Column* columns) {
#ifdef EVERTREE_AVX512
    if (has_avx512) return gather_keys_avx512(rows, n, first_column, n_columns, keys, columns);
#endif
    plain::gather_keys(rows, n, first_column, n_columns, keys, columns);
}

}  // namespace evertree::wide
