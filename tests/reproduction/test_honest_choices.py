"""Nothing is chosen by looking at the test part, and every repetition has folds of its own.

The classes of the test part are turned into lies. What is chosen on the training part alone stays
as it was, and with two classes what was right becomes wrong: the accuracy turns into its
complement. Any peek at the test part breaks one or the other.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from reproduction.protocol import N_OUTER, DataSet, outer_split
from reproduction.rows import read_rows
from sklearn.model_selection import StratifiedKFold

from reproduction import protocol
from treelens import make_synthetic

TABLE2 = Path(__file__).parents[2] / "docs" / "results" / "table2.jsonl"
FOLDS = (0, 4, 7)


@pytest.fixture(autouse=True)
def small_grids(monkeypatch):
    monkeypatch.setattr(protocol, "DEPTHS", (1, 2))
    monkeypatch.setattr(protocol, "GAMMAS", (0.1, 3.0))
    monkeypatch.setattr(protocol, "radii_for", lambda n_graphs: (0.3, 3.0))


@pytest.fixture(scope="module")
def blurred() -> DataSet:
    """Made graphs with a third of the classes wrong, so that candidates differ on any part."""
    graphs, y = make_synthetic(8, random_state=3)
    wrong = np.random.default_rng(0).random(len(y)) < 1 / 3
    return DataSet.from_graphs("blurred", graphs, np.where(wrong, -y, y))


@pytest.fixture
def honest_and_lied(blurred, monkeypatch):
    """Runs a fold on the data and on the data with false classes in its test part."""

    def both(run, fold):
        """The split depends on the classes, so the lied run is given the honest one's."""
        parts = outer_split(blurred.codes, 0, fold, seed=0)
        lies = blurred.codes.copy()
        lies[parts[1]] = 1 - lies[parts[1]]
        monkeypatch.setattr(protocol, "outer_split", lambda *args, **kwargs: parts)
        return run(blurred, fold), run(replace(blurred, codes=lies), fold)

    return both


def assert_same_choice_and_complement(honest, lied):
    assert honest["choice"] == lied["choice"]
    assert honest["inner_score"] == lied["inner_score"]
    assert honest["accuracy"] + lied["accuracy"] == pytest.approx(1.0)


@pytest.mark.parametrize("fold", FOLDS)
def test_fixed_kernels_do_not_pick_setting_or_cost_by_the_test_part(honest_and_lied, fold, rng):
    points = rng.normal(size=(64, 5))
    kernels = [points @ points.T, np.exp(-((points[:, None] - points[None]) ** 2).sum(-1))]
    run = lambda data, k: protocol.run_fixed_fold(data, kernels, "shortest_path", 0, k)  # noqa: E731
    assert_same_choice_and_complement(*honest_and_lied(run, fold))


@pytest.mark.parametrize("method", ["wwl", "learned_wwl", "wl_oa_plain", "preset_released_code"])
@pytest.mark.parametrize("fold", FOLDS)
def test_pattern_kernels_do_not_pick_anything_by_the_test_part(honest_and_lied, fold, method):
    run = lambda data, k: protocol.run_wl_fold(data, 0, k, [method])[0]  # noqa: E731
    assert_same_choice_and_complement(*honest_and_lied(run, fold))


@pytest.mark.parametrize("method", ["paper_protocol", "paper_grid_wwl"])
def test_the_papers_grid_is_searched_on_the_training_part(honest_and_lied, method):
    run = lambda data, k: protocol.run_paper_fold(data, 0, k, [method])[0]  # noqa: E731
    honest, lied = honest_and_lied(run, FOLDS[0])
    assert_same_choice_and_complement(honest, lied)
    assert honest["grid"] == "paper"


# --- repetitions ------------------------------------------------------------------------------


def test_folds_are_scikit_learns_with_a_seed_for_each_repetition(blurred):
    for repetition in range(3):
        splitter = StratifiedKFold(N_OUTER, shuffle=True, random_state=5 + repetition)
        for fold, (train, test) in enumerate(splitter.split(blurred.codes, blurred.codes)):
            found = outer_split(blurred.codes, repetition, fold, seed=5)
            np.testing.assert_array_equal(found[0], train)
            np.testing.assert_array_equal(found[1], test)


RUNS = {
    "fixed": lambda data, r, f: protocol.run_fixed_fold(
        data, [np.eye(len(data.codes))] * 2, "shortest_path", r, f
    ),
    "patterns": lambda data, r, f: protocol.run_wl_fold(data, r, f, ["wwl"]),
    "paper": lambda data, r, f: protocol.run_paper_fold(data, r, f, ["paper_grid_wwl"]),
}


@pytest.mark.parametrize("name", RUNS)
def test_every_repetition_is_split_anew(blurred, monkeypatch, name):
    """What a row is tested on is the fold of its own repetition."""
    asked = []

    def spy(codes, repetition, fold, seed):
        asked.append((repetition, fold, seed))
        return outer_split(codes, repetition, fold, seed)

    monkeypatch.setattr(protocol, "outer_split", spy)
    for repetition in (0, 2):
        RUNS[name](blurred, repetition, 1)
    assert asked == [(0, 1, 0), (2, 1, 0)]
    parts = {tuple(outer_split(blurred.codes, r, 1, seed=0)[1]) for r, _, _ in asked}
    assert len(parts) == 2


def test_repetitions_on_file_differ():
    """Ten repetitions of one split would give ten times the same ten accuracies."""
    found = defaultdict(dict)
    for row in read_rows(TABLE2):
        key = row["dataset"], row["method"]
        found[key].setdefault(row["repetition"], {})[row["fold"]] = row["accuracy"]
    assert found
    for key, repetitions in found.items():
        whole = [tuple(sorted(r.values())) for r in repetitions.values() if len(r) == N_OUTER]
        assert len(whole) < 2 or len(set(whole)) > len(whole) / 2, key
