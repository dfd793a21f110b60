#include <algorithm>
#include <bit>

#include "avx2/avx2.hpp"
#include "avx512/avx512.hpp"
#include "wide.hpp"

namespace evertree::wide {

namespace plain {

void find_bins(const std::uint64_t* keys, std::size_t n, const Bounds& bounds,
               std::uint16_t* bins) {
    for (std::size_t i = 0; i < n; ++i) {
        const std::uint32_t* const above =
            std::upper_bound(bounds.upper, bounds.upper + bounds.n, bounds.upper_bits(keys[i]));
        const std::ptrdiff_t bin = std::max<std::ptrdiff_t>(above - bounds.upper - 1, 0);
        bins[i] = static_cast<std::uint16_t>(bin);
    }
}

float score(const CountedRows& rows, std::uint32_t left, std::uint32_t ones_left) {
    const auto square = [](std::uint32_t ones) {
        return static_cast<float>(ones) * static_cast<float>(ones);
    };
    const std::uint32_t right = rows.n - left;
    return (left == 0 ? 0.0f : square(ones_left) / static_cast<float>(left)) +
           (right == 0 ? 0.0f : square(rows.ones - ones_left) / static_cast<float>(right));
}

CountScores score_counts(const CountedRows& rows, float* cuts, float* within) {
    CountScores best;
    std::uint32_t left = 0, ones_left = 0;
    for (std::size_t v = 0; v < rows.n_values; ++v) {
        const std::uint32_t zeros = rows.counts[2 * v], ones = rows.counts[2 * v + 1];
        float cut = -1.0f, inside = -1.0f;
        if (rows.several != nullptr && rows.several[v] != 0 && zeros + ones > 1) {
            inside = std::max(score(rows, left + zeros, ones_left),
                              score(rows, left + ones, ones_left + ones));
        }
        left += zeros + ones;
        ones_left += ones;
        if (zeros + ones > 0 && left < rows.n) cut = score(rows, left, ones_left);
        if (cuts != nullptr) {
            cuts[v] = cut;
            within[v] = inside;
        }
        best.cut = std::max(best.cut, cut);
        best.within = std::max(best.within, inside);
    }
    return best;
}

}  // namespace plain

#ifdef EVERTREE_AVX512

namespace {

// The bounds as a search by halves asks for them: after `step` answers, which have led to one of
// 2^step ranges, for the bound in its middle. All of them stay in registers.
class Halves {
  public:
    EVERTREE_WIDE explicit Halves(const std::uint32_t* bounds) {
        alignas(64) std::uint32_t middle[kBins] = {};
        for (std::size_t ranges = 1; ranges < kBins; ranges *= 2) {
            const std::size_t width = kBins / ranges;
            std::uint32_t* const own = ranges < 32 ? middle : middle + ranges;
            for (std::size_t r = 0; r < ranges; ++r) own[r] = bounds[r * width + width / 2];
            if (ranges < 32) few_[std::countr_zero(ranges)] = _mm512_load_si512(own);
        }
        for (std::size_t i = 0; i < 14; ++i) many_[i] = _mm512_load_si512(middle + 32 + 16 * i);
    }
    // For sixteen keys, how many of all bounds but the first are not above each.
    EVERTREE_WIDE __m512i count_up_to(__m512i keys) const {
        __m512i range = _mm512_setzero_si512();
        for (int step = 0; step < 5; ++step) {
            range = half(range, keys, _mm512_permutexvar_epi32(range, few_[step]));
        }
        range = half(range, keys, at32(range, 0));
        range = half(range, keys, at64(range, 2));
        const __mmask16 upper = _mm512_test_epi32_mask(range, _mm512_set1_epi32(64));
        return half(range, keys, _mm512_mask_blend_epi32(upper, at64(range, 6), at64(range, 10)));
    }

  private:
    EVERTREE_WIDE static __m512i half(__m512i range, __m512i keys, __m512i middle) {
        const __mmask16 above = _mm512_cmple_epu32_mask(middle, keys);
        const __m512i twice = _mm512_add_epi32(range, range);
        return _mm512_mask_add_epi32(twice, above, twice, _mm512_set1_epi32(1));
    }
    EVERTREE_WIDE __m512i at32(__m512i range, int from) const {
        return _mm512_permutex2var_epi32(many_[from], range, many_[from + 1]);
    }
    EVERTREE_WIDE __m512i at64(__m512i range, int from) const {
        const __mmask16 upper = _mm512_test_epi32_mask(range, _mm512_set1_epi32(32));
        return _mm512_mask_blend_epi32(upper, at32(range, from), at32(range, from + 2));
    }

    __m512i few_[5], many_[14];
};

EVERTREE_WIDE void find_bins_avx512(const std::uint64_t* keys, std::size_t n, const Bounds& bounds,
                                    std::uint16_t* bins) {
    const Halves halves(bounds.upper);
    const __m128i shift = _mm_cvtsi32_si128(bounds.shift);
    const __m512i last = _mm512_set1_epi32(static_cast<int>(bounds.n - 1));
    for (std::size_t i = 0; i < n; i += 16) {
        const std::size_t count = n - i;
        const __m512i low = _mm512_maskz_loadu_epi64(first_of_8(count), keys + i);
        const __m512i high =
            _mm512_maskz_loadu_epi64(first_of_8(count > 8 ? count - 8 : 0), keys + i + 8);
        const __m512i upper_bits = _mm512_inserti64x4(
            _mm512_castsi256_si512(_mm512_cvtepi64_epi32(_mm512_srl_epi64(low, shift))),
            _mm512_cvtepi64_epi32(_mm512_srl_epi64(high, shift)), 1);
        const __m512i found = _mm512_min_epu32(halves.count_up_to(upper_bits), last);
        _mm256_mask_storeu_epi16(bins + i, first_of_16(count), _mm512_cvtepi32_epi16(found));
    }
}

// Sums from the first lane up to each.
EVERTREE_WIDE inline __m512i sums(__m512i v) {
    const __m512i zero = _mm512_setzero_si512();
    v = _mm512_add_epi32(v, _mm512_alignr_epi32(v, zero, 15));
    v = _mm512_add_epi32(v, _mm512_alignr_epi32(v, zero, 14));
    v = _mm512_add_epi32(v, _mm512_alignr_epi32(v, zero, 12));
    return _mm512_add_epi32(v, _mm512_alignr_epi32(v, zero, 8));
}

// A side that is empty scores nothing.
EVERTREE_WIDE inline __m512 score_of_side(__m512i n, __m512i ones) {
    const __m512 some = _mm512_cvtepi32_ps(ones);
    return _mm512_maskz_div_ps(_mm512_test_epi32_mask(n, n), _mm512_mul_ps(some, some),
                               _mm512_cvtepi32_ps(n));
}

EVERTREE_WIDE inline __m512 score_of_cut(const CountedRows& rows, __m512i left, __m512i ones_left) {
    const __m512i n = _mm512_set1_epi32(static_cast<int>(rows.n));
    const __m512i ones = _mm512_set1_epi32(static_cast<int>(rows.ones));
    return _mm512_add_ps(
        score_of_side(left, ones_left),
        score_of_side(_mm512_sub_epi32(n, left), _mm512_sub_epi32(ones, ones_left)));
}

EVERTREE_WIDE CountScores score_counts_avx512(const CountedRows& rows, float* cuts, float* within) {
    const __m512i even =
        _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    const __m512i last = _mm512_set1_epi32(15), n = _mm512_set1_epi32(static_cast<int>(rows.n));
    const __m512 nothing = _mm512_set1_ps(-1.0f);
    __m512i left_before = _mm512_setzero_si512(), ones_before = left_before;
    __m512 best_cut = nothing, best_within = nothing;
    for (std::size_t v = 0; v < rows.n_values; v += 16) {
        const std::size_t count = rows.n_values - v;
        const __mmask16 lanes = first_of_16(count);
        const __m512i a = _mm512_maskz_loadu_epi32(first_of_16(2 * count), rows.counts + 2 * v);
        const __m512i b = _mm512_maskz_loadu_epi32(first_of_16(count > 8 ? 2 * count - 16 : 0),
                                                   rows.counts + 2 * v + 16);
        const __m512i zeros = _mm512_permutex2var_epi32(a, even, b);
        const __m512i ones = _mm512_permutex2var_epi32(a, odd, b);
        const __m512i all = _mm512_add_epi32(zeros, ones);
        const __m512i left = _mm512_add_epi32(left_before, sums(all));
        const __m512i ones_left = _mm512_add_epi32(ones_before, sums(ones));
        const __mmask16 is_cut =
            _mm512_mask_cmplt_epu32_mask(_mm512_test_epi32_mask(all, all), left, n);
        const __m512 cut = _mm512_mask_mov_ps(nothing, is_cut, score_of_cut(rows, left, ones_left));
        best_cut = _mm512_max_ps(best_cut, cut);
        __m512 inside = nothing;
        if (rows.several != nullptr) {
            const __m128i several = _mm_maskz_loadu_epi8(lanes, rows.several + v);
            const __mmask16 is_several = _mm512_mask_cmpgt_epu32_mask(
                _mm_test_epi8_mask(several, several), all, _mm512_set1_epi32(1));
            // Before the value, and of it all zeros or all ones.
            const __m512i left_zeros = _mm512_sub_epi32(left, ones);
            const __m512i left_ones = _mm512_sub_epi32(left, zeros);
            const __m512 best =
                _mm512_max_ps(score_of_cut(rows, left_zeros, _mm512_sub_epi32(ones_left, ones)),
                              score_of_cut(rows, left_ones, ones_left));
            inside = _mm512_mask_mov_ps(nothing, is_several, best);
            best_within = _mm512_max_ps(best_within, inside);
        }
        if (cuts != nullptr) {
            _mm512_mask_storeu_ps(cuts + v, lanes, cut);
            _mm512_mask_storeu_ps(within + v, lanes, inside);
        }
        left_before = _mm512_permutexvar_epi32(last, left);
        ones_before = _mm512_permutexvar_epi32(last, ones_left);
    }
    return {_mm512_reduce_max_ps(best_cut), _mm512_reduce_max_ps(best_within)};
}

}  // namespace

#endif

void find_bins(const std::uint64_t* keys, std::size_t n, const Bounds& bounds,
               std::uint16_t* bins) {
#ifdef EVERTREE_AVX512
    if (level >= Level::avx512) return find_bins_avx512(keys, n, bounds, bins);
    if (level == Level::avx2) {
        const std::size_t done = avx2::find_bins(keys, n, bounds, bins);
        return plain::find_bins(keys + done, n - done, bounds, bins + done);
    }
#endif
    plain::find_bins(keys, n, bounds, bins);
}

CountScores score_counts(const CountedRows& rows, float* cuts, float* within) {
#ifdef EVERTREE_AVX512
    if (level >= Level::avx512) return score_counts_avx512(rows, cuts, within);
    if (level == Level::avx2) return avx2::score_counts(rows, cuts, within);
#endif
    return plain::score_counts(rows, cuts, within);
}

}  // namespace evertree::wide
