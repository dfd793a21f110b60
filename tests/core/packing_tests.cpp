// Packed rows: what goes in comes out, codes sort as values do, and features grow wider while rows
// come and go.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <vector>

#include "checks.hpp"
#include "packing.hpp"
#include "update.hpp"
#include "wide/wide.hpp"

namespace evertree {
namespace {

bool same_bits(double a, double b) {
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

// In ascending order, each with its smallest form.
struct Example {
    double value;
    Form form;
};
const std::vector<Example> kExamples = {
    {-std::numeric_limits<double>::max(), Form::full},
    {-std::numeric_limits<float>::max(), Form::single},
    {-2147483648.0, Form::single},
    {-32769, Form::single},
    {-32768, Form::half},
    {-1, Form::half},
    {-0.1, Form::full},
    {-5e-324, Form::full},
    {0, Form::byte},
    {5e-324, Form::full},
    {1e-45f, Form::single},
    {0.5, Form::single},
    {254, Form::byte},
    {255, Form::half},
    {32766, Form::half},
    {32767, Form::single},
    {16777217, Form::full},
    {2147483648.0, Form::single},
    {1e300, Form::full},
    {kMissing, Form::byte},
};

void forms() {
    for (std::size_t f = 0; f < kForms; ++f) {
        const auto form = static_cast<Form>(f);
        std::vector<std::uint64_t> codes;
        for (const auto& [value, smallest] : kExamples) {
            expect(form_of(value) == smallest, "form of " + std::to_string(value));
            if (smallest > form) continue;
            codes.push_back(code_of(value, form));
            expect(same_bits(value_of(codes.back(), form), value),
                   "code and back: " + std::to_string(value));
        }
        expect(std::is_sorted(codes.begin(), codes.end()), "codes sort as values do");
        expect(std::adjacent_find(codes.begin(), codes.end()) == codes.end(), "codes differ");
        expect(codes.back() == missing_code(form), "missing is last");
    }
    expect(code_of(-0.0, Form::full) == code_of(0.0, Form::full), "there is one zero");
}

void rows_come_back() {
    std::mt19937 random(4);
    for (const std::size_t n_features : {1, 7, 8, 9, 70}) {
        Packing packing(n_features);
        std::vector<double> x(n_features), back(n_features);
        for (int turn = 0; turn < 40; ++turn) {
            const std::size_t most = 1 + random() % kExamples.size();
            for (double& v : x) {
                v = kExamples[kExamples.size() - 1 - random() % most].value;
            }
            std::vector<std::byte> record(packing.record_bytes() + Packing::kSlack);
            bool fits = true;
            for (std::size_t j = 0; j < n_features; ++j) {
                fits = fits && form_of(x[j]) <= packing.form(j);
            }
            expect(packing.pack(x.data(), record.data()) == fits, "what fits is known");
            packing.widen(x.data());
            record.resize(packing.record_bytes() + Packing::kSlack);
            expect(packing.pack(x.data(), record.data()), "after it is made wider, it fits");
            packing.unpack(record.data(), back.data());
            expect(std::equal(x.begin(), x.end(), back.begin(), same_bits), "it comes back");
        }
    }
}

// Feature after feature needs a wider form, at any time; rows are found by value meanwhile.
class Widening {
  public:
    static constexpr std::size_t kFeatures = 30;

    Widening() : subject_(std::vector<Kind>(kFeatures, Kind::real), Limits{}) {}

    void insert(std::size_t step) {
        std::vector<double> x(kFeatures);
        for (double& v : x) v = static_cast<double>(random_() % 200);
        const std::size_t at = step / 3 % kFeatures;
        if (step > 300 && step % 3 == 0) x[at] = step % 2 == 0 ? 1000.0 : step < 400 ? 0.5 : 0.1;
        const Insertion coming{x.data(), static_cast<ClassId>(x[0] > 99 ? 1 : 0),
                               static_cast<ExampleId>(step)};
        subject_.update({}, {&coming, 1}, watch_);
        allocations_until_failure = -1;
        rows_.push_back(x);
    }
    // The same with every allocation failing once; how many did.
    int insert_with_failures(std::size_t step) {
        const std::mt19937 before = random_;
        for (int chance = 0;; ++chance) {
            random_ = before;
            // The first allocation is the row's own.
            if (!fails_after(chance + 1, [&] { insert(step); })) return chance;
            check(rows_.size());
        }
    }
    void remove(std::size_t step) {
        const Slot slot = subject_.examples().find(static_cast<ExampleId>(step));
        subject_.update({&slot, 1}, {}, watch_);
        rows_[step].clear();
    }
    std::size_t bytes_when_rebuilt() {
        subject_.rebuild(watch_);
        return subject_.examples().packing().record_bytes();
    }
    void check(std::size_t n) {
        const Examples& examples = subject_.examples();
        std::vector<double> x(kFeatures);
        subject_.index_values();
        for (std::size_t step = 0; step < n; ++step) {
            const Slot slot = examples.find(static_cast<ExampleId>(step));
            expect((slot == kNoSlot) == rows_[step].empty(), "what is in is in");
            if (slot == kNoSlot) continue;
            examples.read(slot, x.data());
            expect(x == rows_[step], "row " + std::to_string(step) + " is as it was");
            const Slot equal = examples.find(x.data(), examples.label(slot));
            expect(equal != kNoSlot && examples.same_x(equal, slot), "it is found by value");
        }
    }

  private:
    DynamicTree subject_;
    NoWatch watch_;
    std::mt19937 random_{8};
    std::vector<std::vector<double>> rows_;
};

void features_grow_wider() {
    Widening widening;
    int n_failed = 0;
    for (std::size_t step = 0; step < 900; ++step) {
        if (step % 30 == 3) {
            n_failed += widening.insert_with_failures(step);
        } else {
            widening.insert(step);
        }
        if (step % 5 == 0 && step > 20) widening.remove(step - 20);
        if (step % 60 == 0) widening.check(step + 1);
    }
    const std::size_t n_bytes = widening.bytes_when_rebuilt();
    widening.check(900);
    for (std::size_t step = 300; step < 900; ++step) {
        if (step % 5 != 0 || step > 879) widening.remove(step);
    }
    expect(widening.bytes_when_rebuilt() < n_bytes / 2, "what is gone needs no room");
    widening.check(900);
    expect(n_failed > 10, "too few allocations failed: " + std::to_string(n_failed));
    std::printf("packing: 900 rows in growing forms, %d failures survived\n", n_failed);
}

}  // namespace

void test_packing() {
    forms();
    each_level(rows_come_back);
    features_grow_wider();
}

}  // namespace evertree
