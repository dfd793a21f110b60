#include <algorithm>
#include <array>
#include <bit>

#include "../element_bits.hpp"
#include "../tables.hpp"
#include "avx512.hpp"

#ifdef EVERTREE_AVX512

namespace evertree::wide::few::avx512 {

namespace {

// The elements that are of a class, of 32.
EVERTREE_WIDE inline std::uint32_t are_of(__m512i elements, Element number) {
    return _mm512_cmpeq_epi16_mask(
        _mm512_and_si512(elements, _mm512_set1_epi16(static_cast<short>(kClass))),
        _mm512_set1_epi16(static_cast<short>(number << kRowBits)));
}

// One by the rows on the left, and on the right, of sixteen cuts.
EVERTREE_WIDE inline __m512 of_left(std::uint32_t first, __mmask16 lanes) {
    return _mm512_maskz_loadu_ps(lanes, kInverse.to.data() + first + 1);
}
EVERTREE_WIDE inline __m512 of_right(std::uint32_t n, std::uint32_t first, __mmask16 lanes) {
    return _mm512_maskz_loadu_ps(lanes, kInverse.back.data() + (kMostRows - n) + first + 1);
}

// What sixteen cuts have in common in all lists of two classes.
struct Cuts {
    __m512 ones_if_even;  // n * (ones on the left, if they were spread evenly)
    __m512 weight;        // 1 / (left * right)

    EVERTREE_WIDE Cuts(std::uint32_t n, std::uint32_t ones, std::uint32_t first) {
        const __mmask16 lanes = first_of_16(n - 1 - first);
        const __m512i lane =
            _mm512_set_epi32(16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1);
        const __m512i left = _mm512_add_epi32(_mm512_set1_epi32(static_cast<int>(first)), lane);
        ones_if_even =
            _mm512_mul_ps(_mm512_cvtepi32_ps(left), _mm512_set1_ps(static_cast<float>(ones)));
        weight = _mm512_mul_ps(of_left(first, lanes), of_right(n, first, lanes));
    }
    EVERTREE_WIDE __m512 scores(__m512i ones_left, __m512 n, __mmask16 is_cut) const {
        const __m512 excess = _mm512_fmsub_ps(_mm512_cvtepi32_ps(ones_left), n, ones_if_even);
        return _mm512_mask_mul_ps(_mm512_set1_ps(-1.0f), is_cut, _mm512_mul_ps(excess, excess),
                                  weight);
    }
};

// Up to 32 cuts from `first` on.
struct Block {
    std::uint32_t first;
    bool any_high;
    Cuts low, high;

    EVERTREE_WIDE Block(const Lists& lists, std::uint32_t ones, std::uint32_t from)
        : first(from),
          any_high(lists.n - 1 - from > 16),
          low(lists.n, ones, from),
          high(lists.n, ones, any_high ? from + 16 : from) {}
};

class TwoScoring {
  public:
    EVERTREE_WIDE TwoScoring(const Lists& lists, const Classes& classes, float* scores,
                             std::uint8_t* has_cuts)
        : lists_(lists),
          one_bit_(shift_of_ones(classes)),
          scores_(scores),
          has_cuts_(has_cuts),
          n_(_mm512_set1_ps(static_cast<float>(lists.n))),
          best_(_mm512_set1_ps(-1.0f)) {
        std::fill_n(has_cuts, lists.n_lists, std::uint8_t{0});
    }
    // `before` of class one are on the left of the block; how many are behind it.
    EVERTREE_WIDE std::uint32_t score(std::size_t l, const Block& block, std::uint32_t before) {
        const Element* const list = lists_.list(l) + block.first;
        const __m512i here = _mm512_loadu_si512(list), next = _mm512_loadu_si512(list + 1);
        const std::uint32_t is_one = _mm512_movepi16_mask(_mm512_sllv_epi16(here, one_bit_));
        const std::uint32_t is_cut =
            _mm512_movepi16_mask(next) & first_of_32(lists_.n - 1 - block.first);
        has_cuts_[l] |= static_cast<std::uint8_t>(is_cut != 0);
        const __m512i ones_before = _mm512_set1_epi32(static_cast<int>(before));
        float* const out = scores_ + l * lists_.stride + block.first;
        keep(block.low, ones_before, count_up_to_lane(0, is_one), is_cut, out);
        if (block.any_high) {
            keep(block.high, ones_before, count_up_to_lane(16, is_one), is_cut >> 16, out + 16);
        }
        return before + static_cast<std::uint32_t>(_mm_popcnt_u32(is_one));
    }
    EVERTREE_WIDE float best() const { return _mm512_reduce_max_ps(best_); }

  private:
    EVERTREE_WIDE void keep(const Cuts& cuts, __m512i ones_before, __m512i ones,
                            std::uint32_t is_cut, float* out) {
        const __m512i ones_left = _mm512_add_epi32(ones_before, ones);
        const __m512 scores = cuts.scores(ones_left, n_, static_cast<__mmask16>(is_cut));
        _mm512_storeu_ps(out, scores);
        best_ = _mm512_max_ps(best_, scores);
    }

    // Of the bits in which the two numbers differ, the highest one is set in the larger.
    EVERTREE_WIDE static __m512i shift_of_ones(const Classes& classes) {
        const std::uint32_t differing = classes.numbers[0] ^ classes.numbers[1];
        return _mm512_set1_epi16(static_cast<short>(16 - kRowBits - std::bit_width(differing)));
    }

    const Lists& lists_;
    __m512i one_bit_;  // by how much it is to be shifted to be the first
    float* scores_;
    std::uint8_t* has_cuts_;
    __m512 n_, best_;
};

EVERTREE_WIDE float score_two(const Lists& lists, const Classes& classes, float* scores,
                              std::uint8_t* has_cuts) {
    const std::uint32_t ones = classes.counts[1];
    TwoScoring scoring(lists, classes, scores, has_cuts);
    // Some lists at a time: a block is worked out once for all of them.
    std::array<std::uint32_t, 8> before;
    for (std::size_t begin = 0; begin < lists.n_lists; begin += before.size()) {
        const std::size_t some = std::min(lists.n_lists - begin, before.size());
        before.fill(0);
        for (std::uint32_t first = 0; first + 1 < lists.n; first += kLanes) {
            const Block block(lists, ones, first);
            for (std::size_t i = 0; i < some; ++i) {
                before[i] = scoring.score(begin + i, block, before[i]);
            }
        }
    }
    return scoring.best();
}

// Squares of the counts of all classes, on both sides of sixteen cuts; whole numbers all the way.
struct Squares {
    __m512 left, both;  // and the products of the counts on the left and of all

    EVERTREE_WIDE Squares() : left(_mm512_setzero_ps()), both(left) {}
    EVERTREE_WIDE void add(__m512i count_left, __m512 count) {
        const __m512 own = _mm512_cvtepi32_ps(count_left);
        left = _mm512_fmadd_ps(own, own, left);
        both = _mm512_fmadd_ps(own, count, both);
    }
    // The sum of (count - count_left)^2, given that of count^2.
    EVERTREE_WIDE __m512 right(__m512 all) const {
        return _mm512_add_ps(_mm512_sub_ps(all, _mm512_add_ps(both, both)), left);
    }
};

class ManyScoring {
  public:
    EVERTREE_WIDE ManyScoring(const Lists& lists, const Classes& classes)
        : n_(lists.n), classes_(classes), best_(_mm512_set1_ps(-1.0f)) {
        float squares = 0;
        for (std::size_t c = 0; c < classes.n; ++c) {
            counts_[c] = classes.counts[c];
            squares += counts_[c] * counts_[c];
        }
        all_ = _mm512_set1_ps(squares);
    }
    // Whether there is any cut.
    EVERTREE_WIDE bool score(const Element* list, float* scores) {
        std::uint32_t before[kMostClasses] = {}, any_cut = 0;
        for (std::uint32_t first = 0; first + 1 < n_; first += kLanes) {
            const __m512i here = _mm512_loadu_si512(list + first);
            const __m512i next = _mm512_loadu_si512(list + first + 1);
            const std::uint32_t is_cut = _mm512_movepi16_mask(next) & first_of_32(n_ - 1 - first);
            Squares low, high;
            for (std::size_t c = 0; c < classes_.n; ++c) {
                const std::uint32_t own = are_of(here, classes_.numbers[c]);
                const __m512i so_far = _mm512_set1_epi32(static_cast<int>(before[c]));
                const __m512 count = _mm512_set1_ps(counts_[c]);
                low.add(counted(so_far, own, 0), count);
                high.add(counted(so_far, own, 16), count);
                before[c] += static_cast<std::uint32_t>(_mm_popcnt_u32(own));
            }
            keep(low, first, is_cut, scores);
            if (n_ - 1 - first > 16) keep(high, first + 16, is_cut >> 16, scores);
            any_cut |= is_cut;
        }
        return any_cut != 0;
    }
    EVERTREE_WIDE float best() const { return _mm512_reduce_max_ps(best_); }

  private:
    EVERTREE_WIDE static __m512i counted(__m512i before, std::uint32_t own, int first_lane) {
        return _mm512_add_epi32(before, count_up_to_lane(first_lane, own));
    }
    EVERTREE_WIDE void keep(const Squares& squares, std::uint32_t first, std::uint32_t is_cut,
                            float* scores) {
        const __mmask16 lanes = first_of_16(n_ - 1 - first);
        const __m512 of_both =
            _mm512_fmadd_ps(squares.left, of_left(first, lanes),
                            _mm512_mul_ps(squares.right(all_), of_right(n_, first, lanes)));
        const __m512 score =
            _mm512_mask_mov_ps(_mm512_set1_ps(-1.0f), static_cast<__mmask16>(is_cut), of_both);
        _mm512_storeu_ps(scores + first, score);
        best_ = _mm512_max_ps(best_, score);
    }

    std::uint32_t n_;
    const Classes& classes_;
    float counts_[kMostClasses];
    __m512 all_, best_;
};

EVERTREE_WIDE float score_many(const Lists& lists, const Classes& classes, float* scores,
                               std::uint8_t* has_cuts) {
    ManyScoring scoring(lists, classes);
    for (std::size_t l = 0; l < lists.n_lists; ++l) {
        has_cuts[l] = scoring.score(lists.list(l), scores + l * lists.stride) ? 1 : 0;
    }
    return scoring.best();
}

// One side of a list, taken from 32 elements.
struct Side {
    Element* to;
    std::uint32_t pending = 1;

    EVERTREE_WIDE void take(__m512i rows, std::uint32_t is_new, std::uint32_t own,
                            std::uint32_t others) {
        const __m512i new_value = _mm512_set1_epi16(static_cast<short>(kNewValue));
        const __mmask32 marked = new_lanes<kLanes>(is_new, own, others, pending);
        const __m512i with_marks =
            _mm512_mask_blend_epi16(marked, rows, _mm512_or_si512(rows, new_value));
        to += store_picked(to, own, with_marks);
    }
};

// The half words that have the rows' flags, of up to 512, 1,024 or 2,048 rows.
template <int kRegisters>
struct Flags {
    __m512i bits[kRegisters];

    EVERTREE_WIDE explicit Flags(const std::uint64_t* goes_left) {
        for (int r = 0; r < kRegisters; ++r) bits[r] = _mm512_loadu_si512(goes_left + 8 * r);
    }
    EVERTREE_WIDE __m512i half_words(__m512i elements) const {
        const __m512i place = _mm512_srli_epi16(elements, 4);
        if constexpr (kRegisters == 1) return _mm512_permutexvar_epi16(place, bits[0]);
        if constexpr (kRegisters == 2) return _mm512_permutex2var_epi16(bits[0], place, bits[1]);
        if constexpr (kRegisters == 4) {
            const __mmask32 upper = _mm512_test_epi16_mask(elements, _mm512_set1_epi16(1 << 10));
            return _mm512_mask_blend_epi16(upper,
                                           _mm512_permutex2var_epi16(bits[0], place, bits[1]),
                                           _mm512_permutex2var_epi16(bits[2], place, bits[3]));
        }
    }
};

template <bool kLeft, bool kRight, int kRegisters>
EVERTREE_WIDE void divide_lists(const Lists& lists, const std::uint64_t* goes_left,
                                const Sides& to) {
    const Flags<kRegisters> flags(goes_left);
    const __m512i new_value = _mm512_set1_epi16(static_cast<short>(kNewValue));
    for (std::size_t l = 0; l < lists.n_lists; ++l) {
        const Element* const from = lists.list(l);
        const std::size_t at = lists.which[l] * lists.stride;
        Side left{kLeft ? to.left + at : nullptr}, right{kRight ? to.right + at : nullptr};
        for (std::uint32_t i = 0; i < lists.n; i += kLanes) {
            const std::uint32_t lanes = first_of_32(lists.n - i);
            const __m512i here = _mm512_loadu_si512(from + i);
            const __m512i flag = flags.half_words(here);
            const __m512i bit = _mm512_sllv_epi16(_mm512_set1_epi16(1),
                                                  _mm512_and_si512(here, _mm512_set1_epi16(15)));
            const std::uint32_t on_left = _mm512_mask_test_epi16_mask(lanes, flag, bit);
            const std::uint32_t on_right = lanes & ~on_left;
            const std::uint32_t is_new = _mm512_movepi16_mask(here);
            const __m512i rows = _mm512_andnot_si512(new_value, here);
            if constexpr (kLeft) left.take(rows, is_new, on_left, on_right);
            if constexpr (kRight) right.take(rows, is_new, on_right, on_left);
        }
    }
}

template <bool kLeft, bool kRight>
void divide_lists(const Lists& lists, const std::uint64_t* goes_left, std::size_t n_rows,
                  const Sides& to) {
    if (n_rows <= 512) return divide_lists<kLeft, kRight, 1>(lists, goes_left, to);
    if (n_rows <= 1024) return divide_lists<kLeft, kRight, 2>(lists, goes_left, to);
    divide_lists<kLeft, kRight, 4>(lists, goes_left, to);
}

}  // namespace

template <>
float score_cuts<kOwnLevel>(const Lists& lists, const Classes& classes, float* scores,
                            std::uint8_t* has_cuts) {
    return (classes.n == 2 ? score_two : score_many)(lists, classes, scores, has_cuts);
}

template <>
EVERTREE_WIDE std::uint32_t cuts_that_reach<kOwnLevel>(const float* scores, std::uint32_t n,
                                                       float score, std::uint16_t* cuts) {
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i + 1 < n; i += 16) {
        std::uint32_t reach =
            _mm512_cmp_ps_mask(_mm512_loadu_ps(scores + i), _mm512_set1_ps(score), _CMP_GE_OQ) &
            first_of_16(n - 1 - i);
        for (; reach != 0; reach &= reach - 1) {
            cuts[count++] = static_cast<std::uint16_t>(i + _tzcnt_u32(reach));
        }
    }
    return count;
}

template <>
EVERTREE_WIDE std::uint32_t count_class<kOwnLevel>(const Element* list, std::uint32_t n,
                                                   Element number) {
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < n; i += kLanes) {
        const std::uint32_t own = are_of(_mm512_loadu_si512(list + i), number);
        count += static_cast<std::uint32_t>(_mm_popcnt_u32(own & first_of_32(n - i)));
    }
    return count;
}

template <>
void divide<kOwnLevel>(const Lists& lists, const std::uint64_t* goes_left, std::size_t n_rows,
                       const Sides& to) {
    if (to.right == nullptr) return divide_lists<true, false>(lists, goes_left, n_rows, to);
    if (to.left == nullptr) return divide_lists<false, true>(lists, goes_left, n_rows, to);
    divide_lists<true, true>(lists, goes_left, n_rows, to);
}

}  // namespace evertree::wide::few::avx512

#endif
