#include "packing.hpp"

#include <algorithm>
#include <cmath>

#include "order.hpp"
#include "wide/wide.hpp"

namespace evertree {

namespace {

constexpr std::size_t kWord = 8, kLine = 64;  // bytes

constexpr double kLargestByte = 254, kSmallestHalf = -32768, kLargestHalf = 32766;

std::uint32_t float_key(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    constexpr std::uint32_t sign = std::uint32_t{1} << 31;
    return (bits & sign) != 0 ? ~bits : bits | sign;
}

float float_of_key(std::uint32_t key) {
    constexpr std::uint32_t sign = std::uint32_t{1} << 31;
    return std::bit_cast<float>((key & sign) != 0 ? key & ~sign : ~key);
}

// Up to a line a record begins where it lies on one line, if little is lost.
std::size_t padded(std::size_t bytes) {
    const std::size_t words = (std::max<std::size_t>(bytes, 1) + kWord - 1) / kWord * kWord;
    const std::size_t aligned = std::bit_ceil(words);
    return aligned <= kLine && aligned - words <= words / 4 ? aligned : words;
}

}  // namespace

Form form_of(double value) {
    if (is_missing(value)) return Form::byte;
    if (value >= kSmallestHalf && value <= kLargestHalf && value == std::trunc(value)) {
        return value >= 0 && value <= kLargestByte ? Form::byte : Form::half;
    }
    const bool in_range = std::fabs(value) <= std::numeric_limits<float>::max();
    return in_range && static_cast<double>(static_cast<float>(value)) == value ? Form::single
                                                                               : Form::full;
}

std::uint64_t missing_code(Form form) {
    if (form == Form::full) return sort_key(kMissing);
    return (std::uint64_t{1} << 8 * bytes_of(form)) - 1;
}

std::uint64_t code_of(double value, Form form) {
    if (is_missing(value)) return missing_code(form);
    switch (form) {
        case Form::byte:
            return static_cast<std::uint64_t>(value);
        case Form::half:
            return static_cast<std::uint64_t>(value - kSmallestHalf);
        case Form::single:
            return float_key(static_cast<float>(value) + 0.0f);
        default:
            return sort_key(value + 0.0);
    }
}

double value_of(std::uint64_t code, Form form) {
    if (code == missing_code(form)) return kMissing;
    switch (form) {
        case Form::byte:
            return static_cast<double>(code);
        case Form::half:
            return static_cast<double>(code) + kSmallestHalf;
        case Form::single:
            return float_of_key(static_cast<std::uint32_t>(code));
        default:
            return value_of_key(code);
    }
}

Packing::Packing(std::size_t n_features) : places_(n_features), order_(n_features) { lay_out(); }

void Packing::lay_out() {
    std::size_t offset = 0;
    owners_.clear();
    std::uint32_t position = 0;
    for (std::size_t g = 0; g < kForms; ++g) {
        const auto form = static_cast<Form>(kForms - 1 - g);
        groups_[g] = {form, position, position, offset};
        for (std::uint32_t j = 0; j < places_.size(); ++j) {
            if (places_[j].form != form) continue;
            places_[j].offset = static_cast<std::uint32_t>(offset);
            places_[j].mask = ~std::uint64_t{0} >> (64 - 8 * bytes_of(form));
            order_[position++] = j;
            offset += bytes_of(form);
            owners_.resize(offset, {j, static_cast<std::uint32_t>(offset)});
        }
        groups_[g].end = position;
    }
    values_bytes_ = offset;
    record_bytes_ = padded(offset);
}

bool Packing::pack(const double* x, std::byte* record) const {
    bool fits = true;
    for (const Group& group : groups_) {
        const std::size_t n = group.end - group.begin;
        if (n == 0) continue;
        fits &= wide::pack(x, order_.data() + group.begin, n, group.form, record + group.offset);
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

void Packing::widen(const double* x) {
    for (std::size_t j = 0; j < places_.size(); ++j) {
        places_[j].form = std::max(places_[j].form, form_of(x[j]));
    }
    lay_out();
}

void Packing::widen_all() {
    for (Place& place : places_) {
        if (place.form != Form::full)
            place.form = static_cast<Form>(static_cast<int>(place.form) + 1);
    }
    lay_out();
}

}  // namespace evertree
