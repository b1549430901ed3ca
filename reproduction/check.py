"""Make a sample of rows again, and say what moved.

python -m reproduction check --sample 20 --out docs/results
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from reproduction.compare import ASIDE, METHODS, PARTS, scores, works
from reproduction.data import StudyOptions
from reproduction.frozen import frozen_defaults, source_of_library
from reproduction.rows import read_rows

SAMPLE = 20
MOVED = 1e-3  # of a score's size: more is no rounding
_LONGEST = 60.0  # processor seconds of a row that is made again
_SCORES = ("rmse", "mae", "nlpd", "roc_auc", "log_loss", "accuracy")
_SAME = ("data", "test_part")


class Checked(NamedTuple):
    """A row that was made again."""

    part: str
    key: dict[str, Any]
    commit: str | None  # of the row
    moved: dict[str, tuple[Any, Any]]  # what differs: before, now


def run(options: StudyOptions) -> None:
    """Make rows again and print those that moved; an error where any did."""
    found = []
    for checked in check(options):
        found.append(checked)
        name = " ".join(map(str, checked.key.values()))
        moved = [f"{field} {before} -> {now}" for field, (before, now) in checked.moved.items()]
        print(f"{checked.part}, {name}: {', '.join(moved) or 'the same'}", flush=True)
    if not found:
        raise ValueError(
            f"There are no rows of {frozen_defaults()['name']} in {options.out / 'rows'} that can "
            "be made again: name the folder by --out docs/results."
        )
    n_moved = sum(bool(checked.moved) for checked in found)
    print(f"{len(found)} rows made again, {n_moved} moved.")
    if n_moved:
        raise ValueError(f"{n_moved} of {len(found)} rows are not those of this source code.")


def check(options: StudyOptions) -> Iterator[Checked]:
    """Yield a sample of the rows of frozen defaults, made again by the current source code."""
    rng = np.random.default_rng(options.seed)
    known = [(part, row) for part in PARTS for row in _candidates(options, part)]
    for k in rng.permutation(len(known))[: options.sample or SAMPLE].tolist():
        part, row = known[k]
        yield _made_again(options, part, row)


def _candidates(options: StudyOptions, part: str) -> list[dict[str, Any]]:
    """Return the rows of a part that can be made again in a minute."""
    rows = read_rows(options.out / "rows" / f"compare_{part}.jsonl")
    frozen, may_use_all = frozen_defaults()["name"], source_of_library()["defaults"] is not None
    return [
        row
        for row in rows
        if row.get("defaults") == frozen
        and row["method"] in METHODS
        and row["cpu_seconds"] <= _LONGEST
        and (may_use_all or row["set"] not in ASIDE)
    ]


def _made_again(options: StudyOptions, part: str, row: dict[str, Any]) -> Checked:
    own = StudyOptions(options.out, sets=[row["set"]], methods=[row["method"]])
    same = (work for work in works(PARTS[part], own) if work[0].items() <= row.items())
    found = next(same, None)
    if found is None:
        raise ValueError(
            f"{part}: no split of today is that of the row {row['set']} {row['split']}."
        )
    key, *arguments = found
    now = scores(row["method"], *arguments)
    moved = {name: (row.get(name), now[name]) for name in _SAME if row.get(name) != now[name]}
    for name in _SCORES:
        before, after = row.get(name), now.get(name)
        if before is None and after is None:
            continue
        if before is None or after is None or not abs(after - before) <= MOVED * abs(before):
            moved[name] = (before, after)
    return Checked(part, key, row.get("commit"), moved)
