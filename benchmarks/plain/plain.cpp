// The slow twin: Algorithms 1 and 2 of the paper as anyone would write them at first, insertions
// only. Every node that is built sorts its examples anew, once per feature. Nothing else is slow on
// purpose: it is C++ compiled like the core, has no Python around it, and copies nothing
// needlessly.
//
//   plain STREAM EPSILON MAX_DEPTH [PREDICTIONS]
//
// STREAM is a file of data.py's write_stream, all features numbers and none missing. The rule is
// the paper's counter rule with alpha = 0, k = 1; ties and thresholds are decided as
// ARCHITECTURE.md says, so that the tree is that of EverTree(epsilon=..., max_depth=...,
// min_impurity=0). The answer is one line of JSON. With PREDICTIONS each example is labelled before
// it comes in, one byte each.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr double kTolerance = 1e-12;  // for limits, the same as in the core

struct Stream {
    std::size_t n = 0, d = 0, n_classes = 0;
    std::vector<double> values;
    std::vector<std::int64_t> labels;

    const double* x(std::size_t i) const { return values.data() + i * d; }
};

template <class T>
std::vector<T> read(std::ifstream& file, std::size_t count) {
    std::vector<T> numbers(count);
    const auto bytes = static_cast<std::streamsize>(count * sizeof(T));
    if (!file.read(reinterpret_cast<char*>(numbers.data()), bytes)) {
        throw std::runtime_error("the stream ends too early: it is not whole");
    }
    return numbers;
}

Stream read_stream(const char* path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error(std::string(path) + " cannot be read");
    const auto head = read<std::int64_t>(file, 3);
    Stream stream{static_cast<std::size_t>(head[0]),
                  static_cast<std::size_t>(head[1]),
                  static_cast<std::size_t>(head[2]),
                  {},
                  {}};
    for (const std::int64_t n_categories : read<std::int64_t>(file, stream.d)) {
        if (n_categories != 0) throw std::runtime_error("a feature is not a number");
    }
    stream.values = read<double>(file, stream.n * stream.d);
    stream.labels = read<std::int64_t>(file, stream.n);
    return stream;
}

using Counts = std::vector<std::int64_t>;
using Rows = std::vector<std::uint32_t>;

struct Node {
    Counts counts;
    Rows rows;  // of a leaf
    std::size_t size = 0, built_size = 0, updates_since_build = 0;
    bool is_stuck = false;  // a leaf only because no split separates its examples
    std::size_t feature = 0;
    double threshold = 0;
    std::unique_ptr<Node> left, right;

    bool is_leaf() const { return left == nullptr; }
    bool is_pure() const {
        return std::count_if(counts.begin(), counts.end(), [](auto n) { return n > 0; }) <= 1;
    }
};

// Q_left/n_left + Q_right/n_right, which the best split makes largest: exactly, where it is close.
struct Purity {
    std::int64_t q_left = 0, n_left = 1, q_right = 0, n_right = 1;

    double rounded() const {
        return static_cast<double>(q_left) / static_cast<double>(n_left) +
               static_cast<double>(q_right) / static_cast<double>(n_right);
    }
    bool exceeds(const Purity& other) const {
        const double doubt = 1e-14 * static_cast<double>(n_left + n_right);
        const double difference = rounded() - other.rounded();
        if (difference > doubt || difference < -doubt) return difference > 0;
        return numerator() * other.denominator() > other.numerator() * denominator();
    }
    // Exact up to 33 million examples: the products of two of these have five factors.
    __extension__ using Wide = __int128;
    Wide numerator() const { return Wide{q_left} * n_right + Wide{q_right} * n_left; }
    Wide denominator() const { return Wide{n_left} * n_right; }
};

struct Split {
    bool found = false;
    std::size_t feature = 0;
    double threshold = 0;
    Purity purity;
};

class Tree {
  public:
    Tree(const Stream& stream, double epsilon, std::size_t max_depth)
        : stream_(stream), epsilon_(epsilon), max_depth_(max_depth), root_(build({}, 0)) {}

    // Algorithm 1.
    void insert(std::uint32_t i) {
        walk(i);
        for (Node* v : path_) {
            ++v->updates_since_build;
            ++v->size;
            ++v->counts[static_cast<std::size_t>(stream_.labels[i])];
        }
        path_.back()->rows.push_back(i);
        for (const Node* v : path_) {
            if (is_due(*v)) {
                rebuild_highest(size_class(v->built_size));
                return;
            }
        }
    }

    std::int64_t label(std::uint32_t i) {
        walk(i);
        const Counts& counts = path_.back()->counts;
        return std::max_element(counts.begin(), counts.end()) - counts.begin();
    }

    std::size_t rebuilds() const { return rebuilds_; }
    std::size_t rows_rebuilt() const { return rows_rebuilt_; }
    std::size_t nodes() const { return count(*root_); }

  private:
    void walk(std::uint32_t i) {
        path_.assign(1, root_.get());
        while (!path_.back()->is_leaf()) {
            const Node& v = *path_.back();
            path_.push_back(stream_.x(i)[v.feature] <= v.threshold ? v.left.get() : v.right.get());
        }
    }

    bool is_due(const Node& v) const {
        const auto updates = static_cast<double>(v.updates_since_build);
        if (updates > (epsilon_ + kTolerance) * static_cast<double>(v.built_size)) return true;
        return v.is_stuck && !v.is_pure() && is_separable(v.rows);
    }

    bool is_separable(const Rows& rows) const {
        const double* const first = stream_.x(rows[0]);
        return std::any_of(rows.begin(), rows.end(), [&](std::uint32_t row) {
            return !std::equal(first, first + stream_.d, stream_.x(row));
        });
    }

    static std::size_t size_class(std::size_t built_size) {
        return built_size == 0 ? 0 : std::bit_ceil(built_size);
    }

    // Lines 9 to 11: the highest node of the path that is not of a larger size class.
    void rebuild_highest(std::size_t size_limit) {
        std::size_t depth = 0;
        while (path_[depth]->built_size > size_limit) ++depth;
        Node& u = *path_[depth];
        Rows rows;
        collect(u, rows);
        ++rebuilds_;
        rows_rebuilt_ += rows.size();
        u = std::move(*build(std::move(rows), depth));
    }

    static void collect(const Node& v, Rows& rows) {
        rows.insert(rows.end(), v.rows.begin(), v.rows.end());
        if (v.is_leaf()) return;
        collect(*v.left, rows);
        collect(*v.right, rows);
    }

    // Algorithm 2.
    std::unique_ptr<Node> build(Rows rows, std::size_t depth) {
        auto v = std::make_unique<Node>();
        v->size = v->built_size = rows.size();
        v->counts.assign(stream_.n_classes, 0);
        for (const std::uint32_t row : rows) {
            ++v->counts[static_cast<std::size_t>(stream_.labels[row])];
        }
        const bool stops = v->size <= 1 || v->is_pure() || depth == max_depth_;
        const Split split = stops ? Split{} : best_split(rows, v->counts);
        if (!split.found) {
            v->is_stuck = !stops;
            v->rows = std::move(rows);
            return v;
        }
        const auto middle = std::partition(rows.begin(), rows.end(), [&](std::uint32_t row) {
            return stream_.x(row)[split.feature] <= split.threshold;
        });
        v->feature = split.feature;
        v->threshold = split.threshold;
        v->left = build(Rows(rows.begin(), middle), depth + 1);
        v->right = build(Rows(middle, rows.end()), depth + 1);
        return v;
    }

    Split best_split(const Rows& rows, const Counts& counts) {
        Split best;
        for (std::size_t feature = 0; feature < stream_.d; ++feature) {
            sorted_.clear();
            for (const std::uint32_t row : rows) {
                sorted_.push_back({stream_.x(row)[feature], stream_.labels[row]});
            }
            std::sort(sorted_.begin(), sorted_.end(),
                      [](const Value& a, const Value& b) { return a.value < b.value; });
            scan(feature, counts, best);
        }
        return best;
    }

    // Every threshold between two different values, in ascending order; the first best one stays.
    void scan(std::size_t feature, const Counts& counts, Split& best) {
        left_.assign(counts.size(), 0);
        right_ = counts;
        std::int64_t q_left = 0, q_right = 0;
        for (const std::int64_t n : right_) q_right += n * n;
        const auto n = static_cast<std::int64_t>(sorted_.size());
        for (std::int64_t i = 0; i + 1 < n; ++i) {
            const Value& at = sorted_[static_cast<std::size_t>(i)];
            const double next = sorted_[static_cast<std::size_t>(i) + 1].value;
            const auto label = static_cast<std::size_t>(at.label);
            q_left += 2 * left_[label]++ + 1;
            q_right -= 2 * right_[label]-- - 1;
            if (at.value == next) continue;
            const Purity purity{q_left, i + 1, q_right, n - i - 1};
            if (best.found && !purity.exceeds(best.purity)) continue;
            best = {true, feature, midpoint(at.value, next), purity};
        }
    }

    static double midpoint(double low, double high) {
        const double middle = (low + high) / 2;
        return middle < high ? middle : low;
    }

    static std::size_t count(const Node& v) {
        return v.is_leaf() ? 1 : 1 + count(*v.left) + count(*v.right);
    }

    struct Value {
        double value;
        std::int64_t label;
    };

    const Stream& stream_;
    const double epsilon_;
    const std::size_t max_depth_;
    std::size_t rebuilds_ = 0, rows_rebuilt_ = 0;
    std::vector<Node*> path_;
    std::vector<Value> sorted_;
    Counts left_, right_;
    std::unique_ptr<Node> root_;
};

void run(const char* path, double epsilon, std::size_t max_depth, const char* predictions_path) {
    const Stream stream = read_stream(path);
    std::string predictions(predictions_path ? stream.n : 0, '\0');
    const std::clock_t start = std::clock();  // CPU time, as on the other side
    Tree tree(stream, epsilon, max_depth);
    for (std::uint32_t i = 0; i < stream.n; ++i) {
        if (predictions_path && i > 0) predictions[i] = static_cast<char>(tree.label(i));
        tree.insert(i);
    }
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    if (predictions_path) std::ofstream(predictions_path, std::ios::binary) << predictions;
    std::printf("{\"seconds\": %.6f, \"rebuilds\": %zu, \"rows_rebuilt\": %zu, \"nodes\": %zu}\n",
                seconds, tree.rebuilds(), tree.rows_rebuilt(), tree.nodes());
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 4 || argc > 5) {
        std::cerr << "usage: plain STREAM EPSILON MAX_DEPTH [PREDICTIONS]\n";
        return 2;
    }
    try {
        run(argv[1], std::stod(argv[2]), std::stoul(argv[3]), argc > 4 ? argv[4] : nullptr);
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
    return 0;
}
