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

// In ascending order, each with the forms that it fits besides the full one.
struct Example {
    double value;
    std::vector<Form> narrower;
};
using enum Form;
const std::vector<Form> kAll = {byte, rate, rate_single, half, cents, cents_single, single};
const std::vector<Example> kExamples = {
    {-std::numeric_limits<double>::max(), {}},
    {-std::numeric_limits<float>::max(), {single}},
    {-2147483648.0, {single}},
    {-21474836.48, {}},
    {-32769, {single}},
    {-32768, {half, single}},
    {-327.69, {}},
    {-327.68, {cents}},
    {-327.68f, {cents_single, single}},
    {-1, {half, cents, cents_single, single}},
    {-0.1f, {cents_single, single}},  // below the double
    {-0.1, {cents}},
    {-5e-324, {}},
    {0, kAll},
    {5e-324, {}},
    {1e-45f, {single}},
    {0.01f, {rate_single, cents_single, single}},
    {0.01, {rate, cents}},
    {0.07, {rate, cents}},
    {0.07f, {rate_single, cents_single, single}},
    {0.5, {rate, rate_single, cents, cents_single, single}},
    {0.505, {}},
    {0.57, {rate, cents}},
    {2.0, kAll},
    {2.54f, {rate_single, cents_single, single}},
    {2.54, {rate, cents}},
    {2.55f, {cents_single, single}},
    {2.55, {cents}},
    {254, {byte, half, cents, cents_single, single}},
    {255, {half, cents, cents_single, single}},
    {327.66, {cents}},
    {327.66f, {cents_single, single}},
    {327.67, {}},
    {327.67f, {single}},
    {32766, {half, single}},
    {32767, {single}},
    {16777217, {}},
    {2147483648.0, {single}},
    {1e300, {}},
    {kMissing, kAll},
};

bool fits_example(const Example& example, Form form) {
    return form == full || std::ranges::count(example.narrower, form) > 0;
}

void forms() {
    for (std::size_t f = 0; f < kForms; ++f) {
        const auto form = static_cast<Form>(f);
        std::vector<std::uint64_t> codes;
        for (const Example& example : kExamples) {
            const double value = example.value;
            const bool wanted = fits_example(example, form);
            expect(fits(value, form) == wanted,
                   "form " + std::to_string(f) + " of " + std::to_string(value));
            if (!wanted) continue;
            codes.push_back(code_of(value, form));
            expect(same_bits(value_of(codes.back(), form), value),
                   "code and back: " + std::to_string(value));
        }
        expect(std::is_sorted(codes.begin(), codes.end()), "codes sort as values do");
        expect(std::adjacent_find(codes.begin(), codes.end()) == codes.end(), "codes differ");
        expect(codes.back() == missing_code(bytes_of(form)), "missing is last");
    }
    expect(code_of(-0.0, full) == code_of(0.0, full), "there is one zero");
}

// Whatever has a code in a form of equal distances is a value of that form, and in its order.
void steps() {
    for (const Form form : {byte, rate, rate_single, half, cents, cents_single}) {
        double before = -std::numeric_limits<double>::infinity();
        for (std::uint64_t code = 0; code < missing_code(bytes_of(form)); ++code) {
            const double value = value_of(code, form);
            expect(value > before && fits(value, form) && code_of(value, form) == code,
                   "code " + std::to_string(code) + " of form " +
                       std::to_string(static_cast<int>(form)));
            before = value;
        }
    }
}

void rows_come_back() {
    std::mt19937 random(4);
    for (const std::size_t n_features : {1, 7, 8, 9, 70}) {
        Packing packing(n_features);
        std::vector<Forms> forms_left(n_features);
        std::vector<double> x(n_features), back(n_features);
        for (int turn = 0; turn < 60; ++turn) {
            const std::size_t most = 1 + random() % kExamples.size();
            std::vector<std::byte> record(packing.record_bytes() + Packing::kSlack);
            bool all_fit = true;
            for (std::size_t j = 0; j < n_features; ++j) {
                const Example& example = kExamples[kExamples.size() - 1 - random() % most];
                x[j] = example.value;
                all_fit = all_fit && fits_example(example, packing.form(j));
            }
            expect(packing.pack(x.data(), record.data()) == all_fit, "what fits is known");
            for (std::size_t j = 0; j < n_features; ++j) {
                forms_left[j].keep_those_of(x[j]);
                packing.set_form(j, forms_left[j].first());
            }
            packing.lay_out();
            if (turn % 20 == 19) packing.widen_all();
            record.resize(packing.record_bytes() + Packing::kSlack);
            expect(packing.pack(x.data(), record.data()), "after it is made wider, it fits");
            packing.unpack(record.data(), back.data());
            expect(std::equal(x.begin(), x.end(), back.begin(), same_bits), "it comes back");
        }
    }
}

void some_forms_have_all_of_others() {
    for (std::size_t o = 0; o < kForms; ++o) {
        const auto other = static_cast<Form>(o);
        Forms forms;
        for (const Example& example : kExamples) {
            if (fits_example(example, other)) forms.keep_those_of(example.value);
        }
        expect(forms.first() == other, "the first form that all values fit");
        for (std::size_t f = 0; f < kForms; ++f) {
            const auto form = static_cast<Form>(f);
            const bool has_all = std::ranges::all_of(kExamples, [&](const Example& example) {
                return !fits_example(example, other) || fits_example(example, form);
            });
            expect(has_all_of(form, other) == has_all,
                   "form " + std::to_string(f) + " and all of " + std::to_string(o));
        }
        Packing packing(1);
        packing.set_form(0, other);
        packing.widen_all();
        const Form wider = packing.form(0);
        expect(has_all_of(wider, other) && (other == full || wider > other), "wider forms");
    }
}

// The first form that all values fit is found, also after what needed a wider one has gone.
void forms_are_found() {
    DynamicTree subject(std::vector<Kind>(3, Kind::real), Limits{});
    NoWatch watch;
    ExampleId next = 0;
    const auto insert = [&](std::vector<std::vector<double>> rows) {
        std::vector<Insertion> coming;
        for (const auto& x : rows) coming.push_back({x.data(), 0, next++});
        subject.update({}, coming, watch);
    };
    const auto remove = [&](ExampleId id) {
        const Slot slot = subject.examples().find(id);
        subject.update({&slot, 1}, {}, watch);
    };
    const auto has = [&](std::vector<Form> forms) {
        for (std::size_t j = 0; j < forms.size(); ++j) {
            if (subject.examples().packing().form(j) != forms[j]) return false;
        }
        return true;
    };
    insert({{1, 1, 1}, {0, 7, 2}});
    expect(has({byte, byte, byte}), "whole numbers are bytes");
    insert({{0.07, 0.07, 0.07f}, {2, 1, 1}});
    expect(has({rate, cents, rate_single}), "hundredths are rates where no large number was");
    insert({{0.5, 0.5, 0.5}, {3, 300, -0.25}});
    expect(has({cents, cents, cents_single}), "larger hundredths are cents");
    insert({{0.07f, 1000, 0.07f}});
    expect(has({full, full, cents_single}), "what no form has is full");
    remove(6);
    subject.rebuild(watch);
    expect(has({cents, cents, cents_single}), "what is gone needs no room");
    remove(5);
    subject.rebuild(watch);
    expect(has({rate, cents, rate_single}), "nor does this");
}

// Values that come and go, each of a form that does not have the other: all rows are packed anew at
// first, and then no more.
void forms_settle() {
    DynamicTree subject(std::vector<Kind>(1, Kind::real), Limits{});
    const Examples& examples = subject.examples();
    NoWatch watch;
    ExampleId next = 0;
    const auto insert = [&](double x) {
        const Insertion coming{&x, 0, next++};
        subject.update({}, {&coming, 1}, watch);
    };
    for (int i = 0; i < 300; ++i) insert(i % 2);
    int n_changes = 0;
    for (int turn = 0; turn < 200; ++turn) {
        const Form before = examples.packing().form(0);
        insert(turn % 2 == 0 ? 0.07 : 1000);
        const Slot last = examples.find(next - 1);
        subject.update({&last, 1}, {}, watch);
        n_changes += examples.packing().form(0) != before;
    }
    expect(5 < n_changes && n_changes < 25, "times packed anew: " + std::to_string(n_changes));
    subject.rebuild(watch);
    expect(examples.packing().form(0) == byte, "nothing is left of it after a rebuild");
}

// An update that fails half-way may have packed all rows anew by then.
void failures_leave_no_form() {
    DynamicTree subject(std::vector<Kind>(1, Kind::real), Limits{});
    NoWatch watch;
    std::vector<double> x(700);
    std::vector<Insertion> rows;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const bool is_first = i < 300;
        x[i] = is_first ? static_cast<double>(i % 2) : static_cast<double>(i) / 1000;
        rows.push_back({&x[i], is_first ? ClassId{0} : ClassId(i % 2), ExampleId(i)});
    }
    const std::span all(rows);
    subject.update({}, all.first(300), watch);
    int n_failed = 0;
    const auto insert_thousandths = [&] { subject.update({}, all.subspan(300), watch); };
    for (; fails_after(n_failed + 1, insert_thousandths); ++n_failed) {
        subject.rebuild(watch);
        expect(subject.examples().packing().form(0) == byte, "nothing is left of what failed");
    }
    expect(n_failed > 20, "too few allocations failed: " + std::to_string(n_failed));
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
        if (step > 300 && step % 3 == 0) {
            const double wide[] = {1000.0, step < 400 ? 0.001f : 0.001, 0.25, 12.34};
            x[at] = wide[step / 90 % 4];
        }
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
    steps();
    some_forms_have_all_of_others();
    forms_are_found();
    forms_settle();
    failures_leave_no_form();
    each_level(rows_come_back);
    features_grow_wider();
}

}  // namespace evertree
