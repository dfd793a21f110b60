// What the tests of the core share: a way to say what should hold, failures on order, portraits.
#pragma once

#include <bit>
#include <cstdio>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "upkeep.hpp"
#include "watch.hpp"
#include "wide/wide.hpp"

namespace evertree {

inline long allocations_until_failure = -1;  // -1: never
inline int failures = 0;

inline void expect(bool holds, const std::string& what) {
    if (holds) return;
    ++failures;
    std::printf("FAILED: %s\n", what.c_str());
}

// Whether it fails if memory runs out after so many allocations.
template <typename Do>
bool fails_after(long allocations, Do do_this) {
    bool failed = false;
    allocations_until_failure = allocations;
    try {
        do_this();
    } catch (const std::bad_alloc&) {
        failed = true;
    }
    allocations_until_failure = -1;
    return failed;
}

// With the instructions of every level that this processor has, the plain ones first.
template <typename Do>
void each_level(Do do_this) {
    for (const auto level :
         {wide::Level::plain, wide::Level::avx2, wide::Level::avx512, wide::Level::avx512_icl}) {
        if (level > wide::best_level()) continue;
        wide::level = level;
        do_this();
    }
    wide::level = wide::best_level();
}

struct NoWatch : Watch {
    void poll() override {}
};

struct FailingWatch : Watch {
    explicit FailingWatch(long n) : left(n) {}
    void poll() override {
        if (left-- == 0) throw std::runtime_error("interrupted");
    }
    long left;
};

// Everything that can be seen of a tree, as text.
inline std::string portrait(const Upkeep& subject) {
    std::string text;
    std::vector<NodeId> stack{kRoot};
    while (!stack.empty()) {
        const Node& node = subject.tree()[stack.back()];
        stack.pop_back();
        text += std::to_string(static_cast<int>(node.split.kind)) + "/" +
                std::to_string(node.split.feature) + "/" +
                std::to_string(std::bit_cast<std::uint64_t>(node.split.value)) + "/" +
                std::to_string(node.updates_since_build) + "/" +
                std::to_string(node.deletions_since_build) + "/" + std::to_string(node.built_size) +
                ":";
        for (const Departures& each : subject.tree().departures(node)) {
            text += std::to_string(each.built) + "-" + std::to_string(each.gone) + ",";
        }
        for (const ClassCount& c : subject.tree().counts(node)) {
            text += std::to_string(c.label) + "=" + std::to_string(c.count) + ",";
        }
        if (node.is_leaf()) continue;
        stack.push_back(node.right());
        stack.push_back(node.left);
    }
    const Stats& s = subject.stats();
    return text + ";" + std::to_string(s.inserts) + "," + std::to_string(s.deletes) + "," +
           std::to_string(s.rebuilds) + "," + std::to_string(s.rows_rebuilt);
}

void test_panel();
void test_packing();
void test_copies();
void test_crew();
void test_memory();
void test_wide();

}  // namespace evertree
