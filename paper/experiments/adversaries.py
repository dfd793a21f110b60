"""Section 4 of the paper: the work and the space of the tree on the sequences of the lower bounds.

`make adversaries` runs both games and keeps a picture in paper/results.

Theorem 4.2 (time). Each round hides another feature j and asks one question. An algorithm that is
always right reads entries until it has met j, or has excluded one half of the features: after t
reads it has met j with probability t/d, so it reads at least 3d/8 entries in expectation. That is
the lower line. The upper line is Lemma 3.6 with the constants of the certified rule:
(2/ε' + 1)·(⌈log₂ n⌉ + 1) rows of d values per update, ε' = min(β/(2+β), α/4, 1/(k+1)). The work of
the tree is what its stats() counts: rows rebuilt, times d.

Theorem 4.1 (space). Bob reads any of Alice's N·D bits off the tree, so something in it must be N·D
bits large; the tree keeps 2k·(N+D) examples of D + O(log N) values.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from evertree import EverTree
from evertree.streams import Label, apply, hidden_feature, index_game, index_width
from experiments.keep import keep

WIDTHS = (4, 8, 16, 32, 64, 128, 256, 512)
SIZES = (2, 3, 4, 6, 8, 12, 16)
COLOURS = {"tree": "#1f6f8b", "lower": "#b03a2e", "upper": "#7d7d7d"}


def time_game(d: int, rounds: int, k: int = 1, seed: int = 0) -> dict[str, Any]:
    """Play the game of Theorem 4.2; count right answers, updates and values read by rebuilds."""
    tree = EverTree(d, min_samples_split=k + 1)
    questions = right = updates = 0
    course: list[tuple[int, int]] = []
    for request in hidden_feature(d, rounds, k=k, seed=seed):
        answer = apply(request, tree)
        if isinstance(request, Label):
            questions += 1
            right += answer == request.y
            course.append((updates, tree.stats()["rows_rebuilt"] * d))
        else:
            updates += 1
    limits = tree.limits
    return {
        "d": d,
        "k": k,
        "questions": questions,
        "right": right,
        "updates": updates,
        "values": tree.stats()["rows_rebuilt"] * d,
        "lower": 3 * d / 8 * questions,
        "upper": upper_bound(2 * k, d, limits.min_impurity, limits.max_gap, k) * updates,
        "course": course,
    }


def upper_bound(n: int, d: int, alpha: float, beta: float, k: int) -> float:
    """Values per update that Lemma 3.6 allows, for at most n active examples."""
    epsilon = min(beta / (2 + beta), alpha / 4, 1 / (k + 1))
    return (2 / epsilon + 1) * (math.ceil(math.log2(n)) + 1) * d


def space_game(size: int, k: int = 2, seed: int = 0) -> dict[str, Any]:
    """Play the game of Theorem 4.1 with size×size bits; ask for some of them."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2, (size, size))
    places = [(i, j) for i in range(size) for j in range(size)]
    asked = [places[i] for i in rng.permutation(len(places))[:16]]
    right = rows = deletions = 0
    for row, column in asked:
        tree = EverTree(index_width(size, size), max_gap=0.04, min_samples_split=k + 1)
        built = answer = None
        for request in index_game(bits, row, column, k=k, seed=seed):
            answer = apply(request, tree)
            built = tree.stats()["rows_rebuilt"] if built is None else built
        stats = tree.stats()
        right += answer == bits[row, column]
        rows += stats["rows_rebuilt"] - (built or 0)
        deletions += stats["deletes"]
    return {
        "N": size,
        "D": size,
        "k": k,
        "bits": size * size,
        "values": 2 * k * 2 * size * index_width(size, size),
        "asked": len(asked),
        "right": int(right),
        "rows_rebuilt_per_deletion": rows / deletions if deletions else 0.0,
    }


def measure(rounds: int = 400) -> dict[str, Any]:
    """Play both games at every size."""
    return {
        "time": [time_game(d, rounds) for d in WIDTHS],
        "space": [space_game(size) for size in SIZES],
    }


# --- the picture


def draw(found: dict[str, Any]) -> Figure:
    """Draw work against n, work against d, and space against the number of bits."""
    figure = Figure(figsize=(13, 4), layout="constrained")
    along, across, space = figure.subplots(1, 3)
    _draw_course(along, found["time"][len(found["time"]) // 2])
    _draw_widths(across, found["time"])
    _draw_space(space, found["space"])
    for axes in (along, across, space):
        axes.grid(visible=True, which="major", alpha=0.3)
        axes.legend(frameon=False, fontsize="small")
    return figure


def _draw_course(axes: Any, game: dict[str, Any]) -> None:
    updates = np.array([moment for moment, _ in game["course"]])
    values = np.array([read for _, read in game["course"]])
    share = updates / game["updates"]
    axes.plot(
        updates, share * game["upper"], "--", color=COLOURS["upper"], label="Lemma 3.6: at most"
    )
    axes.plot(updates, values, color=COLOURS["tree"], label="evertree: rows rebuilt × d")
    axes.plot(
        updates, share * game["lower"], ":", color=COLOURS["lower"], label="Theorem 4.2: at least"
    )
    axes.set(yscale="log", xlabel="updates n", ylabel="values read", title=f"time, d = {game['d']}")


def _draw_widths(axes: Any, games: list[dict[str, Any]]) -> None:
    widths = [game["d"] for game in games]
    for name, style, label in (
        ("upper", "--", "Lemma 3.6: at most"),
        ("values", "o-", "evertree: rows rebuilt × d"),
        ("lower", ":", "Theorem 4.2: at least"),
    ):
        per_update = [game[name] / game["updates"] for game in games]
        axes.plot(widths, per_update, style, color=COLOURS.get(name, COLOURS["tree"]), label=label)
    right = sum(game["right"] for game in games) / sum(game["questions"] for game in games)
    axes.set(xscale="log", yscale="log", xlabel="features d", ylabel="values read per update")
    axes.set_title(f"time against d; answers right: {right:.0%}")


def _draw_space(axes: Any, games: list[dict[str, Any]]) -> None:
    bits = [game["bits"] for game in games]
    kept = [game["values"] for game in games]
    axes.plot(bits, kept, "o-", color=COLOURS["tree"], label="evertree: values kept, n·d")
    axes.plot(bits, bits, ":", color=COLOURS["lower"], label="Theorem 4.1: bits at least")
    right = sum(game["right"] for game in games) / sum(game["asked"] for game in games)
    axes.set(xscale="log", yscale="log", xlabel="Alice's bits N·D", ylabel="kept")
    axes.set_title(f"space; Bob's answers right: {right:.0%}")


def main() -> None:
    """Measure, keep, and say what was found."""
    found = measure()
    figure = draw(found)
    for game in found["time"]:
        game.pop("course")
        print(
            f"time   d={game['d']:>4}: {game['right']} of {game['questions']} right; values per "
            f"update {game['lower'] / game['updates']:8.1f} (at least) <= "
            f"{game['values'] / game['updates']:8.1f} <= {game['upper'] / game['updates']:10.0f}"
        )
    for game in found["space"]:
        print(
            f"space  N=D={game['N']:>3}: {game['right']} of {game['asked']} bits read right; "
            f"{game['values']} values kept for {game['bits']} bits; "
            f"{game['rows_rebuilt_per_deletion']:.2f} rows rebuilt per deletion"
        )
    print(f"kept: {keep('adversaries', found, figure)}")


if __name__ == "__main__":
    main()
