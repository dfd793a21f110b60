#include <algorithm>
#include <bit>

#include "avx512.hpp"
#include "wide.hpp"

namespace evertree::wide {

namespace plain {

void mark_uncommon(const double* row, std::size_t n_features, const std::uint64_t* common,
                   const std::uint64_t* wanted, std::uint64_t* marks) {
    for (std::size_t begin = 0; begin < n_features; begin += 64) {
        const std::size_t end = std::min(begin + 64, n_features);
        std::uint64_t differ = 0;
        for (std::size_t j = begin; j < end; ++j) {
            const bool differs = std::bit_cast<std::uint64_t>(row[j]) != common[j];
            differ |= std::uint64_t{differs} << (j - begin);
        }
        marks[begin / 64] = differ & wanted[begin / 64];
    }
}

void find_places(const Lists& lists, const std::uint32_t* rows, std::size_t n, std::uint32_t first,
                 std::uint32_t width, std::uint32_t common, std::uint32_t* out) {
    for (std::size_t i = 0; i < n; ++i) {
        lists.fetch_ahead(rows, n, i);
        const List list = lists.of_row[rows[i]];
        const std::uint32_t* const place = lists.places + list.first();
        out[i] = common;
        for (std::size_t k = 0; k < list.size(); ++k) {
            if (place[k] - first < width) out[i] = place[k];
        }
    }
}

}  // namespace plain

#ifdef EVERTREE_AVX512

namespace {

EVERTREE_WIDE void mark_uncommon_avx512(const double* row, std::size_t n_features,
                                        const std::uint64_t* common, const std::uint64_t* wanted,
                                        std::uint64_t* marks) {
    for (std::size_t begin = 0; begin < n_features; begin += 64) {
        const std::size_t end = std::min(begin + 64, n_features);
        std::uint64_t differ = 0;
        for (std::size_t j = begin; j < end; j += 8) {
            const __mmask8 used = first_of_8(end - j);
            const __m512i values = _mm512_maskz_loadu_epi64(used, row + j);
            const __m512i commons = _mm512_maskz_loadu_epi64(used, common + j);
            differ |= std::uint64_t{_mm512_cmpneq_epi64_mask(values, commons)} << (j - begin);
        }
        marks[begin / 64] = differ & wanted[begin / 64];
    }
}

EVERTREE_WIDE void find_places_avx512(const Lists& lists, const std::uint32_t* rows, std::size_t n,
                                      std::uint32_t first, std::uint32_t width,
                                      std::uint32_t common, std::uint32_t* out) {
    const __m512i firsts = _mm512_set1_epi32(static_cast<int>(first));
    const __m512i widths = _mm512_set1_epi32(static_cast<int>(width));
    for (std::size_t i = 0; i < n; ++i) {
        lists.fetch_ahead(rows, n, i);
        const List list = lists.of_row[rows[i]];
        const std::uint32_t* const place = lists.places + list.first();
        std::uint32_t found = common;
        for (std::size_t k = 0; k < list.size(); k += 16) {
            const __mmask16 used = first_of_16(list.size() - k);
            const __m512i places = _mm512_maskz_loadu_epi32(used, place + k);
            const __mmask16 here =
                _mm512_mask_cmplt_epu32_mask(used, _mm512_sub_epi32(places, firsts), widths);
            // Without a branch: whether a row has one is not predictable.
            const int there = _mm512_cvtsi512_si32(_mm512_maskz_compress_epi32(here, places));
            found = here != 0 ? static_cast<std::uint32_t>(there) : found;
        }
        out[i] = found;
    }
}

}  // namespace

#endif

void mark_uncommon(const double* row, std::size_t n_features, const std::uint64_t* common,
                   const std::uint64_t* wanted, std::uint64_t* marks) {
#ifdef EVERTREE_AVX512
    if (has_avx512) return mark_uncommon_avx512(row, n_features, common, wanted, marks);
#endif
    plain::mark_uncommon(row, n_features, common, wanted, marks);
}

void find_places(const Lists& lists, const std::uint32_t* rows, std::size_t n, std::uint32_t first,
                 std::uint32_t width, std::uint32_t common, std::uint32_t* out) {
#ifdef EVERTREE_AVX512
    if (has_avx512) return find_places_avx512(lists, rows, n, first, width, common, out);
#endif
    plain::find_places(lists, rows, n, first, width, common, out);
}

}  // namespace evertree::wide
