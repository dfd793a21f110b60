// The border between Python and the core: objects in, numbers through, objects out.
//
// It translates and decides nothing about trees.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "panel_model.hpp"
#include "tree_model.hpp"

namespace evertree {

namespace {

// The requests that a tree and a panel of trees have in common.
template <typename Model>
nb::class_<Model> define(nb::module_& module, const char* name) {
    nb::class_<Model> type(module, name, nb::type_slots(collector_slots<Model>));
    type.def("insert", &Model::insert, nb::arg("x").none(), nb::arg("y").none(), nb::arg("id") = -1)
        .def("delete_value", &Model::delete_value, nb::arg("x").none(), nb::arg("y").none())
        .def("delete_id", &Model::delete_id, nb::arg("id"))
        .def("replace", &Model::replace, nb::arg("id"), nb::arg("x").none(), nb::arg("y").none())
        .def("insert_many", &Model::insert_many, nb::arg("X"), nb::arg("y"), nb::arg("ids").none())
        .def("delete_many_values", &Model::delete_many_values, nb::arg("X"), nb::arg("y"))
        .def("delete_many_ids", &Model::delete_many_ids, nb::arg("ids"))
        .def("label", &Model::label, nb::arg("x").none())
        .def("label_many", &Model::label_many, nb::arg("X"))
        .def("label_counts", &Model::label_counts, nb::arg("x").none())
        .def("rebuild", &Model::rebuild)
        .def("structure", &Model::structure)
        .def("nodes", &Model::nodes)
        .def("stats", &Model::stats)
        .def("size", &Model::size)
        .def("contains", &Model::contains, nb::arg("id"))
        .def("examples", &Model::examples_now, nb::arg("answering"))
        .def("example", &Model::example, nb::arg("id"));
    return type;
}

}  // namespace

NB_MODULE(_core, module) {
    FloatArray::ask_numpy();
    // What a tree without examples answers: an object that cannot be anybody's label.
    module.attr("EMPTY") = nb::module_::import_("builtins").attr("object")();
    define<PyTree>(module, "Tree")
        .def(nb::init<std::size_t, const nb::list&, double, double, std::uint32_t, std::int32_t,
                      double, std::size_t, nb::object>(),
             nb::arg("n_features"), nb::arg("categorical"), nb::arg("max_gap"),
             nb::arg("min_impurity"), nb::arg("min_samples_split"), nb::arg("max_depth"),
             nb::arg("epsilon"), nb::arg("n_workers"), nb::arg("encoder"))
        .def("certify", &PyTree::certify);
    define<PyPanel>(module, "Panel")
        .def(nb::init<std::size_t, const nb::list&, const nb::list&, std::size_t, nb::object>(),
             nb::arg("n_features"), nb::arg("categorical"), nb::arg("candidates"),
             nb::arg("n_workers"), nb::arg("encoder"))
        .def("certify", &PyPanel::certify)
        .def("candidates", &PyPanel::candidates)
        .def("best", &PyPanel::best)
        .def("answers", &PyPanel::answers, nb::arg("x").none());
}

}  // namespace evertree
