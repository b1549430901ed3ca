"""What ``treelens predict`` says of its predictions: how many, what looks wrong, and scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from treelens.array_checks import Columns
from treelens.chem.predicted_rows import NamedModel, Truth, summarize_rows
from treelens.cli.console import Output, percent
from treelens.graphs.kinds import noun_of
from treelens.models.domain import about_depth

_FIRST_FEW = 5  # rows that could not be read are named
_MANY_UNKNOWN = 0.5  # mean share of patterns that the training graphs do not have


def _has_problem(columns: Columns) -> np.ndarray:
    return np.array([isinstance(why, str) and why != "" for why in columns["problem"].tolist()])


def _own_columns(each: NamedModel, whole: Columns) -> Columns:
    return Columns((name, whole[each.prefix + name]) for name in each.columns)


def _scored(each: NamedModel, whole: Columns, truth: Truth | None) -> dict[str, Any]:
    """Return what was predicted by one model, with scores where the truth is known."""
    own = _own_columns(each, whole)
    found = summarize_rows(each, own, truth)
    scored = None if truth is None else truth[0]
    if each.model.model_.endpoint_names:
        known = own.frame().filter(regex="_measured$").notna().any(axis=1).to_numpy()
        scored, found["n_scored"] = known.nonzero()[0], int(known.sum())
    if scored is not None and "smiles" in whole:
        trained = set(each.model.model_.training.smiles or ())
        found["n_trained_on"] = sum(text in trained for text in whole["smiles"][scored].tolist())
    return found


class Counts:
    """What was predicted so far, for the lines at the end; it does not grow with the rows."""

    def __init__(self, models: Sequence[NamedModel]) -> None:
        self.models = list(models)
        self.n_rows = self.n_bad = 0
        self.bad: list[tuple[int, str]] = []  # the first few
        self.found: list[dict[str, Any]] = []  # of each model

    @classmethod
    def of(cls, models: Sequence[NamedModel], whole: Columns, truths: Sequence[Any]) -> Counts:
        """Return those of all rows, with scores where the truth is known."""
        found, bad = cls(models), np.flatnonzero(_has_problem(whole))
        found.bad = [(k, str(whole["problem"][k])) for k in bad[:_FIRST_FEW].tolist()]
        found.n_rows, found.n_bad = whole.n_rows, len(bad)
        pairs = zip(models, truths, strict=True)
        found.found = [_scored(each, whole, truth) for each, truth in pairs]
        return found

    def add(self, whole: Columns) -> None:
        """Add a chunk of rows."""
        bad = np.flatnonzero(_has_problem(whole)).tolist()
        few = [(self.n_rows + k, str(whole["problem"][k])) for k in bad]
        n_read, n_more = self.n_rows - self.n_bad, whole.n_rows - len(bad)
        self.bad += few[: _FIRST_FEW - len(self.bad)]
        found = [summarize_rows(x, _own_columns(x, whole)) for x in self.models]
        if not self.found:
            self.found = found
        elif n_more:
            pairs = zip(self.found, found, strict=True)
            self.found = [_merged(one, n_read, other, n_more) for one, other in pairs]
        self.n_rows, self.n_bad = self.n_rows + whole.n_rows, self.n_bad + len(bad)

    def noted(self, output: Output) -> dict[str, Any]:
        """Return all as one result; note what looks wrong."""
        if self.bad:
            shown = [f"row {k + 1} ({why})" for k, why in self.bad]
            more = self.n_bad - len(shown)
            listed = f"{', '.join(shown)} and {more} more" if more > 0 else ", ".join(shown)
            output.note(f"{self.n_bad} of {self.n_rows} rows could not be read: {listed}.")
        results = []
        for each, own in zip(self.models, self.found, strict=True):
            _note(output, each, own, self.n_rows - self.n_bad)
            results.append({"model": str(each.path), "target": each.name, **own})
        counts = {"n_rows": self.n_rows, "n_unreadable": self.n_bad}
        return counts | (results[0] if len(results) == 1 else {"models": results})


def _merged(one: dict[str, Any], n_one: int, other: dict[str, Any], n_other: int) -> dict[str, Any]:
    """Return the summary of two chunks with so many readable rows, without scores."""
    found, n = {**one}, n_one + n_other
    mean = "mean_out_of_vocabulary"
    found[mean] = (one[mean] * n_one + other[mean] * n_other) / n
    for name in ("n_outside", "n_in_profile"):
        if name in one:
            found[name] = one[name] + other[name]
    before, more = one["predicted"], other["predicted"]
    if "accuracy" in one:
        names = sorted({*before, *more})
        found["predicted"] = {name: before.get(name, 0) + more.get(name, 0) for name in names}
    else:
        ends = [x for each in (before, more) for x in each.values() if x is not None]
        found["predicted"] = dict(zip(("smallest", "largest"), (min(ends), max(ends)), strict=True))
    return found


def _where_outside(each: NamedModel) -> str:
    """Say which column has it; of several endpoints one is enough."""
    if each.model.model_.endpoint_names:
        return " of at least one target (columns *_in_domain)"
    return " (in_domain is False)"


def _note(output: Output, each: NamedModel, found: dict[str, Any], n_read: int) -> None:
    """Note what looks wrong with the predictions of one model."""
    about, noun = f"{each.name}: " if each.prefix else "", noun_of(each.model.recipe_)
    output.note(*(f"{about}{note}" for note in about_depth(each.model.model_)))
    unseen = found["mean_out_of_vocabulary"]
    if unseen > _MANY_UNKNOWN:
        output.note(
            f"{about}{percent(unseen)} of the patterns of these {noun} do not occur in the "
            f"training {noun}: predictions are unreliable."
        )
    if n := found.get("n_outside"):
        output.note(
            f"{about}{n} of {n_read} {noun} lie outside the domain of "
            f"applicability{_where_outside(each)}: expect larger errors there."
        )
    if n := found.get("n_trained_on"):
        output.note(
            f"{about}{n} of {found['n_scored']} scored {noun} are training {noun}: the "
            "scores are too good. Score others, or run 'treelens evaluate'."
        )
    if found.get("n_known_classes") == 0:
        output.note(f"{about}None of the true classes is a class of the model.")
