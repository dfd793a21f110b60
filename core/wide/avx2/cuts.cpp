#include "avx2.hpp"

#ifdef EVERTREE_AVX2

namespace evertree::wide::avx2 {

namespace {

EVERTREE_WITH_AVX2 inline __m256 count_up_to(float before, std::uint32_t own) {
    return _mm256_add_ps(_mm256_set1_ps(before), _mm256_cvtepi32_ps(widened(kCountsUpTo.of[own])));
}

// The better of two scores, where the second one is that of a cut between different values.
EVERTREE_WITH_AVX2 inline __m256 better(__m256 best, __m256 score, const std::uint32_t* next) {
    const __m256 is_cut = _mm256_castsi256_ps(load(next));
    return _mm256_blendv_ps(best, _mm256_max_ps(best, score), is_cut);
}

EVERTREE_WITH_AVX2 inline __m256 squared(__m256 v) { return _mm256_mul_ps(v, v); }

}  // namespace

EVERTREE_WITH_AVX2 TwoClassScores best_score(const TwoClassRows& rows, const std::uint32_t* list) {
    const __m256 ones = _mm256_set1_ps(static_cast<float>(rows.ones));
    __m256 best = _mm256_set1_ps(-1.0f);
    TwoClassScores way;
    for (; way.cut + 8 < rows.n; way.cut += 8) {
        const std::uint32_t i = way.cut;
        const std::uint32_t is_one = signs(_mm256_slli_epi32(load(list + i), 1));
        const __m256i on_left = _mm256_add_epi32(_mm256_set1_epi32(static_cast<int>(way.ones_left)),
                                                 widened(kCountsUpTo.of[is_one]));
        const __m256 left = _mm256_cvtepi32_ps(on_left), right = _mm256_sub_ps(ones, left);
        const __m256 of_left = _mm256_mul_ps(squared(left), _mm256_loadu_ps(rows.inverse + i));
        const __m256 of_right =
            _mm256_mul_ps(squared(right), _mm256_loadu_ps(rows.inverse_back + i));
        best = better(best, _mm256_add_ps(of_left, of_right), list + i + 1);
        way.ones_left += count_bits(is_one);
    }
    way.best = largest_lane(best);
    return way;
}

EVERTREE_WITH_AVX2 ManyClassScores best_score(const ManyClassRows& rows,
                                              const std::uint32_t* list) {
    __m256 best = _mm256_set1_ps(-1.0f);
    ManyClassScores way;
    for (; way.cut + 8 < rows.n; way.cut += 8) {
        const std::uint32_t i = way.cut;
        alignas(32) std::uint32_t labels[8];
        for (std::uint32_t j = 0; j < 8; ++j) {
            labels[j] = rows.class_of_row[list[i + j] & element::kRow];
        }
        const __m256i label = load(labels);
        __m256 squares_left = _mm256_setzero_ps(), squares_right = squares_left;
        for (std::size_t c = 0; c < rows.n_classes; ++c) {
            const std::uint32_t own = signs(
                _mm256_cmpeq_epi32(label, _mm256_set1_epi32(static_cast<int>(rows.classes[c]))));
            const __m256 left = count_up_to(way.left[c], own);
            const __m256 right = _mm256_sub_ps(_mm256_set1_ps(rows.totals[c]), left);
            way.left[c] += static_cast<float>(count_bits(own));
            squares_left = _mm256_add_ps(squares_left, squared(left));
            squares_right = _mm256_add_ps(squares_right, squared(right));
        }
        const __m256 score =
            _mm256_add_ps(_mm256_mul_ps(squares_left, _mm256_loadu_ps(rows.inverse + i)),
                          _mm256_mul_ps(squares_right, _mm256_loadu_ps(rows.inverse_back + i)));
        best = better(best, score, list + i + 1);
    }
    way.best = largest_lane(best);
    return way;
}

}  // namespace evertree::wide::avx2

#endif
