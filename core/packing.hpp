// Packing: how a row is stored. Every value exactly, in as few bytes as its feature needs.
//
// A form is a set of values, each with a code that sorts as the values do, the missing one last:
//   byte    whole numbers from 0 to 254
//   half    whole numbers from -32768 to 32766
//   single  all that a float can say
//   full    all that a double can say
// Each has the values of the one before. A feature has the smallest form that its values fit; it
// never goes back. In a record the features stand by form, the widest first, so that neighbours can
// be read together; what is left at its end is zero, so that equal rows are equal byte for byte.
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

enum class Form : std::uint8_t { byte, half, single, full };
inline constexpr std::size_t kForms = 4;

inline std::size_t bytes_of(Form form) { return std::size_t{1} << static_cast<int>(form); }
Form form_of(double value);
// The value fits the form.
std::uint64_t code_of(double value, Form form);
double value_of(std::uint64_t code, Form form);
std::uint64_t missing_code(Form form);

class Packing {
  public:
    // Neighbours of one form: positions in the order of the record, and where the first one lies.
    struct Group {
        Form form;
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
    // As narrow as the values of x and those of before allow, or each form a step wider.
    void widen(const double* x);
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
    void lay_out();

    std::vector<Place> places_;  // by feature
    std::vector<std::uint32_t> order_;
    std::vector<Owner> owners_;  // by byte
    std::array<Group, kForms> groups_{};
    std::size_t values_bytes_ = 0, record_bytes_ = 0;
};

}  // namespace evertree
