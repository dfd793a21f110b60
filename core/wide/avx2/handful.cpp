#include "avx2.hpp"

#ifdef EVERTREE_AVX2

namespace evertree::wide::handful::avx2 {

namespace {

using wide::avx2::count_bits;
using wide::avx2::load;
using wide::avx2::store;

// Keys as numbers with a sign, in the same order.
EVERTREE_WITH_AVX2 inline __m256i with_sign(__m256i keys) {
    const auto sign = static_cast<long long>(std::uint64_t{1} << 63);
    return _mm256_xor_si256(keys, _mm256_set1_epi64x(sign));
}

// How many bits are set in each of sixteen sets: by halves of bytes.
EVERTREE_WITH_AVX2 inline __m256i counts(__m256i sets) {
    const __m256i of_half = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1,
                                             1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
    const __m256i low = _mm256_set1_epi8(15);
    const __m256i lower = _mm256_shuffle_epi8(of_half, _mm256_and_si256(sets, low));
    const __m256i upper =
        _mm256_shuffle_epi8(of_half, _mm256_and_si256(_mm256_srli_epi16(sets, 4), low));
    return _mm256_maddubs_epi16(_mm256_add_epi8(lower, upper), _mm256_set1_epi8(1));
}

EVERTREE_WITH_AVX2 inline __m256i all_lanes(std::uint32_t value) {
    return _mm256_set1_epi16(static_cast<short>(value));
}

struct EightBest {
    __m256 purity;  // by row, and the first feature where it is
    __m256i feature;

    EVERTREE_WITH_AVX2 EightBest()
        : purity(_mm256_set1_ps(-1.0f)), feature(_mm256_set1_epi32(-1)) {}
    EVERTREE_WITH_AVX2 void look(__m128i sum, __m128i sides, __m128i is_cut, __m256i own_feature) {
        const __m256 quotient = _mm256_div_ps(_mm256_cvtepi32_ps(_mm256_cvtepu16_epi32(sum)),
                                              _mm256_cvtepi32_ps(_mm256_cvtepu16_epi32(sides)));
        const __m256 cut = _mm256_castsi256_ps(_mm256_cvtepi16_epi32(is_cut));
        const __m256 is_better = _mm256_and_ps(cut, _mm256_cmp_ps(quotient, purity, _CMP_GT_OQ));
        purity = _mm256_blendv_ps(purity, quotient, is_better);
        feature = _mm256_blendv_epi8(feature, own_feature, _mm256_castps_si256(is_better));
    }
};

// The best of all rows; of equal ones the first feature, then the fewest on the left.
EVERTREE_WITH_AVX2 Cut best_of(const EightBest (&best)[2], const Rows* at_most, Rows set) {
    alignas(32) float purity[kMostRows];
    alignas(32) std::uint32_t feature[kMostRows];
    for (std::size_t half = 0; half < 2; ++half) {
        _mm256_store_ps(purity + 8 * half, best[half].purity);
        store(feature + 8 * half, best[half].feature);
    }
    Cut cut;
    std::uint32_t fewest = 0;
    for (std::uint32_t row = 0; row < kMostRows; ++row) {
        if (purity[row] < 0.0f) continue;
        const std::uint32_t n_left =
            count_bits(at_most[feature[row] * kMostRows + row] & std::uint32_t{set});
        const bool is_lower =
            feature[row] < cut.feature || (feature[row] == cut.feature && n_left < fewest);
        const bool ties = purity[row] == purity[cut.row] && is_lower;
        if (cut.found && purity[row] <= purity[cut.row] && !ties) continue;
        cut = {feature[row], row, true};
        fewest = n_left;
    }
    return cut;
}

}  // namespace

EVERTREE_WITH_AVX2 void at_most(const std::uint64_t* keys, std::size_t n, Rows* at_most) {
    const auto all = static_cast<unsigned>((std::uint32_t{1} << n) - 1);
    for (std::size_t i = 0; i < n; ++i) {
        const __m256i own = with_sign(_mm256_set1_epi64x(static_cast<long long>(keys[i])));
        unsigned above = 0;
        for (std::size_t j = 0; j < n; j += 4) {
            const __m256i four = _mm256_cmpgt_epi64(with_sign(load(keys + j)), own);
            above |= static_cast<unsigned>(_mm256_movemask_pd(_mm256_castsi256_pd(four))) << j;
        }
        at_most[i] = static_cast<Rows>(all & ~above);
    }
}

EVERTREE_WITH_AVX2 Cut best_cut(const Rows* at_most, std::size_t n_features, Rows set,
                                const Classes& classes) {
    const std::uint32_t n = count_bits(set);
    const __m256i bit_of_row = _mm256_setr_epi16(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048,
                                                 4096, 8192, 16384, static_cast<short>(0x8000));
    const __m256i in_set =
        _mm256_cmpeq_epi16(_mm256_and_si256(bit_of_row, all_lanes(set)), bit_of_row);
    EightBest best[2];
    for (std::size_t f = 0; f < n_features; ++f) {
        const __m256i left = _mm256_and_si256(load(at_most + f * kMostRows), all_lanes(set));
        const __m256i n_left = counts(left), n_right = _mm256_sub_epi16(all_lanes(n), n_left);
        __m256i squares_left = _mm256_setzero_si256(), squares_right = squares_left;
        for (std::size_t c = 0; c < classes.n; ++c) {
            const std::uint32_t of_class = classes.of_rows[c] & set;
            const __m256i on_left = counts(_mm256_and_si256(left, all_lanes(of_class)));
            const std::uint32_t n_class = count_bits(of_class);
            const __m256i on_right = _mm256_sub_epi16(all_lanes(n_class), on_left);
            squares_left = _mm256_add_epi16(squares_left, _mm256_mullo_epi16(on_left, on_left));
            squares_right = _mm256_add_epi16(squares_right, _mm256_mullo_epi16(on_right, on_right));
        }
        const __m256i sum = _mm256_add_epi16(_mm256_mullo_epi16(squares_left, n_right),
                                             _mm256_mullo_epi16(squares_right, n_left));
        const __m256i sides = _mm256_mullo_epi16(n_left, n_right);
        const __m256i is_cut =
            _mm256_and_si256(in_set, _mm256_cmpgt_epi16(n_right, _mm256_setzero_si256()));
        const __m256i feature = _mm256_set1_epi32(static_cast<int>(f));
        best[0].look(_mm256_castsi256_si128(sum), _mm256_castsi256_si128(sides),
                     _mm256_castsi256_si128(is_cut), feature);
        best[1].look(_mm256_extracti128_si256(sum, 1), _mm256_extracti128_si256(sides, 1),
                     _mm256_extracti128_si256(is_cut, 1), feature);
    }
    return best_of(best, at_most, set);
}

}  // namespace evertree::wide::handful::avx2

#endif
