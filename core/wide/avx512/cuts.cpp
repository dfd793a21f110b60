#include <algorithm>

#include "avx512.hpp"

#ifdef EVERTREE_AVX512

namespace evertree::wide::avx512 {

using element::kClassOne;
using element::kRow;

namespace {

constexpr std::uint32_t kLanes = 16;

// Sixteen cuts: their rough scores, and which of them lie between different values.
struct ScoredCuts {
    __m512 score;
    __m512i ones_left;
    __mmask16 is_cut;
};

EVERTREE_WIDE inline ScoredCuts score_cuts(const TwoClassRows& rows, const std::uint32_t* list,
                                           std::uint32_t i, std::uint32_t& ones) {
    const __mmask16 lanes = first_of_16(rows.n - 1 - i);
    const __m512i here = _mm512_maskz_loadu_epi32(lanes, list + i);
    const __m512i next = _mm512_maskz_loadu_epi32(lanes, list + i + 1);
    const __m512i class_one = _mm512_set1_epi32(static_cast<int>(kClassOne));
    const std::uint32_t is_one = _mm512_test_epi32_mask(here, class_one);
    const __m512i of_lane = count_up_to_lane(0, is_one);
    const __m512i ones_left = _mm512_add_epi32(_mm512_set1_epi32(static_cast<int>(ones)), of_lane);
    ones += static_cast<std::uint32_t>(_mm_popcnt_u32(is_one));
    const __m512 left = _mm512_cvtepi32_ps(ones_left);
    const __m512 right = _mm512_sub_ps(_mm512_set1_ps(static_cast<float>(rows.ones)), left);
    const __m512 of_left =
        _mm512_mul_ps(_mm512_mul_ps(left, left), _mm512_maskz_loadu_ps(lanes, rows.inverse + i));
    const __m512 of_right = _mm512_mul_ps(_mm512_mul_ps(right, right),
                                          _mm512_maskz_loadu_ps(lanes, rows.inverse_back + i));
    return {_mm512_add_ps(of_left, of_right), ones_left, _mm512_movepi32_mask(next)};
}

// Squared class counts of sixteen cuts, on the left and on the right; `before` are the counts of
// the rows before, and go on.
struct Squares {
    __m512 left, right;
};
EVERTREE_WIDE inline Squares squares_of_cuts(const ManyClassRows& rows, __m512i labels,
                                             __mmask16 lanes, float* before) {
    Squares sum{_mm512_setzero_ps(), _mm512_setzero_ps()};
    for (std::size_t c = 0; c < rows.n_classes; ++c) {
        const std::uint32_t is_own = _mm512_mask_cmpeq_epi32_mask(
            lanes, labels, _mm512_set1_epi32(static_cast<int>(rows.classes[c])));
        const __m512i of_lane = count_up_to_lane(0, is_own);
        const __m512 left = _mm512_add_ps(_mm512_set1_ps(before[c]), _mm512_cvtepi32_ps(of_lane));
        const __m512 right = _mm512_sub_ps(_mm512_set1_ps(rows.totals[c]), left);
        before[c] += static_cast<float>(_mm_popcnt_u32(is_own));
        sum.left = _mm512_add_ps(sum.left, _mm512_mul_ps(left, left));
        sum.right = _mm512_add_ps(sum.right, _mm512_mul_ps(right, right));
    }
    return sum;
}

EVERTREE_WIDE float best_score(const ManyClassRows& rows, const std::uint32_t* list) {
    constexpr std::uint32_t at_once = 256;  // classes are looked up before any is waited for
    alignas(64) std::uint32_t labels[at_once];
    float before[ManyClassRows::kMostClasses] = {};
    __m512 best = _mm512_set1_ps(-1.0f);
    const std::uint32_t n_cuts = rows.n - 1;
    for (std::uint32_t begin = 0; begin < n_cuts; begin += at_once) {
        const std::uint32_t n = std::min(n_cuts - begin, at_once);
        for (std::uint32_t i = 0; i < n; ++i) {
            labels[i] = rows.class_of_row[list[begin + i] & kRow];
        }
        for (std::uint32_t i = 0; i < n; i += kLanes) {
            const std::uint32_t at = begin + i;
            const __mmask16 lanes = first_of_16(n - i);
            const __mmask16 is_cut =
                _mm512_movepi32_mask(_mm512_maskz_loadu_epi32(lanes, list + at + 1));
            const Squares squares =
                squares_of_cuts(rows, _mm512_load_si512(labels + i), lanes, before);
            const __m512 score = _mm512_add_ps(
                _mm512_mul_ps(squares.left, _mm512_maskz_loadu_ps(lanes, rows.inverse + at)),
                _mm512_mul_ps(squares.right, _mm512_maskz_loadu_ps(lanes, rows.inverse_back + at)));
            best = _mm512_mask_max_ps(best, is_cut, best, score);
        }
    }
    return _mm512_reduce_max_ps(best);
}

}  // namespace

template <>
EVERTREE_WIDE void best_scores<kOwnLevel>(const TwoClassRows& rows,
                                          const std::uint32_t* const* lists, std::size_t n_lists,
                                          float* scores) {
    for (std::size_t l = 0; l < n_lists; ++l) {
        __m512 best = _mm512_set1_ps(-1.0f);
        std::uint32_t ones = 0;
        for (std::uint32_t i = 0; i + 1 < rows.n; i += kLanes) {
            const ScoredCuts scored = score_cuts(rows, lists[l], i, ones);
            best = _mm512_mask_max_ps(best, scored.is_cut, best, scored.score);
        }
        scores[l] = _mm512_reduce_max_ps(best);
    }
}

template <>
void best_scores<kOwnLevel>(const ManyClassRows& rows, const std::uint32_t* const* lists,
                            std::size_t n_lists, float* scores) {
    for (std::size_t l = 0; l < n_lists; ++l) scores[l] = best_score(rows, lists[l]);
}

template <>
EVERTREE_WIDE std::uint32_t cuts_that_reach<kOwnLevel>(const TwoClassRows& rows,
                                                       const std::uint32_t* list, float to_reach,
                                                       std::uint32_t* cut,
                                                       std::uint32_t* ones_left) {
    const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    std::uint32_t ones = 0, count = 0;
    for (std::uint32_t i = 0; i + 1 < rows.n; i += kLanes) {
        const ScoredCuts scored = score_cuts(rows, list, i, ones);
        const __mmask16 reach = _mm512_mask_cmp_ps_mask(scored.is_cut, scored.score,
                                                        _mm512_set1_ps(to_reach), _CMP_GE_OQ);
        if (reach == 0) continue;
        const __m512i at = _mm512_add_epi32(_mm512_set1_epi32(static_cast<int>(i)), lane);
        _mm512_mask_compressstoreu_epi32(cut + count, reach, at);
        _mm512_mask_compressstoreu_epi32(ones_left + count, reach, scored.ones_left);
        count += static_cast<std::uint32_t>(_mm_popcnt_u32(reach));
    }
    return count;
}

}  // namespace evertree::wide::avx512

#endif
