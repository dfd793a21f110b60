// The tree, as Python sees it.
#pragma once

#include "certify.hpp"
#include "model.hpp"

namespace evertree {

// Numbers below zero stand for "no limit" and "the certified rule".
inline Limits limits_of(double max_gap, double min_impurity, std::uint32_t min_samples_split,
                        std::int32_t max_depth, double epsilon) {
    return {max_gap, min_impurity, min_samples_split,
            max_depth < 0 ? Limits::kNoDepthLimit : static_cast<std::uint32_t>(max_depth),
            epsilon < 0 ? Limits::kCertifiedRule : epsilon};
}

inline nb::object in_words(const Audit& audit) {
    nb::list breaches;
    for (const std::string& breach : audit.breaches) breaches.append(breach);
    return nb::make_tuple(breaches, audit.worst_gap, audit.worst_node, audit.nodes);
}

class PyTree : public Model<DynamicTree> {
  public:
    PyTree(std::size_t n_features, const nb::list& categorical, double max_gap, double min_impurity,
           std::uint32_t min_samples_split, std::int32_t max_depth, double epsilon,
           std::size_t n_workers, nb::object encoder)
        : Model(encoder, kinds_of(n_features, categorical),
                limits_of(max_gap, min_impurity, min_samples_split, max_depth, epsilon),
                n_workers) {}

    // In the form of a panel with one tree.
    nb::object certify() {
        Audit audit;
        {
            const std::shared_lock reading = lock_finished();
            const nb::gil_scoped_release release;
            PythonWatch watch;  // its own: readers may be many
            audit = evertree::certify(subject_, watch);
        }
        nb::list audits;
        audits.append(in_words(audit));
        return nb::make_tuple(0, audits);
    }
};

}  // namespace evertree
