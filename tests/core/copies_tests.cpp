// Copies: every row is found again among those it is equal to, whatever the parts; and rows whose
// hashes were made equal are given up before they take long.

#include <array>
#include <cstdio>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "checks.hpp"
#include "copies.hpp"
#include "update.hpp"

namespace evertree {
namespace {

constexpr std::size_t kWords = 5;
using Words = std::array<std::uint64_t, kWords>;

struct Records {
    std::vector<Words> words;
    std::vector<std::uint32_t> classes;
    std::vector<const std::byte*> of_row;

    void add(const Words& record, std::uint32_t label) {
        words.push_back(record);
        classes.push_back(label);
    }
    Copies::Rows rows() {
        of_row.clear();
        for (const Words& w : words) of_row.push_back(reinterpret_cast<const std::byte*>(w.data()));
        return {of_row.data(), sizeof(Words), classes};
    }
};

// So many rows of so many different ones; a part of them side by side.
Records random_records(std::size_t n, std::size_t n_different) {
    std::mt19937_64 random(n + n_different);
    std::vector<Words> different(n_different);
    for (Words& words : different) {
        for (std::uint64_t& word : words) word = random() % 3 << random() % 60;
    }
    Records records;
    while (records.words.size() < n) {
        const Words& words = different[random() % n_different];
        const auto label = static_cast<std::uint32_t>(random() % 3);
        for (std::size_t times = random() % 4 + 1; times > 0; --times) records.add(words, label);
    }
    return records;
}

bool find_all(Copies& copies, const Copies::Rows& rows, std::size_t n_parts) {
    NoWatch watch;
    copies.start(rows, n_parts);
    for (std::size_t part = 0; part < n_parts; ++part) copies.find(part, watch);
    return copies.settle();
}

// Each row once, with those it is equal to; the first of them, and how many there are.
void compare_with_map(std::size_t n, std::size_t n_different, std::size_t n_parts) {
    const std::string where = std::to_string(n) + " rows, " + std::to_string(n_different) +
                              " different, " + std::to_string(n_parts) + " parts";
    Records records = random_records(n, n_different);
    const Copies::Rows rows = records.rows();
    Copies copies;
    expect(copies.are_likely(rows), "copies are likely, " + where);
    expect(find_all(copies, rows, n_parts), "there are enough, " + where);
    std::vector<std::uint32_t> firsts(rows.size());
    std::iota(firsts.begin(), firsts.end(), 0u);
    for (std::size_t part = 0; part < n_parts; ++part) {
        copies.list(part);
        copies.gather(part, firsts.data());
    }
    for (std::size_t part = 0; part < n_parts; ++part) copies.bring_forward(part, firsts.data());
    std::vector<int> seen(rows.size());
    std::map<std::pair<Words, std::uint32_t>, std::size_t> different;
    bool same = true;
    for (std::size_t number = 0; number < copies.size(); ++number) {
        const std::uint32_t first = firsts[number];
        same = same && (number == 0 || firsts[number - 1] < first);
        ++different[{records.words[first], records.classes[first]}];
        for (std::uint32_t i = 0; i < copies.counts()[number]; ++i) {
            const std::uint32_t row = copies.next(number);
            same = same && (i > 0 || row == first) && records.words[row] == records.words[first] &&
                   records.classes[row] == records.classes[first];
            ++seen[row];
        }
    }
    for (const int times : seen) same = same && times == 1;
    for (const auto& [record, times] : different) same = same && times <= n_parts;
    expect(same, "copies, " + where);
}

// The rows that are asked may be copies where most are not.
void few_copies() {
    constexpr std::uint64_t n = 256 * 20;
    Records records, different;
    for (std::uint64_t i = 0; i < n; ++i) {
        records.add({i % 20 == 0 ? 0 : i}, 0);
        different.add({i}, 0);
    }
    Copies copies;
    expect(!copies.are_likely(different.rows()), "rows that differ are no copies");
    const Copies::Rows rows = records.rows();
    expect(copies.are_likely(rows), "copies are likely if those that are asked are");
    expect(!find_all(copies, rows, 1), "there are not enough");
}

// Memory runs out at every point of a build that merges copies: the tree stays, and the next build
// makes it again.
long failing_rebuilds() {
    const std::vector<Kind> kinds(3, Kind::real);
    DynamicTree subject(kinds, Limits{}, 1);
    std::mt19937 random(5);
    std::vector<double> values(5000 * kinds.size());
    std::vector<Insertion> inserted;
    for (std::size_t i = 0; i < 5000; ++i) {
        double* const x = values.data() + i * kinds.size();
        const auto which = static_cast<double>(random() % (random() % 8 == 0 ? 900 : 20));
        for (std::size_t j = 0; j < kinds.size(); ++j) x[j] = which / static_cast<double>(j + 1);
        const auto noise = static_cast<ClassId>(random() % 15);
        const ClassId label = noise < 3 ? noise : which > 9 ? 1 : 0;
        inserted.push_back({x, label, static_cast<ExampleId>(i)});
    }
    NoWatch watch;
    subject.update({}, inserted, watch);
    subject.rebuild(watch);
    const std::string before = portrait(subject.upkeep());
    for (long chance = 0;; ++chance) {
        if (!fails_after(chance, [&] { subject.rebuild(watch); })) return chance;
        expect(portrait(subject.upkeep()) == before, "a rebuild that fails changes nothing");
    }
}

// The tree of rows of which many are copies, half of them of one that says nothing.
std::string portrait_of_copies(std::size_t n, std::size_t n_features, bool is_binary,
                               ClassId n_classes, std::size_t n_workers) {
    const std::vector<Kind> kinds(n_features, Kind::real);
    DynamicTree subject(kinds, Limits{}, n_workers);
    std::mt19937 random(n_classes);
    std::vector<double> values(n * n_features);
    std::vector<Insertion> inserted;
    for (std::size_t i = 0; i < n; ++i) {
        double* const x = values.data() + i * n_features;
        const bool is_idle = !is_binary && random() % 2 == 0;
        const auto bits = static_cast<std::uint32_t>(random() % 20) * 37;
        for (std::size_t j = 0; j < n_features && !is_idle; ++j) {
            x[j] = is_binary ? bits >> j & 1 : static_cast<double>(random()) / 7;
        }
        const auto noise = static_cast<ClassId>(is_idle ? 0 : random() % (2 * n_classes));
        const ClassId label = noise < n_classes ? noise : x[0] > x[1] ? 1 : 0;
        inserted.push_back({x, label, static_cast<ExampleId>(i)});
    }
    NoWatch watch;
    subject.update({}, inserted, watch);
    subject.rebuild(watch);
    return portrait(subject.upkeep());
}

// Few rows are planned as all that they stand for, however few they were before, and whatever a
// large build has given back by then.
void few_rows_of_copies() {
    const auto compare = [](std::size_t n, std::size_t n_features, bool is_binary,
                            ClassId n_classes) {
        const auto portrait_with = [&](std::size_t n_workers) {
            return portrait_of_copies(n, n_features, is_binary, n_classes, n_workers);
        };
        const std::string with_few = portrait_with(1);
        expect(portrait_with(2) == with_few, "copies, one worker and two");
        wide::few::use(false);
        expect(portrait_with(1) == with_few, "copies, few rows and many");
        wide::few::use({});
    };
    for (const ClassId n_classes : {2, 3, 16, 17}) compare(5000, 8, true, n_classes);
    compare(14000, 40, false, 3);
}

// Two words that add nothing to the hash of a record, whatever the first one is.
void equal_hashes() {
    constexpr std::uint64_t one = 1;
    const std::uint64_t factor = Copies::factor(1);
    std::uint64_t inverse = factor;  // modulo 2^64, by Newton's method
    for (int i = 0; i < 6; ++i) inverse *= 2 - factor * inverse;
    expect(factor * inverse == one, "the inverse of a factor");
    const auto mixed_back = [](std::uint64_t word) { return word ^ word >> 32; };
    Records records;
    for (std::uint64_t i = 0; i < 60000; ++i) {
        const std::uint64_t first = (i * 0x9e3779b97f4a7c15u) >> 3;
        const std::uint64_t product = mixed_back(first) * Copies::factor(0);
        records.add({first, mixed_back((0 - product) * inverse)}, 0);
    }
    const Copies::Rows rows = records.rows();
    Copies copies;
    expect(copies.are_likely(rows), "equal hashes look like copies");
    expect(!find_all(copies, rows, 1), "equal hashes are given up");
    expect(!find_all(copies, rows, 3), "equal hashes are given up in parts");
}

}  // namespace

void test_copies() {
    int n_compared = 0;
    for (const std::size_t n : {4096, 5001, 40000}) {
        for (const std::size_t n_different : {1, 2, 20, 50}) {
            for (const std::size_t n_parts : {1, 2, 3, 8}) {
                compare_with_map(n, n_different, n_parts);
                ++n_compared;
            }
        }
    }
    few_copies();
    equal_hashes();
    few_rows_of_copies();
    const long n_failed = failing_rebuilds();
    std::printf("copies: %d sets, %ld failures survived\n", n_compared, n_failed);
}

}  // namespace evertree
