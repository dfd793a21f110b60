"""A customer asks to be erased: out of the table, out of the model, and a receipt to prove it.

A bank has learned from 20,000 applications for credit, several per customer. Customer 1017 writes
a letter. The rows go, the tree is rebuilt, and the receipt names two digests: that of the bank's
tree, and that of a tree which an auditor makes from the remaining rows alone. They must be equal,
to the bit.

    python examples/erasure_request.py [--rows 20000] [--out build/examples]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from evertree import EverTree, diff, influence, snapshot

FEATURES = ("income", "debt", "years employed", "region", "late payments")
REGION = 3
CUSTOMER = 1017


class Bank:
    """A table of applications, and a tree that is a live view of it. Ids are row numbers."""

    def __init__(self, rows: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        income, employed = rng.gamma(6, 7_000, rows).round(-2), rng.integers(0, 30, rows)
        debt = (income * rng.beta(2, 5, rows) * 3).round(-2)
        late = rng.poisson(np.clip(debt / income, 0, 3), rows)
        region = rng.integers(0, 6, rows)
        fails = debt / income + 0.4 * late - employed / 40 + rng.normal(0, 0.3, rows) > 1.5
        table = np.column_stack([income, debt, employed, region, late])
        labels = np.where(fails, "defaulted", "repaid").tolist()
        customers = rng.integers(0, rows // 6, rows)
        customers[:9] = CUSTOMER  # the one who will write
        self.rows = dict(enumerate(zip(table.tolist(), labels, customers.tolist(), strict=True)))
        self.tree = new_tree()
        self.tree.insert_many(table, labels, ids=list(self.rows))

    def erase(self, customer: int) -> list[int]:
        """Take a customer out of table and tree; give the ids of the rows that went."""
        ids = [i for i, (_, _, owner) in self.rows.items() if owner == customer]
        self.tree.delete_many(ids=ids)  # all of them or, on an error, none
        for i in ids:
            del self.rows[i]
        self.tree.rebuild()
        return ids


def new_tree() -> EverTree:
    """Make the tree that bank and auditor agree on."""
    return EverTree(len(FEATURES), categorical=[REGION], max_depth=12)


def audit(rows: dict[int, Any]) -> str:
    """Build a tree from rows alone, in another order, and give its digest: what an auditor does."""
    order = np.random.default_rng(99).permutation(sorted(rows))
    tree = new_tree()
    tree.insert_many([rows[i][0] for i in order], [rows[i][1] for i in order])
    return tree.digest()


def main(arguments: list[str] | None = None) -> int:
    """Run it; the exit code tells whether the proof holds."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=20_000, help="applications (20000)")
    parser.add_argument("--out", type=Path, default=Path("build/examples"))
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)

    bank = Bank(options.rows, seed=3)
    theirs = [i for i, (_, _, owner) in bank.rows.items() if owner == CUSTOMER]
    print(
        f"The bank has {len(bank.tree):,} applications; {len(theirs)} are of customer {CUSTOMER}."
    )
    question = [row for row, _, _ in bank.rows.values()][:2_000]
    print(f"Before: {influence(bank.tree, theirs, question)}.")

    before = snapshot(bank.tree)
    start = time.perf_counter()
    gone = bank.erase(CUSTOMER)
    took_ms = 1_000 * (time.perf_counter() - start)
    print(f"\nErased {len(gone)} rows and rebuilt the tree in {took_ms:.0f} ms. What changed:")
    changed = diff(before, bank.tree, feature_names=FEATURES)
    print(str(changed).partition("\n")[0])
    for change in changed.changes[:3]:
        print(f"  a node of {change.size_before} examples, {change.kind}: {change.why}")

    receipt = {
        "customer": CUSTOMER,
        "rows erased": len(gone),
        "rows that remain": len(bank.tree),
        "digest before": before.digest,
        "digest of the model": bank.tree.digest(),
        "digest of a tree that never saw the customer": audit(bank.rows),
        "every split within max_gap of the best": bank.tree.certify().ok,
    }
    path = options.out / "erasure_receipt.json"
    path.write_text(json.dumps(receipt, indent=2) + "\n", encoding="utf-8")
    print(f"\n{path.read_text(encoding='utf-8')}")
    proved = (
        receipt["digest of the model"] == receipt["digest of a tree that never saw the customer"]
    )
    print("Proved: nothing of them is left." if proved else "The digests differ: this is a bug.")
    print(f"Receipt: {path}")
    return 0 if proved else 1


if __name__ == "__main__":
    sys.exit(main())
