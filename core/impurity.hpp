// Impurity: what a set of labels weighs, and which of two splits leaves less of it.
//
// A set with class counts n_c has size n, squares Q = sum n_c^2, Gini index g = 1 - Q/n^2 and
// mass M = n*g = n - Q/n. A split leaves the mass of its two sides, and for two splits of one set
//     gain(tau) - gain(sigma) = (mass left by sigma - mass left by tau) / n,
// so the best split is the one that leaves the least mass. Equal masses must compare equal and the
// comparison must agree with exact fractions: doubles decide when they are clearly apart, integers
// when they are not. The maintenance rule uses only three facts, true for this mass: an insertion
// never lowers the mass that a split leaves, a deletion lowers it by less than kMassPerDeletion,
// and many deletions together lower it by no more than `mass_lost`.
//
// Must not know: examples, nodes, rules.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace evertree {

// Size and sum of squared class counts: all that Gini needs to know of a set.
struct Tally {
    std::uint64_t size = 0;
    std::uint64_t squares = 0;

    // `same` is the number of examples of that class before the change.
    void add(std::uint64_t same) {
        squares += 2 * same + 1;
        ++size;
    }
    void remove(std::uint64_t same) {
        squares -= 2 * same - 1;
        --size;
    }
    bool operator==(const Tally&) const = default;
};

inline constexpr double kMassPerDeletion = 2.0;

// Limits are doubles that people write as decimals: the Gini 8/25 must count as reaching 0.32,
// whose double lies above it. Every comparison with a limit allows this much, on the safe side.
inline constexpr double kTolerance = 1e-12;

inline bool is_pure(const Tally& t) { return t.squares == t.size * t.size; }

inline double mass(const Tally& t) {
    if (t.size == 0 || is_pure(t)) return 0.0;
    return static_cast<double>(t.size * t.size - t.squares) / static_cast<double>(t.size);
}

inline double gini(const Tally& t) {
    return t.size == 0 ? 0.0 : mass(t) / static_cast<double>(t.size);
}

// How much less any split leaves of a set with the tally `built` when `gone` of the `own` examples
// of one class are deleted, if all splits left `floor` or more; what several classes lose, adds up.
// Fact 3 of paper/MAP.md: no more than the mass of those that go and of as many others as a split
// may have put with them. All other classes are taken for one, of which a split leaves `least` or
// more. With u examples on that side, 2*gone*(u - gone)/u; the largest u is the root of a
// quadratic. Its square root would make 1e-8 of a rounding error of 1e-16 where the gain is zero;
// to take `least` lower by two millionths of the set is as true, and prevents that.
inline double mass_lost(const Tally& built, double floor, std::uint64_t own, std::uint64_t gone) {
    if (gone == 0) return 0.0;
    const Tally rest{built.size - own, built.squares - own * own};
    const auto d = static_cast<double>(std::min(gone, own)), a = static_cast<double>(own);
    const auto b = static_cast<double>(rest.size), n = a + b;
    const double as_two = 2 * a * b / n;
    const double least = std::max(floor - mass(rest), as_two - 2 * (mass(built) - floor));
    const double y = n * (as_two - least) / 2 + 1e-6 * n * n;  // n*n/2 times what is gained at most
    const double root = std::sqrt(y * y + 4 * d * (a - d) * y);
    const double side = n * (y + 2 * d * a + root) / (2 * (y + a * a));
    return 2 * d * (1 - d / std::min(side, d + b));
}

// The two sides of a split.
struct Sides {
    Tally left;
    Tally right;
};

inline double mass(const Sides& s) { return mass(s.left) + mass(s.right); }

// n - mass: the double that ranks the splits of one set. Both sides must be non-empty.
inline double purity(const Sides& s) {
    return static_cast<double>(s.left.squares) / static_cast<double>(s.left.size) +
           static_cast<double>(s.right.squares) / static_cast<double>(s.right.size);
}

namespace exact {

// Sign of a/b - c/d for positive b, d, by Euclid's algorithm: no product, so nothing overflows.
inline int compare_fractions(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d) {
    for (;;) {
        const std::uint64_t whole_ab = a / b, whole_cd = c / d;
        if (whole_ab != whole_cd) return whole_ab < whole_cd ? -1 : 1;
        a -= whole_ab * b;
        c -= whole_cd * d;
        if (a == 0 || c == 0) return (a != 0 ? 1 : 0) - (c != 0 ? 1 : 0);
        // Both in (0, 1): a/b < c/d exactly when d/c < b/a.
        const std::uint64_t a_next = d, b_next = c, c_next = b, d_next = a;
        a = a_next, b = b_next, c = c_next, d = d_next;
    }
}

// Q_left/n_left + Q_right/n_right as whole + part/(n_left*n_right).
struct Purity {
    std::uint64_t whole, part, unit;

    explicit Purity(const Sides& s)
        : whole(s.left.squares / s.left.size + s.right.squares / s.right.size),
          part(s.left.squares % s.left.size * s.right.size +
               s.right.squares % s.right.size * s.left.size),
          unit(s.left.size * s.right.size) {
        whole += part / unit;
        part %= unit;
    }
};

}  // namespace exact

// Whether `a` leaves strictly less mass than `b`; both are splits of one set with two non-empty
// sides. Exact for every set that fits (fewer than 2^31 examples).
inline bool leaves_less(const Sides& a, const Sides& b) {
    const double purity_a = purity(a), purity_b = purity(b);
    const double doubt = 1e-14 * static_cast<double>(a.left.size + a.right.size);
    if (purity_a > purity_b + doubt) return true;
    if (purity_a < purity_b - doubt) return false;
    const exact::Purity exact_a(a), exact_b(b);
    if (exact_a.whole != exact_b.whole) return exact_a.whole > exact_b.whole;
    return exact::compare_fractions(exact_a.part, exact_a.unit, exact_b.part, exact_b.unit) > 0;
}

}  // namespace evertree
