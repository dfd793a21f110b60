// Panel: several trees over one store of examples, each following a window of the latest ones; it
// answers with the tree that has been right most often of late. "Test, then train": each insertion
// first tests every tree that is awake, and its accuracy fades with the next ones.
//
// A tree costs time only while it may matter:
//   - a window that has not filled up yet would hold what the tree of all examples holds: it sleeps
//   - a tree that has long been clearly worse than the best one sleeps. It is woken, and built anew
//     from the store, when its rest is over (each longer than the last, while it keeps losing) or
//     when the best tree has become clearly worse than it was: something has changed.
// Short windows are cheap and the first to see a change, so the candidate says whether it may rest.
//
// One insertion, deletion or batch is one update of all trees, all or nothing.
//
// Must not know: Python, files, clocks, randomness.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "examples.hpp"
#include "limits.hpp"
#include "update.hpp"
#include "upkeep.hpp"

namespace evertree {

class Panel {
  public:
    static constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();

    struct Candidate {
        std::uint64_t window;  // the latest so many examples; one deleted makes room for a new one
        Limits limits;
        bool may_rest;
    };

    // The longest windows first: of equally good trees the first one answers. Examples that the
    // longest window does not hold any more are given up.
    Panel(std::span<const Kind> kinds, std::span<const Candidate> candidates,
          std::size_t n_workers);

    const Examples& examples() const { return examples_; }
    void index_values() { examples_.index_values(); }
    std::span<const Kind> kinds() const { return kinds_; }

    std::size_t n_candidates() const { return seats_.size(); }
    const Candidate& candidate(std::size_t i) const { return seats_[i].candidate; }
    bool is_awake(std::size_t i) const { return seats_[i].upkeep != nullptr; }
    const Upkeep& upkeep(std::size_t i) const { return *seats_[i].upkeep; }  // of one awake
    // As if it had been followed for ever; 0 before the first test.
    double accuracy(std::size_t i) const;
    std::vector<Slot> members(std::size_t i) const;
    std::size_t n_members(std::size_t i) const { return seats_[i].record.n_members; }
    std::vector<Slot> active() const { return members(0); }  // as they came
    // The tree that answers now; it is awake.
    std::size_t best() const { return best_; }
    const Tree& tree() const { return upkeep(best_).tree(); }
    // Before any of the trees is looked at: on the way of x, or everywhere (see Upkeep).
    bool is_finished() const;
    void finish_way(const double* x, Watch& watch);
    void finish(Watch& watch);

    // Examples that came and went, and the work of all trees on them.
    Stats stats() const;

    // `ranks` order the classes of the active examples, as Tree::majority wants them.
    void insert(std::span<const Insertion> inserted, std::span<const std::uint32_t> ranks,
                Watch& watch);
    void remove(std::span<const Slot> slots, Watch& watch);
    // A correction keeps the place of the example among the others, and tests nothing.
    void replace(Slot slot, const Insertion& insertion, Watch& watch);

    // Every tree that is awake as Build makes it for its window, whatever the history.
    void rebuild(Watch& watch);

    bool has_class(ClassId label) const {
        return label < n_of_class_.size() && n_of_class_[label] > 0;
    }
    // The places kept for examples, also for some that have gone: a few times as many at most.
    std::size_t n_places() const { return order_.size(); }
    // Whether the last update took the last example of some class away.
    bool class_has_gone() const { return class_has_gone_; }

  private:
    // How a candidate has done. An update works on a copy, which is kept if the update succeeds.
    struct Record {
        double accuracy = 0;          // of the last tests, faded: a sum that starts at 0
        std::uint64_t n_tests = 0;    // of so many
        std::uint64_t n_behind = 0;   // for so many tests without a break it was clearly worse
        std::uint64_t rest = 0;       // how many insertions its last rest was to last
        std::uint64_t wakes_at = 0;   // the number of insertions at which its rest is over
        double accuracy_of_best = 0;  // when it went to rest
        std::size_t begin = 0;        // its window: the active ones of order_ from here on
        std::size_t n_members = 0;    // so many
        bool awake = false;
    };
    struct Seat {
        Candidate candidate;
        Record record;
        Record next;                     // the copy
        std::unique_ptr<Upkeep> upkeep;  // none while it sleeps
        std::unique_ptr<Upkeep> woken;   // of the update at work
    };

    void start(std::span<const Insertion> inserted);
    void unstage() noexcept;
    void test(Slot slot, std::span<const std::uint32_t> ranks, Watch& watch);
    void decide_who_sleeps();
    static void wake(Record& next, const Record& best);
    void wake_if_none_can_answer();
    const Record& best_record() const;
    void move_window(Seat& seat, std::vector<Slot>& leaving) const;
    std::span<const Slot> entering(const Seat& seat) const;
    // `leaving` is sorted.
    void prepare(Seat& seat, std::span<const Slot> leaving, std::span<const Slot> entering,
                 Watch& watch);
    void cancel() noexcept;
    void commit() noexcept;
    void give_up_old() noexcept;
    void admit(Slot slot, std::size_t place) noexcept;
    void strike_out(Slot slot) noexcept;
    void compact() noexcept;

    std::vector<Kind> kinds_;
    std::size_t n_workers_;
    Examples examples_;
    std::vector<Seat> seats_;
    std::size_t best_ = 0;
    std::uint64_t n_insertions_ = 0;
    std::uint64_t n_corrections_ = 0;
    std::uint64_t n_removals_ = 0;
    Stats retired_;                          // the work of trees that went to rest
    std::vector<Slot> order_;                // as they came; kNoSlot where one has gone
    std::vector<std::uint32_t> places_;      // by slot: its place in order_
    std::vector<std::uint32_t> n_of_class_;  // active examples
    std::size_t given_up_ = 0;               // of order_, all before here

    // One update at work; kept for their memory.
    std::vector<double> x_;  // of the example at hand
    std::vector<Change> changes_;
    std::vector<Slot> leaving_;
    std::vector<Slot> staged_;
    std::size_t n_prepared_ = 0;
    bool class_has_gone_ = false;
};

}  // namespace evertree
