#include <algorithm>

#include "../element_bits.hpp"
#include "../quicksort.hpp"
#include "avx2.hpp"

#ifdef EVERTREE_AVX2

namespace evertree::wide::avx2 {

namespace {

// For each set of four lanes of 64 bits: those in it, then the others, as eight lanes of 32.
struct WideOrders {
    alignas(32) std::array<std::array<std::uint32_t, 8>, 16> of{};

    constexpr WideOrders() {
        for (std::size_t lanes = 0; lanes < of.size(); ++lanes) {
            std::size_t at = 0;
            for (const bool in_it : {true, false}) {
                for (std::uint32_t lane = 0; lane < 4; ++lane) {
                    if (((lanes >> lane & 1) != 0) != in_it) continue;
                    of[lanes][at++] = 2 * lane;
                    of[lanes][at++] = 2 * lane + 1;
                }
            }
        }
    }
};
constexpr WideOrders kWideOrders;

// What is done with a register of words of either width. Words can be compared as signed numbers
// only: `signed_of` makes them such, in the same order.
template <typename Word>
struct Lanes;

template <>
struct Lanes<std::uint64_t> {
    static constexpr std::size_t kCount = 4;

    EVERTREE_WITH_AVX2 static __m256i all(std::uint64_t word) {
        return _mm256_set1_epi64x(static_cast<long long>(word));
    }
    EVERTREE_WITH_AVX2 static __m256i signed_of(__m256i words) {
        return _mm256_xor_si256(words, all(std::uint64_t{1} << 63));
    }
    EVERTREE_WITH_AVX2 static __m256i is_above(__m256i a, __m256i b) {
        return _mm256_cmpgt_epi64(a, b);
    }
    EVERTREE_WITH_AVX2 static __m256i subtract(__m256i a, __m256i b) {
        return _mm256_sub_epi64(a, b);
    }
    EVERTREE_WITH_AVX2 static std::uint32_t bits(__m256i is_in) {
        return static_cast<std::uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(is_in)));
    }
    EVERTREE_WITH_AVX2 static __m256i in_front(__m256i words, std::uint32_t lanes) {
        return _mm256_permutevar8x32_epi32(words, load(kWideOrders.of[lanes].data()));
    }
};

template <>
struct Lanes<std::uint32_t> {
    static constexpr std::size_t kCount = 8;

    EVERTREE_WITH_AVX2 static __m256i all(std::uint32_t word) {
        return _mm256_set1_epi32(static_cast<int>(word));
    }
    EVERTREE_WITH_AVX2 static __m256i signed_of(__m256i words) {
        return _mm256_xor_si256(words, all(std::uint32_t{1} << 31));
    }
    EVERTREE_WITH_AVX2 static __m256i is_above(__m256i a, __m256i b) {
        return _mm256_cmpgt_epi32(a, b);
    }
    EVERTREE_WITH_AVX2 static __m256i subtract(__m256i a, __m256i b) {
        return _mm256_sub_epi32(a, b);
    }
    EVERTREE_WITH_AVX2 static std::uint32_t bits(__m256i is_in) { return signs(is_in); }
    EVERTREE_WITH_AVX2 static __m256i in_front(__m256i words, std::uint32_t lanes) {
        return _mm256_permutevar8x32_epi32(words, widened(kOrders.of[lanes]));
    }
};

constexpr std::size_t kRegisters = 8;  // up to so many full, a word's place is its rank

// n words, which fill `kUsed` registers; a word's place is the number of larger ones, from the end.
template <typename Word, std::size_t kUsed>
EVERTREE_WITH_AVX2 inline void place_by_rank(const Word* from, std::size_t n, Word* to) {
    using L = Lanes<Word>;
    alignas(32) Word words[L::kCount * kUsed], places[L::kCount * kUsed];
    std::copy_n(from, n, words);
    std::fill(words + n, words + L::kCount * kUsed, Word{0});
    __m256i word[kUsed], n_above[kUsed];
    for (std::size_t r = 0; r < kUsed; ++r) {
        word[r] = L::signed_of(load(words + L::kCount * r));
        n_above[r] = _mm256_setzero_si256();
    }
    for (std::size_t i = 0; i < n; ++i) {
        const __m256i other = L::signed_of(L::all(words[i]));
        for (std::size_t r = 0; r < kUsed; ++r) {
            n_above[r] = L::subtract(n_above[r], L::is_above(other, word[r]));
        }
    }
    for (std::size_t r = 0; r < kUsed; ++r) store(places + L::kCount * r, n_above[r]);
    for (std::size_t i = 0; i < n; ++i) to[n - 1 - places[i]] = words[i];
}

template <typename Word>
EVERTREE_WITH_AVX2 void sort_few(const Word* from, std::size_t n, Word* to) {
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

template <typename Word>
EVERTREE_WITH_AVX2 Divided divide(const Word* from, std::size_t n, Word pivot, Word low_bits,
                                  Word* to) {
    using L = Lanes<Word>;
    const __m256i pivots = L::all(pivot), signed_pivots = L::signed_of(pivots);
    __m256i in_below = _mm256_setzero_si256(), in_others = in_below;
    Word *front = to, *back = to + n;
    std::size_t i = 0;
    // A register is stored at both ends at once: while two of them are missing, what does not
    // belong to an end is overwritten later.
    for (; i + 2 * L::kCount <= n; i += L::kCount) {
        const __m256i words = load(from + i);
        const __m256i differing = _mm256_xor_si256(words, pivots);
        const __m256i is_below = L::is_above(signed_pivots, L::signed_of(words));
        in_below = _mm256_or_si256(in_below, _mm256_and_si256(is_below, differing));
        in_others = _mm256_or_si256(in_others, _mm256_andnot_si256(is_below, differing));
        const std::uint32_t below = L::bits(is_below);
        const __m256i ordered = L::in_front(words, below);
        store(front, ordered);
        store(back - L::kCount, ordered);
        const std::size_t n_below = count_bits(below);
        front += n_below;
        back -= L::kCount - n_below;
    }
    Word rest_below = 0, rest_others = 0;
    for (; i < n; ++i) {
        const Word word = from[i];
        const bool is_below = word < pivot;
        (is_below ? rest_below : rest_others) |= word ^ pivot;
        *(is_below ? front++ : --back) = word;
    }
    const __m256i upper = L::all(static_cast<Word>(~low_bits));
    return {static_cast<std::size_t>(front - to),
            _mm256_testz_si256(in_below, upper) != 0 && (rest_below & ~low_bits) == 0,
            _mm256_testz_si256(in_others, upper) != 0 && (rest_others & ~low_bits) == 0};
}

struct Ways {
    template <typename Word>
    static constexpr std::size_t few() {
        return kRegisters * Lanes<Word>::kCount;
    }
    template <typename Word>
    static void sort_few(const Word* from, std::size_t n, Word* to) {
        avx2::sort_few(from, n, to);
    }
    template <typename Word>
    static Divided divide(const Word* from, std::size_t n, Word pivot, Word low_bits, Word* to) {
        return avx2::divide(from, n, pivot, low_bits, to);
    }
};

// What words have to say, as elements in lanes of their own width.
template <typename Element>
struct Reading {
    using Bits = ElementBits<Element>;

    __m256i low, class_mask;
    __m128i class_bits;

    EVERTREE_WITH_AVX2 __m256i elements(const std::uint64_t* words) const {
        const __m256i here = load(words), previous = load(words - 1);
        const __m256i is_same =
            _mm256_cmpeq_epi64(_mm256_andnot_si256(low, here), _mm256_andnot_si256(low, previous));
        const __m256i own = _mm256_and_si256(here, low);
        const __m256i number = _mm256_and_si256(own, class_mask);
        return _mm256_or_si256(
            _mm256_or_si256(_mm256_srl_epi64(own, class_bits),
                            _mm256_slli_epi64(number, Bits::kClassShift)),
            _mm256_andnot_si256(is_same, _mm256_set1_epi64x(std::int64_t{Bits::kNew})));
    }
    EVERTREE_WITH_AVX2 __m256i elements(const std::uint32_t* words) const {
        const __m256i here = load(words), previous = load(words - 1);
        const __m256i is_same =
            _mm256_cmpeq_epi32(_mm256_andnot_si256(low, here), _mm256_andnot_si256(low, previous));
        const __m256i own = _mm256_and_si256(here, low);
        const __m256i number = _mm256_and_si256(own, class_mask);
        return _mm256_or_si256(
            _mm256_or_si256(_mm256_srl_epi32(own, class_bits),
                            _mm256_slli_epi32(number, Bits::kClassShift)),
            _mm256_andnot_si256(is_same, _mm256_set1_epi32(static_cast<int>(Bits::kNew))));
    }
    // Eight of them, in lanes of 32 bits.
    EVERTREE_WITH_AVX2 __m256i eight(const std::uint32_t* words) const { return elements(words); }
    EVERTREE_WITH_AVX2 __m256i eight(const std::uint64_t* words) const {
        const __m256i lower_halves = _mm256_set_epi32(7, 5, 3, 1, 6, 4, 2, 0);
        const __m256i a = _mm256_permutevar8x32_epi32(elements(words), lower_halves);
        const __m256i b = _mm256_permutevar8x32_epi32(elements(words + 4), lower_halves);
        return _mm256_inserti128_si256(a, _mm256_castsi256_si128(b), 1);
    }
};

EVERTREE_WITH_AVX2 inline void store_eight(std::uint32_t* to, __m256i elements) {
    store(to, elements);
}
EVERTREE_WITH_AVX2 inline void store_eight(few::Element* to, __m256i elements) {
    _mm_storeu_si128(
        reinterpret_cast<__m128i*>(to),
        _mm_packus_epi32(_mm256_castsi256_si128(elements), _mm256_extracti128_si256(elements, 1)));
}

template <typename Word, typename Element>
EVERTREE_WITH_AVX2 void read_eights(const Word* words, std::size_t end, Word low_bits,
                                    int class_bits, Element* elements) {
    using L = Lanes<Word>;
    const Reading<Element> reading{L::all(low_bits),
                                   L::all(static_cast<Word>((Word{1} << class_bits) - 1)),
                                   _mm_cvtsi32_si128(class_bits)};
    for (std::size_t i = 1; i < end; i += 8) store_eight(elements + i, reading.eight(words + i));
}

}  // namespace

void sort(std::uint64_t* words, std::uint64_t* spare, std::size_t n, std::uint64_t low_bits) {
    quicksort<Ways, std::uint64_t>({words, spare, n, words, false}, low_bits);
}
void sort(std::uint32_t* words, std::uint32_t* spare, std::size_t n, std::uint32_t low_bits) {
    quicksort<Ways, std::uint32_t>({words, spare, n, words, false}, low_bits);
}

template <typename Word, typename Element>
std::size_t to_elements(const Word* words, std::size_t n, Word low_bits, int class_bits,
                        Element* elements) {
    const std::size_t end = n - (n - 1) % 8;
    read_eights(words, end, low_bits, class_bits, elements);
    return end;
}

template std::size_t to_elements(const std::uint64_t*, std::size_t, std::uint64_t, int,
                                 std::uint32_t*);
template std::size_t to_elements(const std::uint32_t*, std::size_t, std::uint32_t, int,
                                 std::uint32_t*);
template std::size_t to_elements(const std::uint64_t*, std::size_t, std::uint64_t, int,
                                 few::Element*);
template std::size_t to_elements(const std::uint32_t*, std::size_t, std::uint32_t, int,
                                 few::Element*);

}  // namespace evertree::wide::avx2

#endif
