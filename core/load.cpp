// SplitSearch, the first part: the features of a set, gathered and put into sorted or counted form.

#include <algorithm>
#include <bit>

#include "split.hpp"

namespace evertree {

namespace {

// From so many rows a value and class on, counting pays: at all, which costs a change of form
// later, and still. Sorted rows of two classes are searched many at a time, so counting pays later
// there.
std::size_t rows_to_count(std::size_t n_classes) { return n_classes == 2 ? 128 : 2; }
std::size_t rows_to_stay_counted(std::size_t n_classes) { return n_classes == 2 ? 8 : 2; }
constexpr std::size_t kCountFrom = 256;                       // rows
constexpr std::size_t kGatherFewFrom = std::size_t{1} << 17;  // for the sake of memory
constexpr std::size_t kManyFeatures = 40;

}  // namespace

void SplitSearch::reserve(std::size_t n) {
    const std::size_t n_elements = n * kinds_.size();
    if (capacity_rows_ < n) {
        capacity_rows_ = 0;
        const std::size_t capacity = n < 65536 ? std::bit_ceil(n) : n;
        rows_.reset(new std::uint32_t[capacity]);
        spare_.reset(new std::uint32_t[capacity + wide::kPadding]);
        goes_left_.reset(new std::uint8_t[capacity]);
        capacity_rows_ = capacity;
    }
    if (capacity_elements_ < n_elements) {
        capacity_elements_ = 0;
        const std::size_t capacity = n < 65536 ? std::bit_ceil(n_elements) : n_elements;
        elements_.reset(new std::uint32_t[capacity]);  // not touched before it is used
        capacity_elements_ = capacity;
    }
    n_gathered_ = n < kGatherFewFrom || kinds_.size() >= kManyFeatures ? 8 : 4;
    // Each by its own size: any of these may fail, and the next build must find that out.
    if (keys_.size() < n * n_gathered_) keys_.resize(n * n_gathered_);
    if (x_.size() < n) x_.resize(n);
    if (tags_.size() < n) tags_.resize(n);
    if (own_tags_.size() < n) own_tags_.resize(n);
    if (cuts_.size() < n) cuts_.resize(n);
    if (ones_left_.size() < n) ones_left_.resize(n);
    if (lists_.size() < kinds_.size()) lists_.resize(kinds_.size());
    if (glanced_.size() < kinds_.size()) glanced_.resize(kinds_.size());
    if (inverse_.size() > n) return;
    // inverse_back[size - n + i] is 1/(n - 1 - i): what remains on the right of i + 1 rows.
    const std::size_t size = std::bit_ceil(n + 1);
    rough_inverse_.resize(size);
    rough_inverse_back_.resize(size);
    inverse_.resize(size);  // the last: its size says that all three are there
    for (std::size_t i = 0; i < size; ++i) {
        inverse_[i] = 1.0 / static_cast<double>(std::max<std::size_t>(i, 1));
        rough_inverse_[i] = static_cast<float>(inverse_[i]);
        rough_inverse_back_[size - 1 - i] = rough_inverse_[i];
    }
}

void SplitSearch::release() {
    capacity_rows_ = capacity_elements_ = 0;
    rows_.reset();
    spare_.reset();
    goes_left_.reset();
    elements_.reset();
    keys_ = {};
    x_ = {};
    tags_ = own_tags_ = {};
    sorter_.release();
    ranks_ = {};
    values_ = {};
    counts_ = {};
    counts_free_ = {};
    inverse_ = {};
    rough_inverse_ = rough_inverse_back_ = {};
    cuts_ = ones_left_ = {};
}

Segment SplitSearch::load(const Examples& examples, std::span<const Slot> slots,
                          std::span<const std::uint32_t> classes, std::uint32_t n_classes,
                          Watch& watch) {
    classes_ = classes;
    n_ = slots.size();
    n_classes_ = n_classes;
    reserve(n_);
    for (std::uint32_t row = 0; row < n_; ++row) {
        rows_[row] = row;
        x_[row] = examples.x(slots[row]);
        tags_[row] = row << 1 | (n_classes == 2 ? classes[row] : 0);
    }
    columns_.assign(kinds_.size(), Column{});
    ranks_.clear();
    values_.clear();
    counts_size_ = 0;
    features_.clear();
    counts_free_.clear();
    for (std::uint32_t block = 0; block < counts_.size(); ++block) counts_free_.push_back(block);

    const std::size_t n_features = kinds_.size();
    for (std::size_t first = 0; first < n_features; first += n_gathered_) {
        const std::size_t count = std::min(n_features - first, n_gathered_);
        wide::Column columns[wide::kColumns];
        wide::gather_keys(x_.data(), n_, first, count, keys_.data(), columns);
        watch.worked(n_ * count);
        for (std::size_t c = 0; c < count; ++c) {
            load_column(static_cast<std::uint32_t>(first + c), {keys_.data() + c * n_, n_},
                        columns[c], watch);
        }
    }
    Segment whole;
    whole.end = static_cast<std::uint32_t>(n_);
    whole.n_features = static_cast<std::uint32_t>(features_.size());
    if (counts_size_ > 0) {
        whole.counts = take_counts();
        for (const std::uint32_t entry : features_) {
            if ((entry & kCounted) == 0) continue;
            const Column& column = columns_[entry & ~kCounted];
            count(column, whole, counts_[whole.counts].data() + column.counts_at);
            watch.worked(n_);
        }
    }
    return whole;
}

void SplitSearch::load_column(std::uint32_t feature, std::span<const std::uint64_t> keys,
                              const wide::Column& common, Watch& watch) {
    if (common.differing == 0) return;
    columns_[feature].any_missing = is_missing(value_of_key(common.largest));
    if (n_ >= kCountFrom && load_counted(feature, keys)) return;
    watch.worked(2 * n_);
    sorter_.sort(keys, common.differing, tags_.data(), tag_bits(), watch);
    sorter_.elements(elements(feature));
    features_.push_back(feature);
}

bool SplitSearch::load_counted(std::uint32_t feature, std::span<const std::uint64_t> keys) {
    Column& column = columns_[feature];
    const std::size_t ranks_at = ranks_.size();
    ranks_.resize(ranks_at + n_);
    if (!distinct_.rank(keys, n_ / n_classes_ / rows_to_count(n_classes_),
                        ranks_.data() + ranks_at)) {
        ranks_.resize(ranks_at);
        return false;
    }
    column.n_values = static_cast<std::uint32_t>(distinct_.keys().size());
    column.ranks_at = static_cast<std::uint32_t>(ranks_at / n_);
    column.values_at = static_cast<std::uint32_t>(values_.size());
    column.counts_at = static_cast<std::uint32_t>(counts_size_);
    for (const std::uint64_t key : distinct_.keys()) values_.push_back(value_of_key(key));
    counts_size_ += std::size_t{column.n_values} * n_classes_;
    features_.push_back(feature | kCounted);
    return true;
}

bool SplitSearch::counting_pays(const Column& column, std::size_t n_rows) const {
    return rows_to_stay_counted(n_classes_) * column.n_values * n_classes_ <= n_rows;
}

bool SplitSearch::any_counting_pays(const Segment& segment, std::size_t n_rows) const {
    const std::uint32_t* const list = features_.data() + segment.features_at;
    return std::any_of(list, list + segment.n_features, [&](std::uint32_t entry) {
        return (entry & kCounted) != 0 && counting_pays(columns_[entry & ~kCounted], n_rows);
    });
}

}  // namespace evertree
