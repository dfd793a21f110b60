#include <algorithm>
#include <array>
#include <utility>

#include "avx2/avx2.hpp"
#include "avx512/avx512.hpp"
#include "element_bits.hpp"
#include "quicksort.hpp"
#include "tables.hpp"
#include "wide.hpp"

namespace evertree::wide {

namespace plain {

template <typename Word, typename Element>
void to_elements(const Word* words, std::size_t begin, std::size_t n, Word low_bits, int class_bits,
                 Element* elements) {
    const Word class_mask = (Word{1} << class_bits) - 1;
    Word before = begin == 0 ? ~words[0] : words[begin - 1];
    for (std::size_t i = begin; i < n; ++i) {
        const Word word = words[i], low = word & low_bits;
        const bool is_new = ((word ^ before) & ~low_bits) != 0;
        elements[i] = static_cast<Element>(low >> class_bits |
                                           (low & class_mask) << ElementBits<Element>::kClassShift |
                                           (is_new ? ElementBits<Element>::kNew : 0));
        before = word;
    }
    if (begin == 0) elements[0] |= static_cast<Element>(ElementBits<Element>::kNew);
}

}  // namespace plain

#ifdef EVERTREE_AVX512

namespace {

constexpr std::size_t kFew = 64;  // up to here, a word's place is the number of smaller ones

// What is done with a register of words of either width.
template <typename Word>
struct Lanes;

template <>
struct Lanes<std::uint64_t> {
    static constexpr std::size_t kCount = 8;
    using Mask = __mmask8;
    static Mask first(std::size_t n) { return first_of_8(n); }
    EVERTREE_WIDE static __m512i all(std::uint64_t word) {
        return _mm512_set1_epi64(static_cast<long long>(word));
    }
    EVERTREE_WIDE static __m512i load(__m512i others, Mask lanes, const std::uint64_t* from) {
        return _mm512_mask_loadu_epi64(others, lanes, from);
    }
    EVERTREE_WIDE static Mask is_below(__m512i a, __m512i b) {
        return _mm512_cmplt_epu64_mask(a, b);
    }
    EVERTREE_WIDE static __m512i count(__m512i counts, Mask lanes) {
        return _mm512_mask_sub_epi64(counts, lanes, counts, _mm512_set1_epi64(-1));
    }
    EVERTREE_WIDE static void scatter(std::uint64_t* to, Mask lanes, __m512i place, __m512i word) {
        _mm512_mask_i64scatter_epi64(to, lanes, place, word, 8);
    }
    EVERTREE_WIDE static __m512i mask_or(__m512i a, Mask lanes, __m512i b) {
        return _mm512_mask_or_epi64(a, lanes, a, b);
    }
    EVERTREE_WIDE static __m512i compress(Mask lanes, __m512i words) {
        return _mm512_maskz_compress_epi64(lanes, words);
    }
    EVERTREE_WIDE static void store(std::uint64_t* to, Mask lanes, __m512i words) {
        _mm512_mask_storeu_epi64(to, lanes, words);
    }
};

template <>
struct Lanes<std::uint32_t> {
    static constexpr std::size_t kCount = 16;
    using Mask = __mmask16;
    static Mask first(std::size_t n) { return first_of_16(n); }
    EVERTREE_WIDE static __m512i all(std::uint32_t word) {
        return _mm512_set1_epi32(static_cast<int>(word));
    }
    EVERTREE_WIDE static __m512i load(__m512i others, Mask lanes, const std::uint32_t* from) {
        return _mm512_mask_loadu_epi32(others, lanes, from);
    }
    EVERTREE_WIDE static Mask is_below(__m512i a, __m512i b) {
        return _mm512_cmplt_epu32_mask(a, b);
    }
    EVERTREE_WIDE static __m512i count(__m512i counts, Mask lanes) {
        return _mm512_mask_sub_epi32(counts, lanes, counts, _mm512_set1_epi32(-1));
    }
    EVERTREE_WIDE static void scatter(std::uint32_t* to, Mask lanes, __m512i place, __m512i word) {
        _mm512_mask_i32scatter_epi32(to, lanes, place, word, 4);
    }
    EVERTREE_WIDE static __m512i mask_or(__m512i a, Mask lanes, __m512i b) {
        return _mm512_mask_or_epi32(a, lanes, a, b);
    }
    EVERTREE_WIDE static __m512i compress(Mask lanes, __m512i words) {
        return _mm512_maskz_compress_epi32(lanes, words);
    }
    EVERTREE_WIDE static void store(std::uint32_t* to, Mask lanes, __m512i words) {
        _mm512_mask_storeu_epi32(to, lanes, words);
    }
};

// `kRegisters` full of words, of which n are there.
template <typename Word, int kRegisters>
EVERTREE_WIDE inline void place_by_rank(const Word* from, std::size_t n, Word* to) {
    using L = Lanes<Word>;
    __m512i word[kRegisters], rank[kRegisters];
    alignas(64) Word each[L::kCount * kRegisters];
    for (int r = 0; r < kRegisters; ++r) {
        const std::size_t before = L::kCount * static_cast<std::size_t>(r);
        word[r] = L::load(_mm512_set1_epi64(-1), L::first(n - before), from + before);
        rank[r] = _mm512_setzero_si512();
        _mm512_store_si512(each + before, word[r]);
    }
    for (std::size_t i = 0; i < n; ++i) {
        const __m512i other = L::all(each[i]);
        for (int r = 0; r < kRegisters; ++r) {
            rank[r] = L::count(rank[r], L::is_below(other, word[r]));
        }
    }
    for (int r = 0; r < kRegisters; ++r) {
        const std::size_t before = L::kCount * static_cast<std::size_t>(r);
        L::scatter(to, L::first(n - before), rank[r], word[r]);
    }
}

template <typename Word>
EVERTREE_WIDE void sort_few(const Word* from, std::size_t n, Word* to) {
    switch ((n + Lanes<Word>::kCount - 1) / Lanes<Word>::kCount) {
        case 0:
            return;
        case 1:
            return place_by_rank<Word, 1>(from, n, to);
        case 2:
            return place_by_rank<Word, 2>(from, n, to);
        case 3:
            return place_by_rank<Word, 3>(from, n, to);
        case 4:
            return place_by_rank<Word, 4>(from, n, to);
        case 5:
            return place_by_rank<Word, 5>(from, n, to);
        case 6:
            return place_by_rank<Word, 6>(from, n, to);
        case 7:
            return place_by_rank<Word, 7>(from, n, to);
        default:
            return place_by_rank<Word, 8>(from, n, to);
    }
}

// Eight words in one order for both ends.
EVERTREE_WIDE inline std::size_t store_at_ends(__m512i words, __mmask8 below, std::uint64_t* front,
                                               std::uint64_t* back) {
    const __m128i order = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(&kOrders.of[below]));
    const __m512i ordered = _mm512_permutexvar_epi64(_mm512_cvtepu8_epi64(order), words);
    _mm512_storeu_si512(front, ordered);
    _mm512_storeu_si512(back - 8, ordered);
    return static_cast<std::size_t>(_mm_popcnt_u32(below));
}

EVERTREE_WIDE inline std::size_t store_at_ends(__m512i words, __mmask16 below, std::uint32_t* front,
                                               std::uint32_t* back) {
    const auto n_below = static_cast<std::size_t>(_mm_popcnt_u32(below));
    const auto others = static_cast<__mmask16>(~below);
    _mm512_storeu_si512(front, _mm512_maskz_compress_epi32(below, words));
    _mm512_mask_storeu_epi32(back - (16 - n_below), first_of_16(16 - n_below),
                             _mm512_maskz_compress_epi32(others, words));
    return n_below;
}

template <typename Word>
EVERTREE_WIDE Divided divide(const Word* from, std::size_t n, Word pivot, Word low_bits, Word* to) {
    using L = Lanes<Word>;
    const __m512i pivots = L::all(pivot);
    __m512i in_below = _mm512_setzero_si512(), in_others = _mm512_setzero_si512();
    Word *front = to, *back = to + n;
    std::size_t i = 0;
    // A register is stored at both ends at once: while two of them are missing, what does not
    // belong to an end is overwritten later.
    for (; i + 2 * L::kCount <= n; i += L::kCount) {
        const __m512i words = _mm512_loadu_si512(from + i);
        const __m512i differing = _mm512_xor_si512(words, pivots);
        const auto below = L::is_below(words, pivots);
        in_below = L::mask_or(in_below, below, differing);
        in_others = L::mask_or(in_others, static_cast<typename L::Mask>(~below), differing);
        const std::size_t n_below = store_at_ends(words, below, front, back);
        front += n_below;
        back -= L::kCount - n_below;
    }
    for (; i < n; i += L::kCount) {
        const auto lanes = L::first(n - i);
        const __m512i words = L::load(_mm512_setzero_si512(), lanes, from + i);
        const __m512i differing = _mm512_xor_si512(words, pivots);
        const auto below = static_cast<typename L::Mask>(lanes & L::is_below(words, pivots));
        const auto others = static_cast<typename L::Mask>(lanes & ~below);
        in_below = L::mask_or(in_below, below, differing);
        in_others = L::mask_or(in_others, others, differing);
        const auto n_below = static_cast<std::size_t>(_mm_popcnt_u32(below));
        const auto n_others = static_cast<std::size_t>(_mm_popcnt_u32(others));
        L::store(front, L::first(n_below), L::compress(below, words));
        front += n_below;
        back -= n_others;
        L::store(back, L::first(n_others), L::compress(others, words));
    }
    const __m512i upper = L::all(static_cast<Word>(~low_bits));
    return {static_cast<std::size_t>(front - to), _mm512_test_epi32_mask(in_below, upper) == 0,
            _mm512_test_epi32_mask(in_others, upper) == 0};
}

struct Ways {
    template <typename Word>
    static constexpr std::size_t few() {
        return kFew;
    }
    template <typename Word>
    static void sort_few(const Word* from, std::size_t n, Word* to) {
        wide::sort_few(from, n, to);
    }
    template <typename Word>
    static Divided divide(const Word* from, std::size_t n, Word pivot, Word low_bits, Word* to) {
        return wide::divide(from, n, pivot, low_bits, to);
    }
};

EVERTREE_WIDE inline void store(std::uint32_t* to, __mmask8 lanes, __m512i wide_elements) {
    _mm512_mask_cvtepi64_storeu_epi32(to, lanes, wide_elements);
}
EVERTREE_WIDE inline void store(few::Element* to, __mmask8 lanes, __m512i wide_elements) {
    _mm512_mask_cvtepi64_storeu_epi16(to, lanes, wide_elements);
}
EVERTREE_WIDE inline void store(std::uint32_t* to, __mmask16 lanes, __m512i wide_elements) {
    _mm512_mask_storeu_epi32(to, lanes, wide_elements);
}
EVERTREE_WIDE inline void store(few::Element* to, __mmask16 lanes, __m512i wide_elements) {
    _mm512_mask_cvtepi32_storeu_epi16(to, lanes, wide_elements);
}

template <typename Element>
EVERTREE_WIDE void to_elements_avx512(const std::uint64_t* words, std::size_t n,
                                      std::uint64_t low_bits, int class_bits, Element* elements) {
    const __m512i low = _mm512_set1_epi64(static_cast<long long>(low_bits));
    const __m512i is_new = _mm512_set1_epi64(ElementBits<Element>::kNew);
    const __m512i class_mask = _mm512_set1_epi64((1LL << class_bits) - 1);
    const __m512i shift = _mm512_set1_epi64(class_bits);
    std::uint64_t before = ~words[0];
    for (std::size_t i = 0; i < n; i += 8) {
        const __mmask8 lanes = first_of_8(n - i);
        const __m512i here = _mm512_maskz_loadu_epi64(lanes, words + i);
        const __m512i previous =
            _mm512_alignr_epi64(here, _mm512_set1_epi64(static_cast<long long>(before)), 7);
        const __mmask8 differs = _mm512_cmpneq_epi64_mask(_mm512_andnot_si512(low, here),
                                                          _mm512_andnot_si512(low, previous));
        const __m512i here_low = _mm512_and_si512(here, low);
        const __m512i own =
            _mm512_or_si512(_mm512_srlv_epi64(here_low, shift),
                            _mm512_slli_epi64(_mm512_and_si512(here_low, class_mask),
                                              ElementBits<Element>::kClassShift));
        store(elements + i, lanes, _mm512_mask_or_epi64(own, differs, own, is_new));
        before = words[std::min(i + 7, n - 1)];
    }
    elements[0] |= static_cast<Element>(ElementBits<Element>::kNew);
}

template <typename Element>
EVERTREE_WIDE void to_elements_avx512(const std::uint32_t* words, std::size_t n,
                                      std::uint32_t low_bits, int class_bits, Element* elements) {
    const __m512i low = _mm512_set1_epi32(static_cast<int>(low_bits));
    const __m512i is_new = _mm512_set1_epi32(static_cast<int>(ElementBits<Element>::kNew));
    const __m512i class_mask = _mm512_set1_epi32((1 << class_bits) - 1);
    const __m512i shift = _mm512_set1_epi32(class_bits);
    std::uint32_t before = ~words[0];
    for (std::size_t i = 0; i < n; i += 16) {
        const __mmask16 lanes = first_of_16(n - i);
        const __m512i here = _mm512_maskz_loadu_epi32(lanes, words + i);
        const __m512i previous =
            _mm512_alignr_epi32(here, _mm512_set1_epi32(static_cast<int>(before)), 15);
        const __mmask16 differs = _mm512_cmpneq_epi32_mask(_mm512_andnot_si512(low, here),
                                                           _mm512_andnot_si512(low, previous));
        const __m512i here_low = _mm512_and_si512(here, low);
        const __m512i own =
            _mm512_or_si512(_mm512_srlv_epi32(here_low, shift),
                            _mm512_slli_epi32(_mm512_and_si512(here_low, class_mask),
                                              ElementBits<Element>::kClassShift));
        store(elements + i, lanes, _mm512_mask_or_epi32(own, differs, own, is_new));
        before = words[std::min(i + 15, n - 1)];
    }
    elements[0] |= static_cast<Element>(ElementBits<Element>::kNew);
}

}  // namespace

#endif

template <typename Word>
bool sort_any([[maybe_unused]] Word* words, [[maybe_unused]] Word* spare,
              [[maybe_unused]] std::size_t n, [[maybe_unused]] Word low_bits) {
#ifdef EVERTREE_AVX512
    if (level == Level::plain) return false;
    if (level == Level::avx2) {
        avx2::sort(words, spare, n, low_bits);
    } else {
        quicksort<Ways, Word>({words, spare, n, words, false}, low_bits);
    }
    return true;
#else
    return false;
#endif
}

bool sort(std::uint64_t* words, std::uint64_t* spare, std::size_t n, std::uint64_t low_bits) {
    return sort_any(words, spare, n, low_bits);
}

bool sort(std::uint32_t* words, std::uint32_t* spare, std::size_t n, std::uint32_t low_bits) {
    return sort_any(words, spare, n, low_bits);
}

template <typename Word, typename Element>
void to_elements(const Word* words, std::size_t n, Word low_bits, int class_bits,
                 Element* elements) {
#ifdef EVERTREE_AVX512
    if (level >= Level::avx512) return to_elements_avx512(words, n, low_bits, class_bits, elements);
    if (level == Level::avx2) {
        plain::to_elements(words, 0, 1, low_bits, class_bits, elements);
        const std::size_t done = avx2::to_elements(words, n, low_bits, class_bits, elements);
        return plain::to_elements(words, done, n, low_bits, class_bits, elements);
    }
#endif
    plain::to_elements(words, 0, n, low_bits, class_bits, elements);
}

template void to_elements(const std::uint64_t*, std::size_t, std::uint64_t, int, std::uint32_t*);
template void to_elements(const std::uint32_t*, std::size_t, std::uint32_t, int, std::uint32_t*);
template void to_elements(const std::uint64_t*, std::size_t, std::uint64_t, int, few::Element*);
template void to_elements(const std::uint32_t*, std::size_t, std::uint32_t, int, few::Element*);

}  // namespace evertree::wide
