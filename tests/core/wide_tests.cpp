// Wide: every loop gives the same answers at every level, whatever the number of rows.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "checks.hpp"
#include "packing.hpp"
#include "wide/wide.hpp"

namespace evertree {
namespace {

std::mt19937 random_numbers(5);
std::uint32_t random_below(std::size_t n) {
    return static_cast<std::uint32_t>(random_numbers() % n);
}

// Whatever `answer` writes down is the same at every level, or nearly so where it is rough.
void agree(const std::string& what, const std::function<std::vector<double>()>& answer,
           double tolerance = 0) {
    std::vector<double> plainly;
    each_level([&] {
        const std::vector<double> here = answer();
        if (wide::level == wide::Level::plain) plainly = here;
        bool equal = here.size() == plainly.size();
        for (std::size_t i = 0; equal && i < here.size(); ++i) {
            equal = std::abs(here[i] - plainly[i]) <= tolerance * std::max(1.0, plainly[i]);
        }
        expect(equal, what + ", level " + std::to_string(static_cast<int>(wide::level)));
    });
}

template <typename T>
std::vector<double> numbers(const std::vector<T>& some) {
    return {some.begin(), some.end()};
}

void append(std::vector<double>& to, const std::vector<double>& more) {
    to.insert(to.end(), more.begin(), more.end());
}

void codes_are_gathered(std::size_t n) {
    for (const std::size_t code_bytes : {1, 2, 4, 8}) {
        for (std::size_t n_columns = 1; n_columns <= wide::kColumns; ++n_columns) {
            const std::size_t offset = random_below(9), bytes = offset + n_columns * code_bytes;
            std::vector<std::byte> memory(n * bytes + Packing::kSlack);
            for (std::byte& b : memory) b = static_cast<std::byte>(random_below(256));
            std::vector<const std::byte*> records;
            for (std::size_t i = 0; i < n; ++i) records.push_back(memory.data() + i * bytes);
            std::shuffle(records.begin(), records.end(), random_numbers);
            const std::string what = std::to_string(n_columns) + " columns of " +
                                     std::to_string(n) + " rows, codes of " +
                                     std::to_string(code_bytes);
            agree(what, [&] {
                std::vector<std::uint64_t> keys(n * n_columns);
                wide::Column columns[wide::kColumns];
                wide::gather_keys(records.data(), n, offset, code_bytes, n_columns, keys.data(),
                                  columns);
                for (std::size_t c = 0; c < n_columns; ++c) {
                    keys.push_back(columns[c].differing);
                    keys.push_back(columns[c].largest);
                }
                // All 64 bits count.
                std::vector<double> halves;
                for (const std::uint64_t key : keys) {
                    halves.push_back(static_cast<double>(key >> 32));
                    halves.push_back(static_cast<double>(key & 0xffffffffu));
                }
                return halves;
            });
            agree("bits that differ, " + what, [&] {
                std::vector<std::byte> differing(bytes + Packing::kSlack);
                wide::mark_differing(records.data(), n, bytes, differing.data());
                std::vector<double> found;
                for (std::size_t i = 0; i < bytes; ++i) {
                    found.push_back(std::to_integer<int>(differing[i]));
                }
                return found;
            });
        }
    }
}

void uncommon_bytes_are_marked(std::size_t n_bytes) {
    std::vector<std::byte> common(n_bytes), record;
    for (std::byte& b : common) b = static_cast<std::byte>(random_below(256));
    record = common;
    for (std::size_t i = 0; i < n_bytes / 3; ++i) {
        record[random_below(n_bytes)] = static_cast<std::byte>(random_below(256));
    }
    std::vector<std::uint64_t> wanted((n_bytes + 63) / 64);
    for (std::size_t i = 0; i < n_bytes; ++i) {
        wanted[i / 64] |= std::uint64_t{random_below(4) != 0} << (i % 64);
    }
    agree("uncommon bytes of " + std::to_string(n_bytes), [&] {
        std::vector<std::uint64_t> marks(wanted.size());
        wide::mark_uncommon(record.data(), n_bytes, common.data(), wanted.data(), marks.data());
        std::vector<double> found;
        for (std::size_t i = 0; i < n_bytes; ++i) {
            found.push_back(static_cast<double>(marks[i / 64] >> (i % 64) & 1));
        }
        return found;
    });
}

// n elements of two classes, in any order of rows.
std::vector<std::uint32_t> list_of(std::uint32_t n) {
    std::vector<std::uint32_t> list;
    for (std::uint32_t row = 0; row < n; ++row) {
        const std::uint32_t is_new = row == 0 || random_below(3) == 0 ? element::kNewValue : 0;
        list.push_back(row | (random_below(2) != 0 ? element::kClassOne : 0) | is_new);
    }
    std::shuffle(list.begin(), list.end(), random_numbers);
    return list;
}

void lists_are_divided(std::uint32_t n) {
    const std::vector<std::uint32_t> list = list_of(n);
    for (const std::uint32_t share : {1, 4, 7}) {
        std::vector<std::uint8_t> goes_left(n);
        for (std::uint8_t& left : goes_left) left = random_below(8) < share ? 1 : 0;
        agree("elements divided, " + std::to_string(n), [&] {
            std::vector<std::uint32_t> divided = list, spare(n + wide::kPadding);
            wide::divide_elements(goes_left.data(), spare.data(), divided.data(), n);
            return numbers(divided);
        });
        agree("rows divided, " + std::to_string(n), [&] {
            std::vector<std::uint32_t> divided, spare(n + wide::kPadding);
            for (const std::uint32_t e : list) divided.push_back(e & element::kRow);
            const std::uint32_t n_left =
                wide::divide_rows(goes_left.data(), spare.data(), divided.data(), n);
            divided.push_back(n_left);
            return numbers(divided);
        });
    }
}

struct Inverses {
    std::vector<float> to, back;
    explicit Inverses(std::uint32_t n) {
        for (std::uint32_t i = 0; i + 1 < n; ++i) {
            to.push_back(1.0f / static_cast<float>(i + 1));
            back.push_back(1.0f / static_cast<float>(n - 1 - i));
        }
    }
};

void cuts_are_scored(std::uint32_t n) {
    const std::vector<std::uint32_t> list = list_of(n);
    const Inverses inverses(n);
    const std::uint32_t* const lists[] = {list.data()};
    const auto ones = static_cast<std::uint32_t>(
        std::ranges::count_if(list, [](auto e) { return (e & element::kClassOne) != 0; }));
    const wide::TwoClassRows two{n, ones, inverses.to.data(), inverses.back.data()};
    agree(
        "best of two classes, " + std::to_string(n),
        [&] {
            float best = 0;
            wide::best_scores(two, lists, 1, &best);
            return std::vector<double>{best};
        },
        1e-5);
    agree("cuts that reach, " + std::to_string(n), [&] {
        std::vector<std::uint32_t> cuts(n + 16), ones_left(n + 16);
        const std::uint32_t count =
            wide::cuts_that_reach(two, list.data(), 0.0f, cuts.data(), ones_left.data());
        cuts.resize(count);
        ones_left.resize(count);
        std::vector<double> found = numbers(cuts);
        append(found, numbers(ones_left));
        return found;
    });
    for (const std::uint32_t n_classes : {3, 8}) {
        std::vector<std::uint32_t> class_of_row(n);
        wide::ManyClassRows many{n,  class_of_row.data(), n_classes,           {},
                                 {}, inverses.to.data(),  inverses.back.data()};
        for (std::uint32_t c = 0; c < n_classes; ++c) many.classes[c] = 3 * c;
        for (std::uint32_t& label : class_of_row) {
            const std::uint32_t c = random_below(n_classes);
            label = many.classes[c];
            many.totals[c] += 1;
        }
        agree(
            "best of many classes, " + std::to_string(n),
            [&] {
                float best = 0;
                wide::best_scores(many, lists, 1, &best);
                return std::vector<double>{best};
            },
            1e-5);
    }
}

void counts_are_scored(std::size_t n_values) {
    std::vector<std::uint32_t> counts;
    std::vector<std::uint8_t> several;
    wide::CountedRows rows{};
    for (std::size_t v = 0; v < n_values; ++v) {
        const std::uint32_t zeros = random_below(4), ones = random_below(3);
        counts.insert(counts.end(), {zeros, ones});
        several.push_back(random_below(2) != 0 ? 1 : 0);
        rows.n += zeros + ones;
        rows.ones += ones;
    }
    rows.counts = counts.data();
    rows.n_values = n_values;
    for (const bool bins : {false, true}) {
        rows.several = bins ? several.data() : nullptr;
        agree(
            "scores of counts, " + std::to_string(n_values),
            [&] {
                std::vector<float> cuts(n_values), within(n_values);
                const wide::CountScores best = wide::score_counts(rows, cuts.data(), within.data());
                const wide::CountScores alone = wide::score_counts(rows, nullptr, nullptr);
                std::vector<double> found = numbers(cuts);
                append(found, numbers(within));
                append(found, {best.cut, best.within, alone.cut, alone.within});
                return found;
            },
            1e-5);
    }
    agree("which counts there are", [&] {
        const std::uint64_t found =
            wide::which_count(counts.data(), std::min<std::size_t>(counts.size(), 64));
        return std::vector<double>{static_cast<double>(found >> 32),
                                   static_cast<double>(found & 0xffffffffu)};
    });
}

// Lists of few rows, of which a part in the middle is looked at and divided.
struct FewLists {
    static constexpr std::size_t kCount = 11;
    std::size_t stride;
    std::vector<wide::few::Element> elements;
    std::vector<std::uint16_t> which{0, 1, 2, 3, 5, 6, 7, 8, 10};
    wide::few::Lists part;
    wide::few::Classes classes;

    FewLists(std::uint32_t n_rows, std::uint32_t begin, std::uint32_t n, std::size_t n_classes)
        : stride((n_rows + 32) / 32 * 32), elements(stride * kCount + 64) {
        std::vector<std::uint32_t> rows(n_rows), label(n_rows);
        for (std::uint32_t i = 0; i < n_rows; ++i) rows[i] = i;
        std::shuffle(rows.begin(), rows.end(), random_numbers);
        for (std::uint32_t& l : label) l = 2 * random_below(n_classes);
        for (std::size_t l = 0; l < kCount; ++l) {
            std::shuffle(rows.begin() + begin, rows.begin() + begin + n, random_numbers);
            for (std::uint32_t i = 0; i < n_rows; ++i) {
                const bool is_new = i == begin || random_below(l + 1) == 0;
                elements[l * stride + i] = static_cast<wide::few::Element>(
                    rows[i] | label[rows[i]] << wide::few::kRowBits |
                    (is_new ? wide::few::kNewValue : 0));
            }
        }
        part = {elements.data(), stride, which.data(), which.size(), begin, n};
        std::vector<std::uint32_t> counts(2 * n_classes);
        for (std::uint32_t i = begin; i < begin + n; ++i) ++counts[label[rows[i]]];
        for (std::uint32_t c = 0; c < counts.size(); ++c) {
            if (counts[c] == 0) continue;
            classes.numbers[classes.n] = static_cast<wide::few::Element>(c);
            classes.counts[classes.n++] = static_cast<wide::few::Element>(counts[c]);
        }
    }
};

void few_rows_are_scored(const FewLists& lists, const std::string& what) {
    if (lists.classes.n < 2) return;
    agree(
        "few scores, " + what,
        [&] {
            std::vector<float> scores(lists.stride * FewLists::kCount + 64);
            std::vector<std::uint8_t> has_cuts(FewLists::kCount);
            const float best =
                wide::few::score_cuts(lists.part, lists.classes, scores.data(), has_cuts.data());
            std::vector<double> found = numbers(has_cuts);
            found.push_back(best);
            for (std::size_t l = 0; l < lists.part.n_lists; ++l) {
                const float* const own = scores.data() + l * lists.stride;
                found.insert(found.end(), own, own + lists.part.n - 1);
                std::vector<std::uint16_t> cuts(lists.part.n);
                cuts.resize(wide::few::cuts_that_reach(own, lists.part.n, 0.0f, cuts.data()));
                append(found, numbers(cuts));
                for (std::uint32_t left = 0; left <= lists.part.n; ++left) {
                    found.push_back(
                        wide::few::count_class(lists.part.list(l), left, lists.classes.numbers[1]));
                }
            }
            return found;
        },
        1e-5);
}

// What is before and behind both sides is left alone.
void few_rows_are_divided(const FewLists& lists, std::size_t n_rows, const std::string& what) {
    std::vector<std::uint64_t> goes_left(wide::few::kMostRows / 64);
    for (std::uint64_t& word : goes_left) {
        word = std::uint64_t{random_numbers()} << 32 | random_numbers();
    }
    std::uint32_t n_left = 0;
    for (std::uint32_t i = 0; i < lists.part.n; ++i) {
        const std::uint32_t row = lists.part.list(0)[i] & wide::few::kRow;
        n_left += static_cast<std::uint32_t>(goes_left[row / 64] >> row % 64 & 1);
    }
    for (const int sides : {1, 2, 3}) {
        agree("few divided, " + what, [&] {
            std::vector<wide::few::Element> to(lists.elements.size(), 12345);
            wide::few::Element* const left =
                (sides & 1) != 0 ? to.data() + lists.part.begin : nullptr;
            wide::few::Element* const right =
                (sides & 2) != 0 ? to.data() + lists.part.begin + (sides == 3 ? n_left : 0)
                                 : nullptr;
            wide::few::divide(lists.part, goes_left.data(), n_rows, {left, right, n_left});
            return numbers(to);
        });
    }
}

// Of few values, so that cuts tie.
void handfuls_are_cut(std::size_t n) {
    const std::size_t n_features = 1 + random_below(5), n_classes = 2 + random_below(15);
    constexpr std::size_t most = wide::handful::kMostRows;
    std::vector<std::uint64_t> keys(n_features * most);
    for (std::uint64_t& key : keys) key = std::uint64_t{random_below(7)} << 61;
    std::vector<wide::handful::Rows> sets(n_features * most);
    agree("at most, of " + std::to_string(n), [&] {
        for (std::size_t f = 0; f < n_features; ++f) {
            wide::handful::at_most(keys.data() + f * most, n, sets.data() + f * most);
        }
        return numbers(sets);
    });
    wide::handful::Classes classes;
    classes.n = n_classes;
    classes.of_rows.fill(0);
    for (std::size_t i = 0; i < n; ++i) {
        classes.of_rows[random_below(n_classes)] |= static_cast<wide::handful::Rows>(1u << i);
    }
    for (int turn = 0; turn < 20; ++turn) {
        const auto some = static_cast<wide::handful::Rows>(random_below(std::size_t{1} << n));
        agree("best cut, of " + std::to_string(n), [&] {
            const wide::handful::Cut cut =
                wide::handful::best_cut(sets.data(), n_features, n, some, classes);
            return std::vector<double>{double(cut.found), double(cut.feature), double(cut.row)};
        });
    }
}

}  // namespace

void test_wide() {
    for (std::uint32_t n = 1; n < 140; n += n < 70 ? 1 : 23) {
        if (n < 40) codes_are_gathered(n);
        uncommon_bytes_are_marked(n);
        lists_are_divided(n);
        cuts_are_scored(n);
        counts_are_scored(n);
    }
    for (const std::uint32_t n_rows : {70, 128, 129, 256, 257, 500, 513, 1024, 1025, 2048}) {
        for (const std::uint32_t n : {2, 3, 8, 9, 15, 17, 31, 32, 33, 40, 65}) {
            for (const std::size_t n_classes : {2, 8}) {
                const FewLists lists(n_rows, random_below(n_rows - n), n, n_classes);
                const std::string what = std::to_string(n) + " of " + std::to_string(n_rows);
                few_rows_are_scored(lists, what);
                few_rows_are_divided(lists, n_rows, what);
            }
        }
    }
    for (int turn = 0; turn < 50; ++turn) {
        for (std::size_t n = 1; n <= wide::handful::kMostRows; ++n) handfuls_are_cut(n);
    }
    std::printf("wide: every loop at %d levels\n", static_cast<int>(wide::best_level()) + 1);
}

}  // namespace evertree
