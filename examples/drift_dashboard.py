"""A dashboard of drift: what a fraud model sees, when it changed its mind, and why.

Card payments, made up: fraud looks one way, then thieves learn, twice. A classifier with a window
follows in batches of an hour's payments. For each batch the dashboard keeps F1, the importance of
each feature, the work of rebuilding and the audited gap; whenever another feature comes first in
the tree, it keeps the reason. The result is one HTML file that needs nothing else.

    python examples/drift_dashboard.py [--payments 30000] [--out build/examples]
"""

from __future__ import annotations

import argparse
import base64
import html
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.metrics import f1_score

from evertree import EverTreeClassifier, diff, snapshot

BATCH = 500
WINDOW = 4_000
FEATURES = ["amount", "hour", "distance km", "country", "age of card", "online"]
PHASES = ("stolen cards", "card testing", "account takeover")


def payments(n: int, seed: int) -> tuple[pd.DataFrame, Any]:
    """Make payments; what fraud looks like changes after each third."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "amount": rng.lognormal(3.4, 1.0, n).round(2),
            "hour": rng.integers(0, 24, n),
            "distance km": rng.exponential(12, n).round(1),
            "country": rng.choice(["NO", "SE", "DK", "other"], n, p=[0.6, 0.2, 0.15, 0.05]),
            "age of card": rng.integers(0, 1_500, n),
            "online": rng.random(n) < 0.4,
        }
    )
    far = (frame["distance km"] > 25) & (frame["amount"] > 40)
    testing = (frame["amount"] < 12) & frame["online"]
    takeover = (frame["age of card"] < 250) & (frame["hour"] < 9)
    phase = np.arange(n) * len(PHASES) // n
    fraud = np.choose(phase, [far, testing, takeover]).astype(bool)
    return frame, np.where(fraud ^ (rng.random(n) < 0.02), "fraud", "fine")


@dataclass
class Log:
    """What the dashboard shows: one row per batch, and events in words."""

    rows: list[dict[str, float]] = field(default_factory=list)
    importances: list[Any] = field(default_factory=list)
    events: list[tuple[int, str]] = field(default_factory=list)


def follow(frame: pd.DataFrame, labels: Any) -> Log:
    """Let the model answer each batch before it learns it, and keep what is worth seeing."""
    model, log = EverTreeClassifier(window=WINDOW, max_depth=8), Log()
    model.partial_fit(frame[:WINDOW], labels[:WINDOW])
    before = snapshot(model)
    for start in range(WINDOW, len(frame), BATCH):
        X, y = frame[start : start + BATCH], labels[start : start + BATCH]
        said = model.predict(X)
        model.partial_fit(X, y)
        stats = model.tree_.stats()
        log.rows.append(
            {
                "payments": start + BATCH,
                "f1": f1_score(y, said, pos_label="fraud", zero_division=0),
                "rows_rebuilt": stats["rows_rebuilt"],
                "nodes": stats["nodes"],
                "worst_gap": model.certify().worst_gap,
            }
        )
        log.importances.append(model.feature_importances_)
        after = snapshot(model)
        if before.nodes[0]["feature"] != after.nodes[0]["feature"]:  # it has changed its mind
            first = diff(before, after, feature_names=FEATURES).changes[0]
            log.events.append((start + BATCH, first.why))
        before = after
    return log


# --- what it looks like


def draw(log: Log, n: int) -> Figure:
    """Draw score, importances, work and gap, one above the other."""
    rows = pd.DataFrame(log.rows)
    figure = Figure(figsize=(11, 8.5), layout="constrained")
    axes = figure.subplots(4, 1, sharex=True, height_ratios=[2, 2, 1, 1])
    axes[0].plot(rows["payments"], rows["f1"], color="#00897b")
    axes[0].set(ylabel="F1 of fraud", ylim=(0, 1))
    axes[1].stackplot(
        rows["payments"],
        np.transpose(log.importances),
        labels=FEATURES,
        colors=("#4c86b8", "#ef9234", "#4fa35d", "#c9568b", "#8a6bbf", "#a8873a"),
    )
    axes[1].set(ylabel="importance", ylim=(0, 1))
    axes[1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize="small")
    axes[2].bar(rows["payments"], rows["rows_rebuilt"].diff(), width=BATCH * 0.8, color="#8a8a8a")
    axes[2].set_ylabel("rows rebuilt")
    axes[3].plot(rows["payments"], rows["worst_gap"], color="#c9568b")
    axes[3].axhline(0.1, color="#cccccc", linestyle="--")
    axes[3].set(ylabel="worst gap", ylim=(0, 0.11), xlabel="payments", xlim=(WINDOW, n))
    for part, name in enumerate(PHASES):
        axes[0].text(max(part * n / 3, WINDOW), 1.02, f" {name}", color="#777777", fontsize="small")
        for ax in axes:
            ax.axvline(part * n / 3, color="#cccccc", linewidth=0.8)
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
    return figure


PAGE = """<!doctype html><html lang="en"><meta charset="utf-8">
<title>Drift of the fraud model</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 1100px; margin: 2em auto; color: #222 }}
.tiles {{ display: flex; gap: 1em }} .tile {{ background: #f4f6f6; padding: .6em 1.2em; flex: 1 }}
.tile b {{ display: block; font-size: 1.6em; color: #00695c }} img {{ width: 100% }}
td {{ padding: .3em .8em .3em 0; vertical-align: top }}</style>
<h1>Drift of the fraud model</h1>
<div class="tiles">{tiles}</div>
<img src="data:image/png;base64,{picture}" alt="F1, importances, rows rebuilt, worst gap">
<h2>When it changed its mind, and why</h2><table>{events}</table></html>
"""


def dashboard(log: Log, n: int, picture: Path) -> str:
    """Write the page, with the picture inside."""
    last = log.rows[-1]
    tiles = {
        "F1 of the last batch": f"{last['f1']:.1%}",
        "payments seen": f"{n:,}",
        "in the window": f"{WINDOW:,}",
        "nodes": f"{last['nodes']:,}",
        "worst gap ever audited": f"{max(row['worst_gap'] for row in log.rows):.3f} of 0.1",
    }
    return PAGE.format(
        tiles="".join(f'<div class="tile">{k}<b>{v}</b></div>' for k, v in tiles.items()),
        picture=base64.b64encode(picture.read_bytes()).decode(),
        events="".join(
            f"<tr><td>{at:,}</td><td>{html.escape(why)}</td></tr>" for at, why in log.events
        ),
    )


def main(arguments: list[str] | None = None) -> int:
    """Run it; the exit code tells whether every audit found the guarantee kept."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--payments", type=int, default=30_000, help="how many (30000)")
    parser.add_argument("--out", type=Path, default=Path("build/examples"))
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    log = follow(*payments(options.payments, seed=4))
    for at, why in log.events:
        print(f"{at:7,} payments: {why}")
    third = len(log.rows) // 3
    for part, name in enumerate(PHASES):
        scores = [row["f1"] for row in log.rows[part * third : (part + 1) * third]]
        print(f"{name:18} F1 {np.mean(scores):.1%} on average, {min(scores):.1%} at worst")
    page = options.out / "drift_dashboard.html"
    picture = options.out / "drift_dashboard.png"
    draw(log, options.payments).savefig(picture, dpi=110)
    page.write_text(dashboard(log, options.payments, picture), encoding="utf-8")
    print(f"Dashboard: {page}")
    return 0 if max(row["worst_gap"] for row in log.rows) <= 0.1 else 1


if __name__ == "__main__":
    sys.exit(main())
