"""Running times: what is timed, how it is and summed up. No absolute times."""

import json
import warnings

import pytest
from reproduction.data import StudyOptions
from reproduction.runtime import _objective, _shortest_run, curve, made_features

from reproduction import runtime
from treelens.graphs.datasets import make_synthetic
from treelens.pairwise.learn import learn_weights


@pytest.fixture
def small(monkeypatch):
    """Few small problems, and made graphs in the place of the real sets."""
    monkeypatch.setattr(runtime, "NUMBERS", (10, 20))
    monkeypatch.setattr(runtime, "DEPTHS", (1, 2))
    monkeypatch.setattr(runtime, "NUMBER", 20)
    few = {**runtime.TASK_LEARNERS["stochastic"], "n_steps": 1000}
    monkeypatch.setitem(runtime.TASK_LEARNERS, "stochastic", few)
    monkeypatch.setattr(
        runtime, "PAPER_GRID", {"depth": (1, 2), "weight_radius": 0.5, "gamma": 1.0}
    )
    monkeypatch.setattr(runtime, "load_dataset", lambda name: make_synthetic(4, random_state=0))


def row(experiment, solver, seconds, n_graphs=100, depth=2, **others):
    return {
        "experiment": experiment,
        "dataset": "synthetic",
        "solver": solver,
        "seconds": seconds,
        "n_graphs": n_graphs,
        "depth": depth,
        "fold": 0,
        "seed": 0,
        **others,
    }


@pytest.mark.parametrize("solver", runtime.SOLVERS)
def test_the_shortest_run_reaches_the_target_and_a_shorter_one_does_not(solver):
    features, y = made_features(40, 2, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        best = learn_weights(features, y, radius=1.0, tol=1e-6)
        target = best.history[-1] * (1 + 1e-3)
        options = _shortest_run(features, y, solver, target, {"radius": 1.0, "random_state": 0})
        name, step = ("n_steps", 2) if solver == "stochastic" else ("max_iter", None)
        shorter = options[name] // 2 if step else options[name] - 1
        assert _objective(features, y, learn_weights(features, y, **options)) <= target
        less = learn_weights(features, y, **{**options, name: shorter})
        assert _objective(features, y, less) > target


def test_what_cannot_be_reached_has_no_time():
    features, y = made_features(20, 2, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert _shortest_run(features, y, "batch", -1.0, {"radius": 1.0}) is None
    rows = [row("quality", "batch", None), row("quality", "batch", 1.0)]
    assert curve(rows, "quality", "batch", "n_graphs") == {100: None}


def test_curves_are_medians_over_what_is_not_held_fixed():
    rows = [row("steps", "batch", s, n_graphs=n) for n, s in ((50, 1), (50, 9), (50, 2), (100, 5))]
    rows += [row("steps", "batch", 7.0, depth=3), row("steps", "stochastic", 0.1, n_graphs=50)]
    assert curve(rows, "steps", "batch", "n_graphs") == {50: 2.0, 100: 5.0}
    assert curve(rows, "steps", "batch", "depth") == {2: 5.0, 3: 7.0}


def test_a_run_is_written(tmp_path, small):
    runtime.run(StudyOptions(tmp_path, quick=True))
    path = tmp_path / "rows" / "runtime.jsonl"
    lines = path.read_text().splitlines()
    n_points = 3  # (10, 2), (20, 2), (20, 1)
    assert len(lines) == n_points * (2 + 3) + 2 * 2 * 3
    rows = [json.loads(line) for line in lines]
    assert all(row["seconds"] is None or row["seconds"] > 0 for row in rows)
    assert {row["n_iter"] for row in rows if row["experiment"] == "steps"} == {500}
