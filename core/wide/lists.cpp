#include <algorithm>
#include <bit>

#include "avx2/avx2.hpp"
#include "avx512/avx512.hpp"
#include "wide.hpp"

namespace evertree::wide {

namespace plain {

void mark_uncommon(const std::byte* record, std::size_t n_bytes, const std::byte* common,
                   const std::uint64_t* wanted, std::uint64_t* marks) {
    for (std::size_t begin = 0; begin < n_bytes; begin += 64) {
        const std::size_t end = std::min(begin + 64, n_bytes);
        std::uint64_t differ = 0;
        for (std::size_t at = begin; at < end; ++at) {
            differ |= std::uint64_t{record[at] != common[at]} << (at - begin);
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

EVERTREE_WIDE void mark_uncommon_avx512(const std::byte* record, std::size_t n_bytes,
                                        const std::byte* common, const std::uint64_t* wanted,
                                        std::uint64_t* marks) {
    for (std::size_t begin = 0; begin < n_bytes; begin += 64) {
        const __mmask64 used = first_of_64(n_bytes - begin);
        const __m512i here = _mm512_maskz_loadu_epi8(used, record + begin);
        const __m512i commons = _mm512_maskz_loadu_epi8(used, common + begin);
        marks[begin / 64] = _mm512_cmpneq_epi8_mask(here, commons) & wanted[begin / 64];
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

void mark_uncommon(const std::byte* record, std::size_t n_bytes, const std::byte* common,
                   const std::uint64_t* wanted, std::uint64_t* marks) {
#ifdef EVERTREE_AVX512
    if (level >= Level::avx512) return mark_uncommon_avx512(record, n_bytes, common, wanted, marks);
#endif
#ifdef EVERTREE_AVX2
    if (level == Level::avx2 && n_bytes >= 32) {
        return avx2::mark_uncommon(record, n_bytes, common, wanted, marks);
    }
#endif
    plain::mark_uncommon(record, n_bytes, common, wanted, marks);
}

void find_places(const Lists& lists, const std::uint32_t* rows, std::size_t n, std::uint32_t first,
                 std::uint32_t width, std::uint32_t common, std::uint32_t* out) {
#ifdef EVERTREE_AVX512
    if (level >= Level::avx512)
        return find_places_avx512(lists, rows, n, first, width, common, out);
#endif
    plain::find_places(lists, rows, n, first, width, common, out);
}

}  // namespace evertree::wide
