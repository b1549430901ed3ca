"""Twin runs: reproducible, below their bounds, and resumed where they were left."""

import numpy as np
import pytest
from reproduction.bounds import RUNS, Population, twin_row
from reproduction.data import StudyOptions
from reproduction.rows import read_rows

from naive import learning as naive
from reproduction import bounds
from treelens.graphs.datasets import make_synthetic


@pytest.fixture(scope="module")
def population():
    graphs, y = make_synthetic(8, random_state=0)
    return Population.from_graphs("synthetic", graphs, y)


@pytest.mark.parametrize("run", list(RUNS))
def test_twins_obey_their_bounds(population, run):
    row = twin_row(population, run, n_graphs=30, repetition=0)
    assert row["divergence"] > 0
    assert row["divergence"] <= (row["divergence_bound"] or np.inf)
    assert row["gap"] == row["test_loss"] - row["train_loss"]
    assert row["gap"] <= row["any_solver_bound"]
    assert 0 <= row["train_loss"] <= row["loss_bound"]


def test_twins_differ_by_their_seed_and_one_graph_alone(population, monkeypatch):
    """The same draws: with the graph replaced by itself the weights are the same to the bit."""
    first, again, other = (twin_row(population, "short", 20, 1, seed=seed) for seed in (0, 0, 1))
    assert first == again
    assert first["divergence"] != other["divergence"]
    real = bounds._learn
    seen = []

    def same_graphs(population, run, graphs, draws):
        seen.append(graphs)
        return real(population, run, seen[0], draws)

    monkeypatch.setattr(bounds, "_learn", same_graphs)
    assert twin_row(population, "long", 20, 0)["divergence"] == 0
    assert (seen[0] != seen[1]).sum() == 1  # one graph replaced


def test_the_loss_of_new_pairs_leaves_graphs_with_themselves_out(population, rng):
    graphs, margins = np.array([3, 9, 20, 41]), bounds.MARGINS
    features, codes = population.features(graphs), population.codes[graphs]
    weights = rng.uniform(0, 2, features.n_patterns)
    distances = margins.b - naive.all_pair_features(features) @ weights
    pairs = [(i, j) for i in range(4) for j in range(4) if i != j]
    losses = [naive.hinge(distances[p], codes[p[0]] == codes[p[1]], margins)[0] for p in pairs]
    assert bounds._loss(population, graphs, weights, False) == pytest.approx(np.mean(losses))


def test_run_is_written_and_resumed(tmp_path, monkeypatch):
    monkeypatch.setattr(bounds, "N_SYNTHETIC", 80)
    monkeypatch.setattr(bounds, "SIZES", {"synthetic": (10, 20)})
    options, path = StudyOptions(tmp_path, repeats=2), tmp_path / "rows" / "bounds.jsonl"
    bounds.run(options)
    lines = path.read_text().splitlines()
    assert len(lines) == len(RUNS) * 2 * 2
    table = bounds.table(read_rows(path))
    assert "| paper | " in table
    path.write_text("\n".join(lines[:5]) + "\n" + lines[5][:20])  # killed while writing
    bounds.run(options)
    assert sorted(path.read_text().splitlines()) == sorted(lines)
    assert bounds.table(read_rows(path)) == table
