// Packing: how a row is stored. Every value exactly, in as few bytes as its feature needs.
//
// A form is a set of values, each with a code that sorts as the values do, the missing one last:
//   byte          whole numbers from 0 to 254
//   rate          hundredths from 0 to 2.54
//   rate_single   the same, as floats say them
//   half          whole numbers from -32768 to 32766
//   cents         hundredths from -327.68 to 327.66
//   cents_single  the same, as floats say them
//   single        all that a float can say
//   full          all that a double can say
// A feature has the first of them that all its values fit, or fitted once. In a record the features
// stand by the width of their codes, the widest first, so that neighbours can be read together;
// what is left at its end is zero, so that equal rows are equal byte for byte.
//
// Must not know: where records are kept.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

namespace evertree {

inline constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

inline bool is_missing(double value) { return value != value; }
// Adding 0.0 turns -0.0 into 0.0; every NaN becomes the same NaN.
inline double normalized(double value) { return is_missing(value) ? kMissing : value + 0.0; }

enum class Form : std::uint8_t { byte, rate, rate_single, half, cents, cents_single, single, full };
inline constexpr std::size_t kForms = 8, kWidths = 4;

constexpr std::size_t bytes_of(Form form) {
    constexpr std::uint8_t bytes[kForms] = {1, 1, 1, 2, 2, 2, 4, 8};
    return bytes[static_cast<std::size_t>(form)];
}
// The values of a form that is narrower than a float lie at equal distances.
struct Scale {
    double per_one;
    double first, last;  // as numbers of steps from 0
    bool as_float;

    // The only step that may have this value, if any has.
    double nearest(double value) const {
        const double steps = value * per_one;
        if (!(steps >= first && steps < last + 0.5)) return first;
        return static_cast<int>(steps < 0.0 ? steps - 0.5 : steps + 0.5);
    }
    double value(double step) const {
        const double exact = per_one == 1.0 ? step : step / per_one;
        return as_float ? static_cast<double>(static_cast<float>(exact)) : exact;
    }
};
constexpr Scale scale_of(Form form) {
    const bool whole = form == Form::byte || form == Form::half;
    const bool as_float = form == Form::rate_single || form == Form::cents_single;
    const bool one_byte = bytes_of(form) == 1;
    return {whole ? 1.0 : 100.0, one_byte ? 0.0 : -32768.0, one_byte ? 254.0 : 32766.0, as_float};
}

bool fits(double value, Form form);
bool has_all_of(Form form, Form other);
// The value fits the form.
std::uint64_t code_of(double value, Form form);
double value_of(std::uint64_t code, Form form);
// Codes of one width have the same one, whatever their form.
std::uint64_t missing_code(std::size_t code_bytes);

// The forms that all of some values fit.
class Forms {
  public:
    void keep_those_of(double value) {
        for (unsigned left = forms_ & ~kFull; left != 0; left &= left - 1) {
            if (!fits(value, first_of(left))) forms_ &= ~(left & -left);
        }
    }
    void keep_those_with_all_of(Form form) {
        for (unsigned left = forms_; left != 0; left &= left - 1) {
            if (!has_all_of(first_of(left), form)) forms_ &= ~(left & -left);
        }
    }
    Form first() const { return first_of(forms_); }

  private:
    static Form first_of(unsigned forms) { return static_cast<Form>(std::countr_zero(forms)); }

    static constexpr unsigned kFull = 1u << static_cast<int>(Form::full);  // which fits all

    unsigned forms_ = (1u << kForms) - 1;
};

class Packing {
  public:
    // Neighbours of one width: positions in the order of the record, and where the first one lies.
    struct Group {
        std::size_t code_bytes;
        std::uint32_t begin, end;
        std::size_t offset;
    };

    explicit Packing(std::size_t n_features);

    std::size_t n_features() const { return places_.size(); }
    std::size_t record_bytes() const { return record_bytes_; }
    std::span<const Group> groups() const { return groups_; }  // the widest first; some are empty
    std::span<const std::uint32_t> order() const { return order_; }  // features by position
    Form form(std::size_t feature) const { return places_[feature].form; }
    std::size_t offset(std::size_t feature) const { return places_[feature].offset; }

    // Writes a record; false, and what is written means nothing, if a value does not fit.
    bool pack(const double* x, std::byte* record) const;
    bool fits(double value, std::size_t feature) const {
        return evertree::fits(value, places_[feature].form);
    }
    // Changes mean something once all have been laid out.
    void set_form(std::size_t feature, Form form) { places_[feature].form = form; }
    void lay_out();
    // Each form becomes one that has all its values, and more.
    void widen_all();

    // Several codes are read at once: behind the last record there must be kSlack bytes.
    static constexpr std::size_t kSlack = 4 * sizeof(std::uint64_t) - 1;
    std::uint64_t code(const std::byte* record, std::size_t feature) const {
        const Place& place = places_[feature];
        std::uint64_t word;
        std::memcpy(&word, record + place.offset, sizeof word);
        return word & place.mask;
    }
    // The feature that a byte of a record belongs to, and where it ends.
    struct Owner {
        std::uint32_t feature, end;
    };
    Owner owner(std::size_t byte) const { return owners_[byte]; }
    void set_code(std::byte* record, std::size_t feature, std::uint64_t code) const;
    double value(const std::byte* record, std::size_t feature) const {
        return value_of(code(record, feature), places_[feature].form);
    }
    void unpack(const std::byte* record, double* x) const {
        for (std::size_t j = 0; j < places_.size(); ++j) x[j] = value(record, j);
    }

    // From one packing to another, which the values fit. Most features keep their form: their codes
    // are copied, neighbours together.
    class Change {
      public:
        Change(const Packing& from, const Packing& to);
        // Into a record of zeros.
        void repack(const std::byte* from, std::byte* to) const;

      private:
        struct Run {
            std::size_t from, to, bytes;
        };
        const Packing &from_, &to_;
        std::vector<Run> runs_;
        std::vector<std::uint32_t> others_;  // features whose form changes
    };

  private:
    struct Place {
        std::uint64_t mask = 0;  // of the form's bits
        std::uint32_t offset = 0;
        Form form = Form::byte;
    };
    // Neighbours of one form.
    struct Run {
        Form form;
        std::uint32_t begin, end;
        std::size_t offset;
    };

    std::vector<Place> places_;  // by feature
    std::vector<std::uint32_t> order_;
    std::vector<Owner> owners_;  // by byte
    std::array<Group, kWidths> groups_{};
    std::array<Run, kForms> runs_{};
    std::size_t values_bytes_ = 0, record_bytes_ = 0;
};

}  // namespace evertree
