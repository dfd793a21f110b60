#include "packing.hpp"

#include <algorithm>
#include <cmath>

#include "order.hpp"
#include "wide/wide.hpp"

namespace evertree {

namespace {

constexpr std::size_t kWord = 8, kLine = 64;  // bytes

std::uint32_t float_key(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    constexpr std::uint32_t sign = std::uint32_t{1} << 31;
    return (bits & sign) != 0 ? ~bits : bits | sign;
}

float float_of_key(std::uint32_t key) {
    constexpr std::uint32_t sign = std::uint32_t{1} << 31;
    return std::bit_cast<float>((key & sign) != 0 ? key & ~sign : ~key);
}

Form wider(Form form) {
    for (auto f = static_cast<std::size_t>(form) + 1; f < kForms; ++f) {
        if (has_all_of(static_cast<Form>(f), form)) return static_cast<Form>(f);
    }
    return form;
}

// Up to a line a record begins where it lies on one line, if little is lost.
std::size_t padded(std::size_t bytes) {
    const std::size_t words = (std::max<std::size_t>(bytes, 1) + kWord - 1) / kWord * kWord;
    const std::size_t aligned = std::bit_ceil(words);
    return aligned <= kLine && aligned - words <= words / 4 ? aligned : words;
}

}  // namespace

bool fits(double value, Form form) {
    if (is_missing(value) || form == Form::full) return true;
    if (form == Form::single) {
        const bool in_range = std::fabs(value) <= std::numeric_limits<float>::max();
        return in_range && static_cast<double>(static_cast<float>(value)) == value;
    }
    const Scale scale = scale_of(form);
    return scale.value(scale.nearest(value)) == value;
}

bool has_all_of(Form form, Form other) {
    switch (other) {
        case Form::byte:
            return form != Form::rate && form != Form::rate_single;
        case Form::rate:
        case Form::cents:
            return form == other || form == Form::full || form == Form::cents;
        case Form::rate_single:
        case Form::cents_single:
            return form == other || form >= Form::single || form == Form::cents_single;
        case Form::half:
            return form == other || form >= Form::single;
        default:
            return form >= other;
    }
}

std::uint64_t missing_code(std::size_t code_bytes) {
    if (code_bytes == bytes_of(Form::full)) return sort_key(kMissing);
    return (std::uint64_t{1} << 8 * code_bytes) - 1;
}

std::uint64_t code_of(double value, Form form) {
    if (is_missing(value)) return missing_code(bytes_of(form));
    if (form == Form::full) return sort_key(value + 0.0);
    if (form == Form::single) return float_key(static_cast<float>(value) + 0.0f);
    const Scale scale = scale_of(form);
    return static_cast<std::uint64_t>(scale.nearest(value) - scale.first);
}

double value_of(std::uint64_t code, Form form) {
    if (code == missing_code(bytes_of(form))) return kMissing;
    if (form == Form::full) return value_of_key(code);
    if (form == Form::single) return float_of_key(static_cast<std::uint32_t>(code));
    const Scale scale = scale_of(form);
    return scale.value(static_cast<double>(code) + scale.first);
}

Packing::Packing(std::size_t n_features) : places_(n_features), order_(n_features) { lay_out(); }

void Packing::lay_out() {
    std::size_t offset = 0;
    owners_.clear();
    std::uint32_t position = 0;
    for (std::size_t w = 0; w < kWidths; ++w) groups_[w] = {kWord >> w, 0, 0, 0};
    for (std::size_t f = kForms; f-- > 0;) {
        const auto form = static_cast<Form>(f);
        const std::size_t bytes = bytes_of(form);
        Group& group = groups_[kWidths - static_cast<std::size_t>(std::bit_width(bytes))];
        if (group.begin == group.end) group = {bytes, position, position, offset};
        runs_[f] = {form, position, position, offset};
        for (std::uint32_t j = 0; j < places_.size(); ++j) {
            if (places_[j].form != form) continue;
            places_[j].offset = static_cast<std::uint32_t>(offset);
            places_[j].mask = ~std::uint64_t{0} >> (64 - 8 * bytes);
            order_[position++] = j;
            offset += bytes;
            owners_.resize(offset, {j, static_cast<std::uint32_t>(offset)});
        }
        group.end = runs_[f].end = position;
    }
    values_bytes_ = offset;
    record_bytes_ = padded(offset);
}

bool Packing::pack(const double* x, std::byte* record) const {
    bool fits = true;
    for (const Run& run : runs_) {
        const std::size_t n = run.end - run.begin;
        if (n == 0) continue;
        fits &= wide::pack(x, order_.data() + run.begin, n, run.form, record + run.offset);
    }
    std::memset(record + values_bytes_, 0, record_bytes_ - values_bytes_);
    return fits;
}

void Packing::set_code(std::byte* record, std::size_t feature, std::uint64_t code) const {
    const std::size_t n = bytes_of(places_[feature].form);
    std::byte* const to = record + places_[feature].offset;
    for (std::size_t i = 0; i < n; ++i) to[i] = static_cast<std::byte>(code >> 8 * i);
}

Packing::Change::Change(const Packing& from, const Packing& to) : from_(from), to_(to) {
    for (const std::uint32_t j : from.order_) {
        if (from.form(j) != to.form(j)) {
            others_.push_back(j);
            continue;
        }
        const Run run{from.offset(j), to.offset(j), bytes_of(from.form(j))};
        const bool follows = !runs_.empty() && runs_.back().from + runs_.back().bytes == run.from &&
                             runs_.back().to + runs_.back().bytes == run.to;
        if (follows) {
            runs_.back().bytes += run.bytes;
        } else {
            runs_.push_back(run);
        }
    }
}

void Packing::Change::repack(const std::byte* from, std::byte* to) const {
    for (const Run& run : runs_) std::memcpy(to + run.to, from + run.from, run.bytes);
    for (const std::uint32_t j : others_) {
        to_.set_code(to, j, code_of(from_.value(from, j), to_.form(j)));
    }
}

void Packing::widen_all() {
    for (Place& place : places_) place.form = wider(place.form);
    lay_out();
}

}  // namespace evertree
