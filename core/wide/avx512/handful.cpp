#include <bit>

#include "avx512.hpp"

#ifdef EVERTREE_AVX512

namespace evertree::wide::handful::avx512 {

namespace {

// The cuts at all rows of a set, by one feature after the other.
class Cuts {
  public:
    EVERTREE_WIDE Cuts(Rows set, const Classes& classes)
        : set_(set), n_(_mm512_set1_ps(static_cast<float>(_mm_popcnt_u32(set)))) {
        for (std::size_t c = 0; c < classes.n; ++c) {
            const unsigned own = classes.of_rows[c] & set;
            if (own == 0) continue;
            of_rows_[n_classes_] = own;
            counts_[n_classes_++] = static_cast<float>(_mm_popcnt_u32(own));
        }
    }
    EVERTREE_WIDE __m512i left(const Rows* at_most) const {
        const __m512i rows =
            _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at_most)));
        return _mm512_and_si512(rows, _mm512_set1_epi32(set_));
    }
    EVERTREE_WIDE __m512 purity(__m512i left) const {
        const __m512 n_left = _mm512_cvtepi32_ps(count_bits(left));
        const __m512 n_right = _mm512_sub_ps(n_, n_left);
        __m512 squares_left = _mm512_setzero_ps(), squares_right = squares_left;
        for (std::size_t c = 0; c < n_classes_; ++c) {
            const __m512i own =
                _mm512_and_si512(left, _mm512_set1_epi32(static_cast<int>(of_rows_[c])));
            const __m512 on_left = _mm512_cvtepi32_ps(count_bits(own));
            const __m512 on_right = _mm512_sub_ps(_mm512_set1_ps(counts_[c]), on_left);
            squares_left = _mm512_fmadd_ps(on_left, on_left, squares_left);
            squares_right = _mm512_fmadd_ps(on_right, on_right, squares_right);
        }
        const __m512 sum =
            _mm512_fmadd_ps(squares_left, n_right, _mm512_mul_ps(squares_right, n_left));
        const __mmask16 is_cut = _mm512_mask_cmp_ps_mask(static_cast<__mmask16>(set_), n_right,
                                                         _mm512_setzero_ps(), _CMP_GT_OQ);
        return _mm512_mask_div_ps(_mm512_set1_ps(-1.0f), is_cut, sum,
                                  _mm512_mul_ps(n_left, n_right));
    }

  private:
    Rows set_;
    __m512 n_;
    std::size_t n_classes_ = 0;
    unsigned of_rows_[kMostClasses];
    float counts_[kMostClasses];
};

}  // namespace

template <>
EVERTREE_WIDE void at_most<kOwnLevel>(const std::uint64_t* keys, std::size_t n, Rows* at_most) {
    const __m512i low = _mm512_loadu_si512(keys), high = _mm512_loadu_si512(keys + 8);
    const auto all = static_cast<Rows>(first_of_16(n));
    for (std::size_t i = 0; i < n; ++i) {
        const __m512i own = _mm512_set1_epi64(static_cast<long long>(keys[i]));
        const unsigned rows = _mm512_cmple_epu64_mask(low, own) |
                              static_cast<unsigned>(_mm512_cmple_epu64_mask(high, own)) << 8;
        at_most[i] = static_cast<Rows>(rows & all);
    }
}

template <>
EVERTREE_WIDE Cut best_cut<kOwnLevel>(const Rows* at_most, std::size_t n_features, Rows set,
                                      const Classes& classes) {
    const Cuts cuts(set, classes);
    __m512 best = _mm512_set1_ps(-1.0f);  // by row, and the first feature where it is
    __m512i feature = _mm512_set1_epi32(-1);
    for (std::size_t f = 0; f < n_features; ++f) {
        const __m512 own = cuts.purity(cuts.left(at_most + f * kMostRows));
        const __mmask16 is_better = _mm512_cmp_ps_mask(own, best, _CMP_GT_OQ);
        best = _mm512_mask_mov_ps(best, is_better, own);
        feature = _mm512_mask_mov_epi32(feature, is_better, _mm512_set1_epi32(static_cast<int>(f)));
    }
    const float largest = _mm512_reduce_max_ps(best);
    if (largest < 0.0f) return {};
    __mmask16 rows = _mm512_cmp_ps_mask(best, _mm512_set1_ps(largest), _CMP_EQ_OQ);
    const std::uint32_t first = _mm512_mask_reduce_min_epu32(rows, feature);
    rows = _mm512_mask_cmpeq_epi32_mask(rows, feature, _mm512_set1_epi32(static_cast<int>(first)));
    const __m512i n_left = count_bits(cuts.left(at_most + first * kMostRows));
    const std::uint32_t fewest = _mm512_mask_reduce_min_epu32(rows, n_left);
    rows = _mm512_mask_cmpeq_epi32_mask(rows, n_left, _mm512_set1_epi32(static_cast<int>(fewest)));
    return {first, static_cast<std::uint32_t>(std::countr_zero(unsigned{rows})), true};
}

}  // namespace evertree::wide::handful::avx512

#endif
