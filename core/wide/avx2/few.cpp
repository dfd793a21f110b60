#include <algorithm>
#include <bit>

#include "../element_bits.hpp"
#include "avx2.hpp"

#ifdef EVERTREE_AVX2

namespace evertree::wide::few::avx2 {

using namespace wide::avx2;

namespace {

using Eight = __m128i;  // elements

EVERTREE_WITH_AVX2 inline Eight load_eight(const Element* from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}
EVERTREE_WITH_AVX2 inline void store_eight(Element* to, Eight elements) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), elements);
}

// The sign bits of sixteen elements.
EVERTREE_WITH_AVX2 inline std::uint32_t signs_of(Eight low, Eight high) {
    return static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(low, high)));
}
// Which of sixteen elements are of a class.
EVERTREE_WITH_AVX2 inline std::uint32_t are_of(Eight low, Eight high, Element number) {
    const Eight mask = _mm_set1_epi16(static_cast<short>(kClass));
    const Eight wanted = _mm_set1_epi16(static_cast<short>(number << kRowBits));
    return signs_of(_mm_cmpeq_epi16(_mm_and_si128(low, mask), wanted),
                    _mm_cmpeq_epi16(_mm_and_si128(high, mask), wanted));
}

// ---- scores -------------------------------------------------------------------------------------

// One by the rows on the left, and on the right, of eight cuts.
EVERTREE_WITH_AVX2 inline __m256 of_left(std::uint32_t first) {
    return _mm256_loadu_ps(kInverse.to.data() + first + 1);
}
EVERTREE_WITH_AVX2 inline __m256 of_right(std::uint32_t n, std::uint32_t first) {
    return _mm256_loadu_ps(kInverse.back.data() + (kMostRows - n) + first + 1);
}
// How many of a class are on the left of eight cuts, of whose elements these are of it.
EVERTREE_WITH_AVX2 inline __m256 count_up_to(std::uint32_t before, std::uint32_t own) {
    return _mm256_cvtepi32_ps(_mm256_add_epi32(_mm256_set1_epi32(static_cast<int>(before)),
                                               widened(kCountsUpTo.of[own])));
}
// The scores of those of eight cuts that are between different values, and which those are.
struct Kept {
    __m256 scores;
    __m256i is_cut;

    EVERTREE_WITH_AVX2 Kept(__m256 all_scores, const Element* next, __m256i is_there)
        : is_cut(_mm256_and_si256(_mm256_cvtepi16_epi32(load_eight(next)), is_there)) {
        scores = _mm256_blendv_ps(_mm256_set1_ps(-1.0f), all_scores, _mm256_castsi256_ps(is_cut));
    }
};

// What eight cuts have in common in all lists of two classes.
struct Cuts {
    __m256 ones_if_even;  // n * (ones on the left, if they were spread evenly)
    __m256 weight;        // 1 / (left * right)
    __m256i is_there;

    EVERTREE_WITH_AVX2 Cuts(std::uint32_t n, std::uint32_t ones, std::uint32_t first)
        : is_there(first_of_8(n - 1 - first)) {
        const __m256i left =
            _mm256_add_epi32(_mm256_set1_epi32(static_cast<int>(first + 1)), lane_numbers());
        ones_if_even =
            _mm256_mul_ps(_mm256_cvtepi32_ps(left), _mm256_set1_ps(static_cast<float>(ones)));
        weight = _mm256_mul_ps(of_left(first), of_right(n, first));
    }
};

class TwoScoring {
  public:
    EVERTREE_WITH_AVX2 TwoScoring(const Lists& lists, const Classes& classes, float* scores,
                                  std::uint8_t* has_cuts)
        : lists_(lists),
          one_bit_(shift_of_ones(classes)),
          scores_(scores),
          has_cuts_(has_cuts),
          n_(_mm256_set1_ps(static_cast<float>(lists.n))),
          best_(_mm256_set1_ps(-1.0f)) {
        std::fill_n(has_cuts, lists.n_lists, std::uint8_t{0});
    }
    // `before` of class one are on the left of the eight cuts from `first` on; how many are behind.
    EVERTREE_WITH_AVX2 std::uint32_t score(std::size_t l, const Cuts& cuts, std::uint32_t first,
                                           std::uint32_t before) {
        const Element* const list = lists_.list(l) + first;
        const Eight shifted = _mm_sll_epi16(load_eight(list), one_bit_);
        const std::uint32_t is_one = signs_of(shifted, _mm_setzero_si128());
        const __m256 excess = _mm256_fmsub_ps(count_up_to(before, is_one), n_, cuts.ones_if_even);
        const Kept kept(_mm256_mul_ps(_mm256_mul_ps(excess, excess), cuts.weight), list + 1,
                        cuts.is_there);
        has_cuts_[l] |= static_cast<std::uint8_t>(signs(kept.is_cut) != 0);
        _mm256_storeu_ps(scores_ + l * lists_.stride + first, kept.scores);
        best_ = _mm256_max_ps(best_, kept.scores);
        return before + count_bits(is_one);
    }
    EVERTREE_WITH_AVX2 float best() const { return largest_lane(best_); }

  private:
    // Of the bits in which the two numbers differ, the highest one is set in the larger.
    EVERTREE_WITH_AVX2 static __m128i shift_of_ones(const Classes& classes) {
        const std::uint32_t differing = classes.numbers[0] ^ classes.numbers[1];
        return _mm_cvtsi32_si128(16 - kRowBits - std::bit_width(differing));
    }

    const Lists& lists_;
    __m128i one_bit_;  // by how much it is to be shifted to be the first
    float* scores_;
    std::uint8_t* has_cuts_;
    __m256 n_, best_;
};

EVERTREE_WITH_AVX2 float score_two(const Lists& lists, const Classes& classes, float* scores,
                                   std::uint8_t* has_cuts) {
    TwoScoring scoring(lists, classes, scores, has_cuts);
    // Some lists at a time: what cuts have in common is worked out once for all of them.
    std::array<std::uint32_t, 8> before;
    for (std::size_t begin = 0; begin < lists.n_lists; begin += before.size()) {
        const std::size_t some = std::min(lists.n_lists - begin, before.size());
        before.fill(0);
        for (std::uint32_t first = 0; first + 1 < lists.n; first += 8) {
            const Cuts cuts(lists.n, classes.counts[1], first);
            for (std::size_t i = 0; i < some; ++i) {
                before[i] = scoring.score(begin + i, cuts, first, before[i]);
            }
        }
    }
    return scoring.best();
}

// Squares of the counts of all classes, on both sides of eight cuts; whole numbers all the way.
struct Squares {
    __m256 left, both;  // and the products of the counts on the left and of all

    EVERTREE_WITH_AVX2 Squares() : left(_mm256_setzero_ps()), both(left) {}
    EVERTREE_WITH_AVX2 void add(__m256 count_left, float count) {
        left = _mm256_fmadd_ps(count_left, count_left, left);
        both = _mm256_fmadd_ps(count_left, _mm256_set1_ps(count), both);
    }
    // The sum of (count - count_left)^2, given that of count^2.
    EVERTREE_WITH_AVX2 __m256 right(float all) const {
        return _mm256_add_ps(_mm256_sub_ps(_mm256_set1_ps(all), _mm256_add_ps(both, both)), left);
    }
};

class ManyScoring {
  public:
    EVERTREE_WITH_AVX2 ManyScoring(const Lists& lists, const Classes& classes)
        : n_(lists.n), classes_(classes), best_(_mm256_set1_ps(-1.0f)) {
        for (std::size_t c = 0; c < classes.n; ++c) {
            counts_[c] = classes.counts[c];
            all_ += counts_[c] * counts_[c];
        }
    }
    // Whether there is any cut.
    EVERTREE_WITH_AVX2 bool score(const Element* list, float* scores) {
        std::uint32_t before[kMostClasses] = {}, any_cut = 0;
        for (std::uint32_t first = 0; first + 1 < n_; first += 16) {
            const Eight low = load_eight(list + first), high = load_eight(list + first + 8);
            Squares of_low, of_high;
            for (std::size_t c = 0; c < classes_.n; ++c) {
                const std::uint32_t own = are_of(low, high, classes_.numbers[c]);
                of_low.add(count_up_to(before[c], own & 0xff), counts_[c]);
                before[c] += count_bits(own & 0xff);
                of_high.add(count_up_to(before[c], own >> 8), counts_[c]);
                before[c] += count_bits(own >> 8);
            }
            any_cut |= keep(of_low, first, list, scores);
            if (n_ - 1 - first > 8) any_cut |= keep(of_high, first + 8, list, scores);
        }
        return any_cut != 0;
    }
    EVERTREE_WITH_AVX2 float best() const { return largest_lane(best_); }

  private:
    EVERTREE_WITH_AVX2 std::uint32_t keep(const Squares& squares, std::uint32_t first,
                                          const Element* list, float* scores) {
        const __m256 of_both = _mm256_fmadd_ps(
            squares.left, of_left(first), _mm256_mul_ps(squares.right(all_), of_right(n_, first)));
        const Kept kept(of_both, list + first + 1, first_of_8(n_ - 1 - first));
        _mm256_storeu_ps(scores + first, kept.scores);
        best_ = _mm256_max_ps(best_, kept.scores);
        return signs(kept.is_cut);
    }

    std::uint32_t n_;
    const Classes& classes_;
    float counts_[kMostClasses], all_ = 0;  // and the sum of their squares
    __m256 best_;
};

EVERTREE_WITH_AVX2 float score_many(const Lists& lists, const Classes& classes, float* scores,
                                    std::uint8_t* has_cuts) {
    ManyScoring scoring(lists, classes);
    for (std::size_t l = 0; l < lists.n_lists; ++l) {
        has_cuts[l] = scoring.score(lists.list(l), scores + l * lists.stride) ? 1 : 0;
    }
    return scoring.best();
}

// ---- dividing -----------------------------------------------------------------------------------

// For each set of eight elements: which bytes they have, those in the set first.
struct Picks {
    alignas(16) std::array<std::array<std::uint8_t, 16>, 256> of{};

    constexpr Picks() {
        for (std::size_t lanes = 0; lanes < of.size(); ++lanes) {
            for (std::size_t i = 0; i < 8; ++i) {
                const auto lane = static_cast<std::uint8_t>(kOrders.of[lanes] >> 8 * i);
                of[lanes][2 * i] = static_cast<std::uint8_t>(2 * lane);
                of[lanes][2 * i + 1] = static_cast<std::uint8_t>(2 * lane + 1);
            }
        }
    }
};
constexpr Picks kPicks;

// 32 elements, so that two of their bytes side by side are those of neighbours.
struct Elements {
    __m256i even, odd;  // elements 0 to 7 and 16 to 23, and the others

    EVERTREE_WITH_AVX2 explicit Elements(const Element* from)
        : even(_mm256_set_m128i(load_eight(from + 16), load_eight(from))),
          odd(_mm256_set_m128i(load_eight(from + 24), load_eight(from + 8))) {}
    // A byte of each, of what is in its lower half.
    EVERTREE_WITH_AVX2 static __m256i bytes(__m256i even, __m256i odd) {
        return _mm256_packus_epi16(even, odd);
    }
    EVERTREE_WITH_AVX2 std::uint32_t are_new() const {
        return static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_packs_epi16(even, odd)));
    }
};

// The flags of up to 128 * kTables rows, looked up sixteen bytes of them at a time.
template <int kTables>
EVERTREE_WITH_AVX2 inline __m256i bytes_at(const __m128i* tables, __m256i place) {
    if constexpr (kTables == 1) {
        const __m256i within = _mm256_and_si256(place, _mm256_set1_epi8(15));
        return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128(tables)), within);
    } else {
        // The bit that tells the halves apart is made the highest of its byte.
        constexpr int bit = 4 + std::countr_zero(static_cast<unsigned>(kTables / 2));
        return _mm256_blendv_epi8(bytes_at<kTables / 2>(tables, place),
                                  bytes_at<kTables / 2>(tables + kTables / 2, place),
                                  _mm256_slli_epi16(place, 7 - bit));
    }
}
template <int kTables>
EVERTREE_WITH_AVX2 inline std::uint32_t are_left(const std::uint64_t* goes_left,
                                                 const Elements& elements) {
    const __m256i byte_mask = _mm256_set1_epi16(0xff), bit_mask = _mm256_set1_epi16(7);
    const __m256i place =
        Elements::bytes(_mm256_and_si256(_mm256_srli_epi16(elements.even, 3), byte_mask),
                        _mm256_and_si256(_mm256_srli_epi16(elements.odd, 3), byte_mask));
    const __m256i which = Elements::bytes(_mm256_and_si256(elements.even, bit_mask),
                                          _mm256_and_si256(elements.odd, bit_mask));
    const __m256i bits = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201u));
    const __m256i bit = _mm256_shuffle_epi8(bits, which);
    const __m256i byte = bytes_at<kTables>(reinterpret_cast<const __m128i*>(goes_left), place);
    const __m256i is_set = _mm256_cmpeq_epi8(_mm256_and_si256(byte, bit), bit);
    return static_cast<std::uint32_t>(_mm256_movemask_epi8(is_set));
}

// One side of a list. What is behind its end belongs to others.
struct Side {
    Element *to, *end;
    std::uint32_t pending = 1;

    EVERTREE_WITH_AVX2 void take(const Element* from, std::uint32_t n, std::uint32_t is_new,
                                 std::uint32_t own, std::uint32_t others) {
        const std::uint32_t marked = new_lanes<32>(is_new, own, others, pending);
        for (std::uint32_t i = 0; i < n; i += 8) {
            put(marked_eight(load_eight(from + i), marked >> i), own >> i & 0xff);
        }
    }

  private:
    EVERTREE_WITH_AVX2 static Eight marked_eight(Eight elements, std::uint32_t marked) {
        const Eight new_value = _mm_set1_epi16(static_cast<short>(kNewValue));
        const Eight bit = _mm_set_epi16(128, 64, 32, 16, 8, 4, 2, 1);
        const Eight has_bit = _mm_and_si128(_mm_set1_epi16(static_cast<short>(marked)), bit);
        const Eight is_marked = _mm_cmpeq_epi16(has_bit, bit);
        return _mm_or_si128(_mm_andnot_si128(new_value, elements),
                            _mm_and_si128(new_value, is_marked));
    }
    EVERTREE_WITH_AVX2 void put(Eight elements, std::uint32_t own) {
        const __m128i pick = _mm_load_si128(reinterpret_cast<const __m128i*>(&kPicks.of[own]));
        Eight picked = _mm_shuffle_epi8(elements, pick);
        const std::uint32_t count = count_bits(own);
        if (end - to < 8) {
            const Eight lane = _mm_set_epi16(7, 6, 5, 4, 3, 2, 1, 0);
            const Eight is_own = _mm_cmpgt_epi16(_mm_set1_epi16(static_cast<short>(count)), lane);
            picked = _mm_blendv_epi8(load_eight(to), picked, is_own);
        }
        store_eight(to, picked);
        to += count;
    }
};

template <bool kLeft, bool kRight, int kTables>
EVERTREE_WITH_AVX2 void divide_lists(const Lists& lists, const std::uint64_t* goes_left,
                                     const Sides& to) {
    const std::uint32_t n_right = lists.n - to.n_left;
    for (std::size_t l = 0; l < lists.n_lists; ++l) {
        const Element* const from = lists.list(l);
        const std::size_t at = lists.which[l] * lists.stride;
        Element* const left_to = kLeft ? to.left + at : nullptr;
        Element* const right_to = kRight ? to.right + at : nullptr;
        Side left{left_to, left_to + (kLeft ? to.n_left : 0)};
        Side right{right_to, right_to + (kRight ? n_right : 0)};
        for (std::uint32_t i = 0; i < lists.n; i += kLanes) {
            const std::uint32_t n = std::min<std::uint32_t>(lists.n - i, kLanes);
            const std::uint32_t lanes = n == kLanes ? ~0u : (1u << n) - 1;
            const Elements elements(from + i);
            const std::uint32_t on_left = are_left<kTables>(goes_left, elements) & lanes;
            const std::uint32_t on_right = lanes & ~on_left;
            const std::uint32_t is_new = elements.are_new();
            if constexpr (kLeft) left.take(from + i, n, is_new, on_left, on_right);
            if constexpr (kRight) right.take(from + i, n, is_new, on_right, on_left);
        }
    }
}

template <bool kLeft, bool kRight>
void divide_lists(const Lists& lists, const std::uint64_t* goes_left, std::size_t n_rows,
                  const Sides& to) {
    if (n_rows <= 128) return divide_lists<kLeft, kRight, 1>(lists, goes_left, to);
    if (n_rows <= 256) return divide_lists<kLeft, kRight, 2>(lists, goes_left, to);
    if (n_rows <= 512) return divide_lists<kLeft, kRight, 4>(lists, goes_left, to);
    if (n_rows <= 1024) return divide_lists<kLeft, kRight, 8>(lists, goes_left, to);
    divide_lists<kLeft, kRight, 16>(lists, goes_left, to);
}

}  // namespace

float score_cuts(const Lists& lists, const Classes& classes, float* scores,
                 std::uint8_t* has_cuts) {
    return (classes.n == 2 ? score_two : score_many)(lists, classes, scores, has_cuts);
}

EVERTREE_WITH_AVX2 std::uint32_t cuts_that_reach(const float* scores, std::uint32_t n, float score,
                                                 std::uint16_t* cuts) {
    const __m256 to_reach = _mm256_set1_ps(score);
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i + 1 < n; i += 8) {
        const __m256 reaches = _mm256_cmp_ps(_mm256_loadu_ps(scores + i), to_reach, _CMP_GE_OQ);
        std::uint32_t reach =
            signs(_mm256_and_si256(_mm256_castps_si256(reaches), first_of_8(n - 1 - i)));
        for (; reach != 0; reach &= reach - 1) {
            cuts[count++] = static_cast<std::uint16_t>(i + _tzcnt_u32(reach));
        }
    }
    return count;
}

EVERTREE_WITH_AVX2 std::uint32_t count_class(const Element* list, std::uint32_t n, Element number) {
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < n; i += 16) {
        const std::uint32_t own = are_of(load_eight(list + i), load_eight(list + i + 8), number);
        count += count_bits(n - i >= 16 ? own : own & ((1u << (n - i)) - 1));
    }
    return count;
}

void divide(const Lists& lists, const std::uint64_t* goes_left, std::size_t n_rows,
            const Sides& to) {
    if (to.right == nullptr) return divide_lists<true, false>(lists, goes_left, n_rows, to);
    if (to.left == nullptr) return divide_lists<false, true>(lists, goes_left, n_rows, to);
    divide_lists<true, true>(lists, goes_left, n_rows, to);
}

}  // namespace evertree::wide::few::avx2

#endif
