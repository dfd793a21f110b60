// The panel: every tree that is awake is audited against the examples that a plain list says it
// holds, while rows come (alone, in batches larger than some windows), are corrected and deleted,
// and the world changes so that trees go to rest and wake. Every allocation of some updates fails.

#include <algorithm>
#include <deque>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "certify.hpp"
#include "checks.hpp"
#include "panel.hpp"

namespace evertree {

namespace {

const std::vector<Kind> kKinds{Kind::real, Kind::categorical, Kind::real};
const std::vector<std::uint32_t> kRanks{0, 1, 2, 3};

std::vector<Panel::Candidate> candidates(std::uint64_t longest) {
    Limits loose, shallow;
    loose.max_gap = 0.3;
    shallow.max_depth = 2;
    return {{longest, shallow, true},
            {longest, Limits{}, true},
            {300, loose, true},
            {20, loose, false}};
}

// The slow twin of who holds what: for each window its ids, oldest first.
class PlainWindows {
  public:
    explicit PlainWindows(const Panel& panel) : ids_(panel.n_candidates()) {
        for (std::size_t i = 0; i < ids_.size(); ++i) windows_.push_back(panel.candidate(i).window);
    }
    void insert(ExampleId id) {
        for (std::size_t i = 0; i < ids_.size(); ++i) {
            ids_[i].push_back(id);
            if (ids_[i].size() > windows_[i]) ids_[i].pop_front();
        }
    }
    void remove(ExampleId id) {
        for (auto& window : ids_) std::erase(window, id);
    }
    const std::deque<ExampleId>& operator[](std::size_t i) const { return ids_[i]; }

  private:
    std::vector<std::uint64_t> windows_;
    std::vector<std::deque<ExampleId>> ids_;
};

std::string portrait(Panel& panel) {
    NoWatch watch;
    panel.finish(watch);
    std::string text = std::to_string(panel.examples().size()) + " " + std::to_string(panel.best());
    for (std::size_t i = 0; i < panel.n_candidates(); ++i) {
        text += "|" + std::to_string(panel.accuracy(i)) + ";";
        for (const Slot slot : panel.members(i)) {
            text += std::to_string(panel.examples().id(slot)) + ",";
        }
        if (panel.is_awake(i)) text += portrait(panel.upkeep(i));
    }
    return text;
}

void check(Panel& panel, const PlainWindows& plain, const std::string& where) {
    NoWatch watch;
    panel.finish(watch);
    for (std::size_t i = 0; i < panel.n_candidates(); ++i) {
        const std::vector<Slot> members = panel.members(i);
        std::deque<ExampleId> ids;
        for (const Slot slot : members) ids.push_back(panel.examples().id(slot));
        expect(ids == plain[i], where + ": candidate " + std::to_string(i) + " holds others");
        if (!panel.is_awake(i)) continue;
        const Audit audit = certify(panel.upkeep(i), panel.examples(), members, watch);
        for (const std::string& breach : audit.breaches) {
            expect(false, where + ": candidate " + std::to_string(i) + ", " + breach);
        }
    }
}

struct Row {
    std::vector<double> x;
    Insertion insertion;
};

class Stream {
  public:
    // Every 2,500 rows the first feature means something else.
    Row next() {
        Row row;
        for (int j = 0; j < 3; ++j) row.x.push_back(random_() % 20 == 0 ? kMissing : pick(7));
        const bool turned = (n_ / 2500) % 2 == 1;
        const bool high = row.x[0] > 3;
        const auto label = static_cast<ClassId>(high != turned) + (pick(10) == 0 ? 2u : 0u);
        row.insertion = {nullptr, label, n_++};
        return row;
    }
    std::uint32_t pick(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
    ExampleId n_rows() const { return n_; }

  private:
    std::mt19937 random_{5};
    ExampleId n_ = 0;
};

std::vector<Insertion> insertions_of(std::vector<Row>& rows) {
    std::vector<Insertion> insertions;
    for (Row& row : rows) {
        row.insertion.x = row.x.data();
        insertions.push_back(row.insertion);
    }
    return insertions;
}

// One update, tried with each of its allocations failing first if `hostile`.
template <typename Update>
long carry_out(Panel& panel, bool hostile, Update update) {
    for (long chance = 0; hostile; ++chance) {
        const std::string before = portrait(panel);
        if (!fails_after(chance, update)) return chance;
        expect(portrait(panel) == before, "the panel was changed by a failure");
    }
    update();
    return 0;
}

std::set<std::string> follow(std::uint64_t longest, long& n_failures) {
    Panel panel(kKinds, candidates(longest), 1);
    PlainWindows plain(panel);
    Stream stream;
    NoWatch watch;
    std::set<std::string> sleepers;  // who was asleep, seen so far
    for (int step = 0; stream.n_rows() < 12000 && failures < 10; ++step) {
        const bool hostile = step % 997 == 5;
        const std::uint32_t what = stream.pick(100);
        const ExampleId any = stream.pick(static_cast<std::uint32_t>(stream.n_rows() + 1));
        const Slot slot = panel.examples().find(any);
        if (what < 10 && slot != kNoSlot) {
            n_failures += carry_out(panel, hostile, [&] { panel.remove({&slot, 1}, watch); });
            plain.remove(any);
        } else if (what < 15 && slot != kNoSlot) {
            Row row = stream.next();
            const Insertion corrected{row.x.data(), row.insertion.label, any};
            n_failures += carry_out(panel, hostile, [&] { panel.replace(slot, corrected, watch); });
        } else {
            std::vector<Row> rows(what == 99 ? 1 + stream.pick(400) : 1);
            for (Row& row : rows) row = stream.next();
            const std::vector<Insertion> inserted = insertions_of(rows);
            n_failures += carry_out(panel, hostile, [&] { panel.insert(inserted, kRanks, watch); });
            for (const Insertion& i : inserted) plain.insert(i.id);
        }
        expect(panel.n_places() <= 2 * panel.examples().size() + 64, "old places are kept");
        std::string asleep;
        for (std::size_t i = 0; i < panel.n_candidates(); ++i) {
            if (!panel.is_awake(i)) asleep += std::to_string(i);
        }
        const bool is_new = sleepers.insert(asleep).second;
        if (is_new || step % 100 == 0 || hostile) {
            check(panel, plain, "step " + std::to_string(step));
        }
    }
    return sleepers;
}

// All of the window that answers is deleted, and the others that are awake are empty, too.
long empty_the_answering_window() {
    Panel panel(kKinds, candidates(Panel::kAll), 1);
    Stream stream;
    NoWatch watch;
    while (panel.best() != 3 || panel.is_awake(0) || panel.is_awake(1) || panel.is_awake(2)) {
        std::vector<Row> row{stream.next()};
        panel.insert(insertions_of(row), kRanks, watch);
        if (stream.n_rows() > 20000) break;
    }
    expect(panel.best() == 3, "the short window never answered alone");
    const std::vector<Slot> window = panel.members(3);
    const long n_failures = carry_out(panel, true, [&] { panel.remove(window, watch); });
    expect(panel.tree().root().tally.size > 0, "an empty tree answers");
    expect(panel.best() == 0 && panel.is_awake(0), "the tree of all was not woken");
    panel.finish(watch);
    const Audit audit = certify(panel.upkeep(0), panel.examples(), panel.members(0), watch);
    expect(audit.breaches.empty(), "the woken tree is not that of what is left");
    return n_failures;
}

}  // namespace

void test_panel() {
    long n_failures = empty_the_answering_window();
    const auto unlimited = follow(Panel::kAll, n_failures);
    const auto limited = follow(2000, n_failures);
    expect(unlimited.size() > 4 && unlimited.contains("01"), "the long windows never slept");
    expect(limited.contains("23"), "the short windows were awake before they were full");
    expect(n_failures > 20, "too few allocations failed: " + std::to_string(n_failures));
    std::printf("panel: %zu ways to sleep, %ld failures survived\n", unlimited.size(), n_failures);
}

}  // namespace evertree
