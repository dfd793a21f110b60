// Several threads do all there is to do, each thing once, also when something fails.

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include "checks.hpp"
#include "crew.hpp"

namespace evertree {

namespace {

// Whether all of n items are done once, by workers that are there, in either way.
void expect_all_done(Crew& crew, std::size_t n) {
    for (const bool near : {false, true}) {
        NoWatch watch;
        std::vector<std::atomic<int>> done(n);
        std::atomic<bool> is_known = true;
        const auto job = [&](std::size_t worker, std::size_t item, Watch&) {
            ++done[item];
            if (worker >= crew.size()) is_known = false;
        };
        near ? crew.each_near(n, watch, job) : crew.each(n, watch, job);
        bool all_once = true;
        for (const auto& times : done) all_once &= times == 1;
        expect(all_once && is_known, std::to_string(n) + " items, " + std::to_string(crew.size()) +
                                         " workers: some were not done once");
    }
}

void every_item_once() {
    for (std::size_t n_workers = 1; n_workers <= 4; ++n_workers) {
        Crew crew(n_workers);
        for (std::size_t turn = 0; turn < 50; ++turn) {
            for (const std::size_t n : {0, 1, 2, 3, 7, 100, 1000}) expect_all_done(crew, n);
        }
    }
}

// The first of several failures is told, and the crew goes on.
void failing_items() {
    Crew crew(3);
    NoWatch watch;
    for (std::size_t turn = 0; turn < 200; ++turn) {
        const auto job = [&](std::size_t, std::size_t item, Watch&) {
            if (item % 40 == turn % 40) throw std::runtime_error("no");
        };
        bool failed = false;
        try {
            turn % 2 == 0 ? crew.each_near(100, watch, job) : crew.each(100, watch, job);
        } catch (const std::runtime_error&) {
            failed = true;
        }
        expect(failed, "a failure of an item was not told");
        expect_all_done(crew, 50);
    }
}

// Without memory for another thread, those that are there do the work.
void few_hands() {
    std::size_t n_smaller = 0;
    for (long allocations = 0; allocations < 8; ++allocations) {
        fails_after(allocations, [&] {
            Crew crew(3);
            allocations_until_failure = -1;
            n_smaller += crew.size() < 3 ? 1 : 0;
            expect_all_done(crew, 100);
        });
    }
    expect(n_smaller >= 2, "no thread was refused for want of memory");
}

}  // namespace

void test_crew() {
    every_item_once();
    failing_items();
    few_hands();
}

}  // namespace evertree
