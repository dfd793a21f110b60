#include <algorithm>

#include "avx2/avx2.hpp"
#include "avx512/avx512.hpp"
#include "progress.hpp"
#include "wide.hpp"

namespace evertree::wide {

using element::kClassOne;
using element::kNewValue;
using element::kRow;

namespace {

float score(const TwoClassRows& rows, std::uint32_t i, std::uint32_t ones_left) {
    const auto left = static_cast<float>(ones_left);
    const float right = static_cast<float>(rows.ones) - left;
    return left * left * rows.inverse[i] + right * right * rows.inverse_back[i];
}

}  // namespace

namespace plain {

float best_score(const TwoClassRows& rows, const std::uint32_t* list, TwoClassScores so_far) {
    float best = so_far.best;
    std::uint32_t ones = so_far.ones_left;
    for (std::uint32_t i = so_far.cut; i + 1 < rows.n; ++i) {
        ones += (list[i] & kClassOne) != 0 ? 1 : 0;
        const bool is_cut = (list[i + 1] & kNewValue) != 0;
        const float here = score(rows, i, ones);
        best = is_cut && here > best ? here : best;
    }
    return best;
}

std::uint32_t cuts_that_reach(const TwoClassRows& rows, const std::uint32_t* list, float to_reach,
                              std::uint32_t* cut, std::uint32_t* ones_left) {
    std::uint32_t ones = 0, count = 0;
    for (std::uint32_t i = 0; i + 1 < rows.n; ++i) {
        ones += (list[i] & kClassOne) != 0 ? 1 : 0;
        cut[count] = i;
        ones_left[count] = ones;
        const bool is_cut = (list[i + 1] & kNewValue) != 0;
        count += is_cut && score(rows, i, ones) >= to_reach ? 1 : 0;
    }
    return count;
}

float best_score(const ManyClassRows& rows, const std::uint32_t* list, ManyClassScores so_far) {
    float best = so_far.best, *const left = so_far.left;
    for (std::uint32_t i = so_far.cut; i + 1 < rows.n; ++i) {
        const std::uint32_t label = rows.class_of_row[list[i] & kRow];
        float on_left = 0.0f, on_right = 0.0f;
        for (std::size_t c = 0; c < rows.n_classes; ++c) {
            left[c] += rows.classes[c] == label ? 1.0f : 0.0f;
            const float right = rows.totals[c] - left[c];
            on_left += left[c] * left[c];
            on_right += right * right;
        }
        const bool is_cut = (list[i + 1] & kNewValue) != 0;
        const float here = on_left * rows.inverse[i] + on_right * rows.inverse_back[i];
        best = is_cut && here > best ? here : best;
    }
    return best;
}

std::uint64_t which_count(const std::uint32_t* counts, std::size_t n) {
    std::uint64_t found = 0;
    for (std::size_t i = 0; i < n; ++i) found |= std::uint64_t{counts[i] != 0} << i;
    return found;
}

}  // namespace plain

#ifdef EVERTREE_AVX512

namespace {

EVERTREE_WIDE std::uint64_t which_count_avx512(const std::uint32_t* counts, std::size_t n) {
    std::uint64_t found = 0;
    for (std::size_t i = 0; i < n; i += 16) {
        const __mmask16 used = first_of_16(n - i);
        const __m512i some = _mm512_maskz_loadu_epi32(used, counts + i);
        found |= std::uint64_t{_mm512_test_epi32_mask(some, some)} << i;
    }
    return found;
}

}  // namespace

#endif

template <typename Rows>
void score_each(const Rows& rows, const std::uint32_t* const* lists, std::size_t n_lists,
                float* scores) {
    for (std::size_t l = 0; l < n_lists; ++l) {
#ifdef EVERTREE_AVX2
        if (level == Level::avx2) {
            scores[l] = plain::best_score(rows, lists[l], avx2::best_score(rows, lists[l]));
            continue;
        }
#endif
        scores[l] = plain::best_score(rows, lists[l], {});
    }
}

void best_scores(const TwoClassRows& rows, const std::uint32_t* const* lists, std::size_t n_lists,
                 float* scores) {
#ifdef EVERTREE_AVX512
    if (level == Level::avx512_icl)
        return avx512::best_scores<Level::avx512_icl>(rows, lists, n_lists, scores);
    if (level == Level::avx512)
        return avx512::best_scores<Level::avx512>(rows, lists, n_lists, scores);
#endif
    score_each(rows, lists, n_lists, scores);
}

void best_scores(const ManyClassRows& rows, const std::uint32_t* const* lists, std::size_t n_lists,
                 float* scores) {
#ifdef EVERTREE_AVX512
    if (level == Level::avx512_icl)
        return avx512::best_scores<Level::avx512_icl>(rows, lists, n_lists, scores);
    if (level == Level::avx512)
        return avx512::best_scores<Level::avx512>(rows, lists, n_lists, scores);
#endif
    score_each(rows, lists, n_lists, scores);
}

std::uint32_t cuts_that_reach(const TwoClassRows& rows, const std::uint32_t* list, float score,
                              std::uint32_t* cut, std::uint32_t* ones_left) {
#ifdef EVERTREE_AVX512
    if (level == Level::avx512_icl)
        return avx512::cuts_that_reach<Level::avx512_icl>(rows, list, score, cut, ones_left);
    if (level == Level::avx512)
        return avx512::cuts_that_reach<Level::avx512>(rows, list, score, cut, ones_left);
#endif
    return plain::cuts_that_reach(rows, list, score, cut, ones_left);
}

std::uint64_t which_count(const std::uint32_t* counts, std::size_t n) {
#ifdef EVERTREE_AVX512
    if (level >= Level::avx512) return which_count_avx512(counts, n);
#endif
    return plain::which_count(counts, n);
}

}  // namespace evertree::wide
