// The panel of trees, as Python sees it.
#pragma once

#include "tree_model.hpp"

namespace evertree {

class PyPanel : public Model<Panel> {
  public:
    // A candidate: (window, or -1 for all; max_gap; min_impurity; min_samples_split; max_depth, or
    // -1; whether it may rest), the longest windows first.
    PyPanel(std::size_t n_features, const nb::list& categorical, const nb::list& candidates,
            std::size_t n_workers, nb::object encoder)
        : Model(encoder, kinds_of(n_features, categorical), read_candidates(candidates),
                n_workers) {}

    // Which one answers, and one audit for each candidate, None for those that sleep.
    nb::object certify() {
        std::vector<std::optional<Audit>> audits(subject_.n_candidates());
        std::size_t best;
        {
            const std::shared_lock reading = lock_finished();
            best = subject_.best();
            const nb::gil_scoped_release release;
            PythonWatch watch;
            for (std::size_t i = 0; i < audits.size(); ++i) {
                if (!subject_.is_awake(i)) continue;
                audits[i] =
                    evertree::certify(subject_.upkeep(i), examples(), subject_.members(i), watch);
            }
        }
        nb::list result;
        for (const auto& audit : audits) result.append(audit ? in_words(*audit) : nb::none());
        return nb::make_tuple(best, result);
    }

    // (awake, accuracy, examples in its window, nodes)
    nb::object candidates() {
        struct Seen {
            bool awake;
            double accuracy;
            std::size_t n_members, n_nodes;
        };
        std::vector<Seen> all;
        {
            const std::shared_lock reading = lock_finished();
            for (std::size_t i = 0; i < subject_.n_candidates(); ++i) {
                const bool awake = subject_.is_awake(i);
                all.push_back({awake, subject_.accuracy(i), subject_.n_members(i),
                               awake ? subject_.upkeep(i).tree().n_nodes() : 0});
            }
        }
        nb::list result;
        for (const Seen& seen : all) {
            result.append(nb::make_tuple(seen.awake, seen.accuracy, seen.n_members, seen.n_nodes));
        }
        return result;
    }

    std::size_t best() {
        const std::shared_lock reading(gate_);
        return subject_.best();
    }

    // What each candidate says of x: a list, with EMPTY where it sleeps or has no examples.
    nb::object answers(nb::handle x) {
        const Row row = read(x);
        std::vector<nb::object> said(subject_.n_candidates(), empty_);
        {
            const std::shared_lock reading = lock_finished_with_ranks();
            for (std::size_t i = 0; i < said.size(); ++i) {
                if (!subject_.is_awake(i)) continue;
                const Tree& own = subject_.upkeep(i).tree();
                if (own.root().tally.size == 0) continue;
                said[i] = labels_[own.majority(own.answering(row.data()), labels_.ranks())];
            }
        }
        return as_list(said);
    }

  private:
    static std::vector<Panel::Candidate> read_candidates(const nb::list& list) {
        std::vector<Panel::Candidate> candidates;
        for (const nb::handle item : list) {
            const auto parts = nb::cast<nb::tuple>(item);
            const auto window = nb::cast<std::int64_t>(parts[0]);
            candidates.push_back(
                {window < 0 ? Panel::kAll : static_cast<std::uint64_t>(window),
                 limits_of(nb::cast<double>(parts[1]), nb::cast<double>(parts[2]),
                           nb::cast<std::uint32_t>(parts[3]), nb::cast<std::int32_t>(parts[4]), -1),
                 nb::cast<bool>(parts[5])});
        }
        return candidates;
    }
};

}  // namespace evertree
