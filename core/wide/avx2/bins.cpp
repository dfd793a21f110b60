#include <algorithm>

#include "avx2.hpp"

#ifdef EVERTREE_AVX2

namespace evertree::wide::avx2 {

namespace {

EVERTREE_WITH_AVX2 inline __m256i signed_of(__m256i words) {
    return _mm256_xor_si256(words, _mm256_set1_epi32(static_cast<int>(0x80000000u)));
}

// Eight bounds side by side are a range. Its number is searched for by halves, for eight keys at
// once; within it, a key is compared with all bounds.
class Ranges {
  public:
    static constexpr std::size_t kWidth = 8, kCount = kBins / kWidth;

    EVERTREE_WITH_AVX2 explicit Ranges(const std::uint32_t* bounds) {
        for (std::size_t at = 0; at < kBins; at += 8) {
            store(bounds_ + at, signed_of(load(bounds + at)));
        }
        // After `step` answers, which have led to one of 2^step halves: the bound in its middle.
        std::int32_t middle[8];
        for (std::size_t step = 0; step < 4; ++step) {
            for (std::size_t h = 0; h < 8; ++h) middle[h] = middle_of(h, step);
            few_[step] = load(middle);
        }
        for (std::size_t h = 0; h < 16; ++h) {
            middle[h % 8] = middle_of(h, 4);
            if (h % 8 == 7) many_[h / 8] = load(middle);
        }
    }
    // The last bin that does not begin above each of eight keys, or the first.
    EVERTREE_WITH_AVX2 void find(__m256i keys, std::uint32_t* bins) const {
        alignas(32) std::int32_t key[8];
        store(key, keys);
        __m256i range = _mm256_setzero_si256();
        for (const __m256i& middles : few_) {
            range = half(range, keys, _mm256_permutevar8x32_epi32(middles, range));
        }
        const __m256 low = _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(many_[0], range));
        const __m256 high = _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(many_[1], range));
        const __m256 is_high = _mm256_castsi256_ps(_mm256_slli_epi32(range, 28));
        range = half(range, keys, _mm256_castps_si256(_mm256_blendv_ps(low, high, is_high)));
        store(bins, _mm256_slli_epi32(range, 3));
        for (std::size_t i = 0; i < 8; ++i) {
            const __m256i is_above =
                _mm256_cmpgt_epi32(load(bounds_ + bins[i]), _mm256_set1_epi32(key[i]));
            bins[i] += 7 - count_bits(signs(is_above) & 0xfe);  // the first one does not count
        }
    }

  private:
    std::int32_t middle_of(std::size_t half, std::size_t step) const {
        const std::size_t width = kBins >> step;
        return bounds_[(half * width + width / 2) % kBins];
    }
    EVERTREE_WITH_AVX2 static __m256i half(__m256i range, __m256i keys, __m256i middle) {
        const __m256i twice_and_one =
            _mm256_sub_epi32(_mm256_add_epi32(range, range), _mm256_set1_epi32(-1));
        return _mm256_add_epi32(twice_and_one, _mm256_cmpgt_epi32(middle, keys));
    }

    alignas(32) std::int32_t bounds_[kBins];
    __m256i few_[4], many_[2];
};

// Sums from the first lane up to each.
EVERTREE_WITH_AVX2 inline __m256i sums(__m256i v) {
    v = _mm256_add_epi32(v, _mm256_slli_si256(v, 4));
    v = _mm256_add_epi32(v, _mm256_slli_si256(v, 8));
    const __m256i half = _mm256_permutevar8x32_epi32(v, _mm256_set1_epi32(3));
    return _mm256_add_epi32(v, _mm256_blend_epi32(_mm256_setzero_si256(), half, 0xf0));
}

// A side that is empty scores nothing.
EVERTREE_WITH_AVX2 inline __m256 score_of_side(__m256i n, __m256i ones) {
    const __m256 some = _mm256_cvtepi32_ps(ones);
    const __m256i is_there = _mm256_cmpgt_epi32(n, _mm256_setzero_si256());
    return _mm256_and_ps(_mm256_castsi256_ps(is_there),
                         _mm256_div_ps(_mm256_mul_ps(some, some), _mm256_cvtepi32_ps(n)));
}

// Goes through the values, eight at a time.
class CountScoring {
  public:
    EVERTREE_WITH_AVX2 explicit CountScoring(const CountedRows& rows)
        : n_(_mm256_set1_epi32(static_cast<int>(rows.n))),
          ones_(_mm256_set1_epi32(static_cast<int>(rows.ones))),
          left_before_(_mm256_setzero_si256()),
          ones_before_(left_before_),
          best_cut_(_mm256_set1_ps(-1.0f)),
          best_within_(best_cut_) {}

    EVERTREE_WITH_AVX2 void score(const std::uint32_t* counts, const std::uint8_t* several,
                                  float* cuts, float* within) {
        const __m256 a = _mm256_loadu_ps(reinterpret_cast<const float*>(counts));
        const __m256 b = _mm256_loadu_ps(reinterpret_cast<const float*>(counts + 8));
        const __m256i zeros = in_order(_mm256_shuffle_ps(a, b, 0x88));
        const __m256i ones = in_order(_mm256_shuffle_ps(a, b, 0xdd));
        const __m256i all = _mm256_add_epi32(zeros, ones);
        const __m256i left = _mm256_add_epi32(left_before_, sums(all));
        const __m256i ones_left = _mm256_add_epi32(ones_before_, sums(ones));
        const __m256i is_cut = _mm256_and_si256(_mm256_cmpgt_epi32(all, _mm256_setzero_si256()),
                                                _mm256_cmpgt_epi32(n_, left));
        const __m256 cut = where(is_cut, score_of_cut(left, ones_left));
        best_cut_ = _mm256_max_ps(best_cut_, cut);
        __m256 inside = _mm256_set1_ps(-1.0f);
        if (several != nullptr) {
            const __m256i is_several = _mm256_andnot_si256(
                _mm256_cmpeq_epi32(_mm256_cvtepu8_epi32(
                                       _mm_loadl_epi64(reinterpret_cast<const __m128i*>(several))),
                                   _mm256_setzero_si256()),
                _mm256_cmpgt_epi32(all, _mm256_set1_epi32(1)));
            // Before the value, and of it all zeros or all ones.
            const __m256 with_zeros =
                score_of_cut(_mm256_sub_epi32(left, ones), _mm256_sub_epi32(ones_left, ones));
            const __m256 with_ones = score_of_cut(_mm256_sub_epi32(left, zeros), ones_left);
            inside = where(is_several, _mm256_max_ps(with_zeros, with_ones));
            best_within_ = _mm256_max_ps(best_within_, inside);
        }
        if (cuts != nullptr) {
            _mm256_storeu_ps(cuts, cut);
            _mm256_storeu_ps(within, inside);
        }
        const __m256i last = _mm256_set1_epi32(7);
        left_before_ = _mm256_permutevar8x32_epi32(left, last);
        ones_before_ = _mm256_permutevar8x32_epi32(ones_left, last);
    }
    EVERTREE_WITH_AVX2 CountScores best() const {
        return {largest_lane(best_cut_), largest_lane(best_within_)};
    }

  private:
    EVERTREE_WITH_AVX2 static __m256i in_order(__m256 lanes) {
        return _mm256_permute4x64_epi64(_mm256_castps_si256(lanes), 0xd8);
    }
    EVERTREE_WITH_AVX2 static __m256 where(__m256i is_wanted, __m256 scores) {
        return _mm256_blendv_ps(_mm256_set1_ps(-1.0f), scores, _mm256_castsi256_ps(is_wanted));
    }
    EVERTREE_WITH_AVX2 __m256 score_of_cut(__m256i left, __m256i ones_left) const {
        return _mm256_add_ps(
            score_of_side(left, ones_left),
            score_of_side(_mm256_sub_epi32(n_, left), _mm256_sub_epi32(ones_, ones_left)));
    }

    __m256i n_, ones_, left_before_, ones_before_;
    __m256 best_cut_, best_within_;
};

}  // namespace

EVERTREE_WITH_AVX2 std::size_t find_bins(const std::uint64_t* keys, std::size_t n,
                                         const Bounds& bounds, std::uint16_t* bins) {
    const Ranges ranges(bounds.upper);
    const __m128i shift = _mm_cvtsi32_si128(bounds.shift);
    const auto last = static_cast<std::uint32_t>(bounds.n - 1);
    const std::size_t end = n / 8 * 8;
    for (std::size_t i = 0; i < end; i += 8) {
        const __m256 a = _mm256_castsi256_ps(_mm256_srl_epi64(load(keys + i), shift));
        const __m256 b = _mm256_castsi256_ps(_mm256_srl_epi64(load(keys + i + 4), shift));
        const __m256i lower_halves = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0x88));
        std::uint32_t found[8];
        ranges.find(signed_of(_mm256_permute4x64_epi64(lower_halves, 0xd8)), found);
        for (std::size_t k = 0; k < 8; ++k) {
            bins[i + k] = static_cast<std::uint16_t>(std::min(found[k], last));
        }
    }
    return end;
}

EVERTREE_WITH_AVX2 CountScores score_counts(const CountedRows& rows, float* cuts, float* within) {
    CountScoring scoring(rows);
    const auto from = [](auto* all, std::size_t v) { return all == nullptr ? nullptr : all + v; };
    const std::size_t end = rows.n_values / 8 * 8;
    for (std::size_t v = 0; v < end; v += 8) {
        scoring.score(rows.counts + 2 * v, from(rows.several, v), from(cuts, v), from(within, v));
    }
    if (const std::size_t rest = rows.n_values - end; rest > 0) {
        std::uint32_t counts[16] = {};
        std::uint8_t several[8] = {};
        float last_cuts[8], last_within[8];
        std::copy_n(rows.counts + 2 * end, 2 * rest, counts);
        if (rows.several != nullptr) std::copy_n(rows.several + end, rest, several);
        scoring.score(counts, rows.several == nullptr ? nullptr : several, last_cuts, last_within);
        if (cuts != nullptr) {
            std::copy_n(last_cuts, rest, cuts + end);
            std::copy_n(last_within, rest, within + end);
        }
    }
    return scoring.best();
}

}  // namespace evertree::wide::avx2

#endif
