#include <algorithm>
#include <array>
#include <utility>

#include "avx512.hpp"
#include "wide.hpp"

namespace evertree::wide {

using element::kClassOne;
using element::kNewValue;

namespace plain {

void to_elements(const std::uint64_t* words, std::size_t n, std::uint64_t low_bits,
                 std::uint32_t* elements) {
    std::uint64_t before = ~words[0];
    for (std::size_t i = 0; i < n; ++i) {
        const std::uint64_t word = words[i], low = word & low_bits;
        const bool is_new = ((word ^ before) & ~low_bits) != 0;
        elements[i] = static_cast<std::uint32_t>(low >> 1) | ((low & 1) != 0 ? kClassOne : 0) |
                      (is_new ? kNewValue : 0);
        before = word;
    }
    elements[0] |= kNewValue;
}

}  // namespace plain

#ifdef EVERTREE_AVX512

namespace {

constexpr std::size_t kFew = 64;  // up to here, a word's place is the number of smaller ones

// `kRegisters` times eight words, of which n are there.
template <int kRegisters>
EVERTREE_WIDE inline void place_by_rank(const std::uint64_t* from, std::size_t n,
                                        std::uint64_t* to) {
    const __m512i one = _mm512_set1_epi64(1);
    __m512i word[kRegisters], rank[kRegisters];
    alignas(64) std::uint64_t each[8 * kRegisters];
    for (int r = 0; r < kRegisters; ++r) {
        const std::size_t before = 8 * static_cast<std::size_t>(r);
        word[r] =
            _mm512_mask_loadu_epi64(_mm512_set1_epi64(-1), first_of_8(n - before), from + before);
        rank[r] = _mm512_setzero_si512();
        _mm512_store_si512(each + before, word[r]);
    }
    for (std::size_t i = 0; i < n; ++i) {
        const __m512i other = _mm512_set1_epi64(static_cast<long long>(each[i]));
        for (int r = 0; r < kRegisters; ++r) {
            const __mmask8 is_larger = _mm512_cmplt_epu64_mask(other, word[r]);
            rank[r] = _mm512_mask_add_epi64(rank[r], is_larger, rank[r], one);
        }
    }
    for (int r = 0; r < kRegisters; ++r) {
        const std::size_t before = 8 * static_cast<std::size_t>(r);
        _mm512_mask_i64scatter_epi64(to, first_of_8(n - before), rank[r], word[r], 8);
    }
}

EVERTREE_WIDE void sort_few(const std::uint64_t* from, std::size_t n, std::uint64_t* to) {
    switch ((n + 7) / 8) {
        case 0:
            return;
        case 1:
            return place_by_rank<1>(from, n, to);
        case 2:
            return place_by_rank<2>(from, n, to);
        case 3:
            return place_by_rank<3>(from, n, to);
        case 4:
            return place_by_rank<4>(from, n, to);
        case 5:
            return place_by_rank<5>(from, n, to);
        case 6:
            return place_by_rank<6>(from, n, to);
        case 7:
            return place_by_rank<7>(from, n, to);
        default:
            return place_by_rank<8>(from, n, to);
    }
}

// For each set of eight lanes: those in it, then the others, in order; a byte a lane.
struct Orders {
    std::array<std::uint64_t, 256> of{};

    constexpr Orders() {
        for (std::size_t lanes = 0; lanes < of.size(); ++lanes) {
            int at = 0;
            for (const bool in_it : {true, false}) {
                for (std::uint64_t lane = 0; lane < 8; ++lane) {
                    if (((lanes >> lane & 1) != 0) == in_it) of[lanes] |= lane << 8 * at++;
                }
            }
        }
    }
};
constexpr Orders kOrders;

// Words below the pivot to the front of `to`, the others to its back. A part is done when its upper
// bits are all the pivot's.
struct Divided {
    std::size_t n_below;
    bool below_done, others_done;
};
EVERTREE_WIDE Divided divide(const std::uint64_t* from, std::size_t n, std::uint64_t pivot,
                             std::uint64_t low_bits, std::uint64_t* to) {
    const __m512i pivots = _mm512_set1_epi64(static_cast<long long>(pivot));
    __m512i in_below = _mm512_setzero_si512(), in_others = _mm512_setzero_si512();
    std::uint64_t *front = to, *back = to + n;
    std::size_t i = 0;
    // Eight words are stored at both ends at once: while sixteen are missing, what does not belong
    // to an end is overwritten later.
    for (; i + 16 <= n; i += 8) {
        const __m512i words = _mm512_loadu_si512(from + i);
        const __m512i differing = _mm512_xor_si512(words, pivots);
        const __mmask8 below = _mm512_cmplt_epu64_mask(words, pivots);
        const auto others = static_cast<__mmask8>(~below);
        in_below = _mm512_mask_or_epi64(in_below, below, in_below, differing);
        in_others = _mm512_mask_or_epi64(in_others, others, in_others, differing);
        const __m128i order = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(&kOrders.of[below]));
        const __m512i ordered = _mm512_permutexvar_epi64(_mm512_cvtepu8_epi64(order), words);
        const auto n_below = static_cast<std::size_t>(_mm_popcnt_u32(below));
        _mm512_storeu_si512(front, ordered);
        _mm512_storeu_si512(back - 8, ordered);
        front += n_below;
        back -= 8 - n_below;
    }
    for (; i < n; i += 8) {
        const __mmask8 lanes = first_of_8(n - i);
        const __m512i words = _mm512_maskz_loadu_epi64(lanes, from + i);
        const __m512i differing = _mm512_xor_si512(words, pivots);
        const __mmask8 below = _mm512_mask_cmplt_epu64_mask(lanes, words, pivots);
        const auto others = static_cast<__mmask8>(lanes & ~below);
        in_below = _mm512_mask_or_epi64(in_below, below, in_below, differing);
        in_others = _mm512_mask_or_epi64(in_others, others, in_others, differing);
        const auto n_below = static_cast<std::size_t>(_mm_popcnt_u32(below));
        const auto n_others = static_cast<std::size_t>(_mm_popcnt_u32(others));
        _mm512_mask_storeu_epi64(front, first_of_8(n_below),
                                 _mm512_maskz_compress_epi64(below, words));
        front += n_below;
        back -= n_others;
        _mm512_mask_storeu_epi64(back, first_of_8(n_others),
                                 _mm512_maskz_compress_epi64(others, words));
    }
    const __m512i upper = _mm512_set1_epi64(static_cast<long long>(~low_bits));
    return {static_cast<std::size_t>(front - to), _mm512_test_epi64_mask(in_below, upper) == 0,
            _mm512_test_epi64_mask(in_others, upper) == 0};
}

std::uint64_t middle(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
    return std::max(std::min(a, b), std::min(std::max(a, b), c));
}

std::uint64_t pivot_of(const std::uint64_t* words, std::size_t n) {
    const std::size_t step = n / 9;
    const auto middle_from = [&](std::size_t at) {
        return middle(words[at], words[at + step], words[at + 2 * step]);
    };
    return middle(middle_from(0), middle_from(3 * step), middle_from(6 * step));
}

struct Part {
    std::uint64_t *words, *spare;
    std::size_t n;
    std::uint64_t* out;  // where they end: in one of the two arrays
    bool done;           // in order already

    Part of(std::size_t begin, std::size_t end, bool is_done) const {
        return {words + begin, spare + begin, end - begin, out + begin, is_done};
    }
};

// From one array to the other and back. The shorter part first and the longer one in the loop: the
// depth is at most log2(n).
EVERTREE_WIDE void sort_words(Part part, std::uint64_t low_bits, int patience) {
    while (!part.done && part.n > kFew) {
        if (patience-- == 0) {  // bad luck, or somebody's intention
            std::sort(part.words, part.words + part.n);
            part.done = true;
            break;
        }
        const Divided divided =
            divide(part.words, part.n, pivot_of(part.words, part.n), low_bits, part.spare);
        std::swap(part.words, part.spare);
        const Part below = part.of(0, divided.n_below, divided.below_done);
        const Part others = part.of(divided.n_below, part.n, divided.others_done);
        const bool below_first = below.n <= others.n;
        sort_words(below_first ? below : others, low_bits, patience);
        part = below_first ? others : below;
    }
    if (!part.done) {
        sort_few(part.words, part.n, part.out);
    } else if (part.words != part.out) {
        std::copy_n(part.words, part.n, part.out);
    }
}

EVERTREE_WIDE void to_elements_avx512(const std::uint64_t* words, std::size_t n,
                                      std::uint64_t low_bits, std::uint32_t* elements) {
    const __m512i low = _mm512_set1_epi64(static_cast<long long>(low_bits));
    const __m512i one = _mm512_set1_epi64(1);
    std::uint64_t before = ~words[0];
    for (std::size_t i = 0; i < n; i += 8) {
        const __mmask8 lanes = first_of_8(n - i);
        const __m512i here = _mm512_maskz_loadu_epi64(lanes, words + i);
        const __m512i previous =
            _mm512_alignr_epi64(here, _mm512_set1_epi64(static_cast<long long>(before)), 7);
        const __mmask8 differs = _mm512_cmpneq_epi64_mask(_mm512_andnot_si512(low, here),
                                                          _mm512_andnot_si512(low, previous));
        const __m512i own = _mm512_and_si512(here, low);
        __m512i element = _mm512_or_si512(_mm512_srli_epi64(own, 1),
                                          _mm512_slli_epi64(_mm512_and_si512(own, one), 30));
        element = _mm512_mask_or_epi64(element, differs, element,
                                       _mm512_set1_epi64(static_cast<long long>(kNewValue)));
        _mm512_mask_cvtepi64_storeu_epi32(elements + i, lanes, element);
        before = words[std::min(i + 7, n - 1)];
    }
    elements[0] |= kNewValue;
}

}  // namespace

#endif

bool sort([[maybe_unused]] std::uint64_t* words, [[maybe_unused]] std::uint64_t* spare,
          [[maybe_unused]] std::size_t n, [[maybe_unused]] std::uint64_t low_bits) {
#ifdef EVERTREE_AVX512
    if (!has_avx512) return false;
    sort_words({words, spare, n, words, false}, low_bits, 64);
    return true;
#else
    return false;
#endif
}

void to_elements(const std::uint64_t* words, std::size_t n, std::uint64_t low_bits,
                 std::uint32_t* elements) {
#ifdef EVERTREE_AVX512
    if (has_avx512) return to_elements_avx512(words, n, low_bits, elements);
#endif
    plain::to_elements(words, n, low_bits, elements);
}

}  // namespace evertree::wide
