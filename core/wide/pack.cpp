#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "../packing.hpp"
#include "avx512/avx512.hpp"
#include "wide.hpp"

namespace evertree::wide {

namespace {

template <Form kForm>
using CodeOf =
    std::conditional_t<bytes_of(kForm) <= 2,
                       std::conditional_t<bytes_of(kForm) == 1, std::uint8_t, std::uint16_t>,
                       std::conditional_t<bytes_of(kForm) == 4, std::uint32_t, std::uint64_t>>;

// Does what is told with the form as a constant.
template <typename Do>
bool with(Form form, Do do_this) {
    switch (form) {
        case Form::byte:
            return do_this.template operator()<Form::byte>();
        case Form::rate:
            return do_this.template operator()<Form::rate>();
        case Form::rate_single:
            return do_this.template operator()<Form::rate_single>();
        case Form::half:
            return do_this.template operator()<Form::half>();
        case Form::cents:
            return do_this.template operator()<Form::cents>();
        case Form::cents_single:
            return do_this.template operator()<Form::cents_single>();
        case Form::single:
            return do_this.template operator()<Form::single>();
        default:
            return do_this.template operator()<Form::full>();
    }
}

}  // namespace

namespace plain {

template <Form kForm>
bool pack(const double* x, const std::uint32_t* features, std::size_t n, std::byte* out) {
    using Code = CodeOf<kForm>;
    bool fit = true;
    for (std::size_t i = 0; i < n; ++i) {
        const double value = x[features[i]];
        const bool own_fits = fits(value, kForm);
        const auto code = static_cast<Code>(own_fits ? code_of(value, kForm) : 0);
        std::memcpy(out + i * sizeof code, &code, sizeof code);
        fit &= own_fits;
    }
    return fit;
}

// All but the two widest forms.
template <Form kForm>
    requires(bytes_of(kForm) <= 2)
bool pack(const double* x, const std::uint32_t* features, std::size_t n, std::byte* out) {
    using Code = CodeOf<kForm>;
    constexpr Scale scale = scale_of(kForm);
    bool fit = true;
    for (std::size_t i = 0; i < n; ++i) {
        const double value = x[features[i]], step = scale.nearest(value);
        const bool missing = is_missing(value);
        const int code =
            missing ? std::numeric_limits<Code>::max() : static_cast<int>(step - scale.first);
        const auto narrow = static_cast<Code>(code);
        std::memcpy(out + i * sizeof narrow, &narrow, sizeof narrow);
        fit &= missing || scale.value(step) == value;
    }
    return fit;
}

}  // namespace plain

#ifdef EVERTREE_AVX512

namespace {

// Eight values of a row, and which of them are missing.
struct Values {
    __m512d value;
    __mmask8 lanes, missing;
};
EVERTREE_WIDE inline Values values_of(const double* x, const std::uint32_t* features,
                                      std::size_t n) {
    const __mmask8 lanes = first_of_8(n);
    const std::size_t n_here = std::min<std::size_t>(n, 8);
    __m512d value;
    if (features[n_here - 1] - features[0] == n_here - 1) {  // they are in ascending order
        value = _mm512_maskz_loadu_pd(lanes, x + features[0]);
    } else {
        const __m256i which = _mm256_maskz_loadu_epi32(lanes, features);
        value = _mm512_mask_i32gather_pd(_mm512_setzero_pd(), lanes, which, x, 8);
    }
    value = _mm512_add_pd(value, _mm512_setzero_pd());  // there is one zero only
    return {value, lanes, _mm512_cmp_pd_mask(value, value, _CMP_UNORD_Q)};
}

EVERTREE_WIDE inline __m512i sort_keys(__m512i bits) {
    const __m512i sign = _mm512_set1_epi64(static_cast<long long>(std::uint64_t{1} << 63));
    return _mm512_xor_si512(bits, _mm512_or_si512(_mm512_srai_epi64(bits, 63), sign));
}

EVERTREE_WIDE inline __m256i sort_keys(__m256i bits) {
    const __m256i sign = _mm256_set1_epi32(static_cast<int>(0x80000000u));
    return _mm256_xor_si256(bits, _mm256_or_si256(_mm256_srai_epi32(bits, 31), sign));
}

// Values at equal distances: how many steps they are above the first, and whether that is less than
// the code of what is missing.
template <Form kForm>
EVERTREE_WIDE bool pack_steps(const double* x, const std::uint32_t* features, std::size_t n,
                              std::byte* out) {
    constexpr Scale scale = scale_of(kForm);
    constexpr bool is_byte = bytes_of(kForm) == 1;
    const __m256i missing_codes = _mm256_set1_epi32(is_byte ? 0xff : 0xffff);
    const __m256i first = _mm256_set1_epi32(static_cast<int>(scale.first));
    const __m512d per_one = _mm512_set1_pd(scale.per_one);
    int fit = 0xff;
    for (std::size_t i = 0; i < n; i += 8) {
        const Values v = values_of(x, features + i, n - i);
        __m256i step;
        __m512d back;
        if constexpr (scale.per_one == 1.0) {
            step = _mm512_cvttpd_epi32(v.value);
            back = _mm512_cvtepi32_pd(step);
        } else {
            step = _mm512_cvtpd_epi32(_mm512_mul_pd(v.value, per_one));
            back = _mm512_div_pd(_mm512_cvtepi32_pd(step), per_one);
        }
        if constexpr (scale.as_float) back = _mm512_cvtps_pd(_mm512_cvtpd_ps(back));
        const __m256i code = _mm256_sub_epi32(step, first);
        const int same = _mm512_cmp_pd_mask(back, v.value, _CMP_EQ_OQ);
        fit &= (same & _mm256_cmplt_epu32_mask(code, missing_codes)) | v.missing;
        const __m256i codes = _mm256_mask_mov_epi32(code, v.missing, missing_codes);
        if constexpr (is_byte) {
            _mm256_mask_cvtepi32_storeu_epi8(out + i, v.lanes, codes);
        } else {
            _mm256_mask_cvtepi32_storeu_epi16(out + 2 * i, v.lanes, codes);
        }
    }
    return fit == 0xff;
}

EVERTREE_WIDE bool pack_singles(const double* x, const std::uint32_t* features, std::size_t n,
                                std::byte* out) {
    int fit = 0xff;
    for (std::size_t i = 0; i < n; i += 8) {
        const Values v = values_of(x, features + i, n - i);
        const __m256 narrow = _mm512_cvtpd_ps(v.value);
        fit &= _mm512_cmp_pd_mask(_mm512_cvtps_pd(narrow), v.value, _CMP_EQ_OQ) | v.missing;
        const __m256i codes = _mm256_mask_mov_epi32(sort_keys(_mm256_castps_si256(narrow)),
                                                    v.missing, _mm256_set1_epi32(-1));
        _mm256_mask_storeu_epi32(out + 4 * i, v.lanes, codes);
    }
    return fit == 0xff;
}

EVERTREE_WIDE void pack_fulls(const double* x, const std::uint32_t* features, std::size_t n,
                              std::byte* out) {
    for (std::size_t i = 0; i < n; i += 8) {
        const Values v = values_of(x, features + i, n - i);
        const __m512d value = _mm512_mask_mov_pd(v.value, v.missing, _mm512_set1_pd(kMissing));
        _mm512_mask_storeu_epi64(out + 8 * i, v.lanes, sort_keys(_mm512_castpd_si512(value)));
    }
}

template <Form kForm>
bool pack_avx512(const double* x, const std::uint32_t* features, std::size_t n, std::byte* out) {
    if constexpr (kForm == Form::single) return pack_singles(x, features, n, out);
    if constexpr (kForm == Form::full) {
        pack_fulls(x, features, n, out);
        return true;
    }
    if constexpr (bytes_of(kForm) <= 2) return pack_steps<kForm>(x, features, n, out);
}

}  // namespace

#endif

bool pack(const double* x, const std::uint32_t* features, std::size_t n, Form form,
          std::byte* out) {
    return with(form, [&]<Form kForm>() {
#ifdef EVERTREE_AVX512
        if (level >= Level::avx512) return pack_avx512<kForm>(x, features, n, out);
#endif
        return plain::pack<kForm>(x, features, n, out);
    });
}

}  // namespace evertree::wide
