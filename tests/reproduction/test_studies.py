"""The smaller studies of the paper: data sets, synthetic graphs, learned patterns."""

import numpy as np
import pytest
from reproduction.data import Molecules, StudyOptions, load_molecules
from reproduction.rows import read_rows

from reproduction import censored, error_bars, pattern_study, published, synthetic_study
from strategies import make_random_graphs
from treelens.chem.molecules import smiles_to_collection
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.vocabulary import PatternVocabulary

# --- Table 1 ----------------------------------------------------------------------------------


def test_table1_counts_edges_once(data_folder, tmp_path):
    published.run(StudyOptions(tmp_path, quick=True))
    data = {row["set"]: row for row in read_rows(tmp_path / "rows" / "table1.jsonl")}
    assert data["MUTAG"] == {
        "set": "MUTAG",
        "graphs": 188,
        "class_sizes": {"-1": 63, "1": 125},
        "mean_nodes": 17.93,
        "mean_edges": 19.79,
        "node_labels": 7,
        "edge_labels": 4,
    }
    assert (data["PTC_MR"]["mean_nodes"], data["PTC_DGCNN"]["mean_nodes"]) == (14.29, 25.56)
    assert "19.79 (39.6)" in published.table1(list(data.values()))


# --- made graphs ------------------------------------------------------------------------------


def test_learned_weights_beat_uniform_ones_on_made_graphs():
    """The study says so plainly: the gain rests on the rule that spares the pattern from noise."""
    learned, uniform = (
        synthetic_study.run_one(0, method, True, True)
        for method in ("learned_wwl_paper_radii", "wwl")
    )
    assert learned["accuracy"] > uniform["accuracy"] + 0.05
    assert uniform["pattern"] is None  # all weights are one: there is no rank
    assert learned["pattern"]["rank"] <= 3  # the planted one
    assert learned["pattern"]["weight"] > 1.2
    assert learned["pattern"]["n_patterns"] > 50
    rows = [
        synthetic_study.run_one(0, method, True, False)
        for method in ("wwl", "learned_wwl_paper_radii")
    ]
    assert max(row["accuracy"] for row in rows) < learned["accuracy"] - 0.15
    assert learned["carriers"] == {"positive": 1.0, "negative": 0.0}
    assert 0.4 < rows[0]["carriers"]["positive"] < 0.8


# --- learned patterns -------------------------------------------------------------------------


def test_patterns_of_mutag_read_as_chemistry(mutag):
    table = pattern_study.learned_patterns(*mutag, "MUTAG")
    assert set(table["depth"]) == {1, 2}
    assert table["weight"].is_monotonic_decreasing
    assert "N(C,O,O)" in set(table["pattern"])  # the nitro group
    for depth in (1, 2):
        moved = np.linalg.norm(table.loc[table["depth"] == depth, "weight"] - 1)
        assert 0.5 < moved <= pattern_study.RADIUS + 1e-9
    assert (table["error"] >= 0).all()


def test_error_bars_measure_the_spread_of_a_mean():
    """Learning the mean of a number per graph has the well-known standard error."""
    graphs = make_random_graphs(40, n_nodes=(5, 12), n_labels=3, random_state=5)
    histograms = PatternHistograms.from_colors(*PatternVocabulary.fit(graphs, depth=2))
    values, codes = np.random.default_rng(8).normal(size=40), np.arange(40) % 3
    errors = pattern_study.jackknife_errors(
        lambda kept: np.full(histograms.n_patterns, values[kept].mean()), histograms, codes, 40
    )
    common = int(histograms.support.argmax())
    assert errors[common] == pytest.approx(values.std(ddof=1) / np.sqrt(40), rel=0.01)
    alone = histograms.support == 1  # missing where its graph is left out
    assert (errors[alone] < errors[common]).all()


# --- intervals and limits -----------------------------------------------------------------------


def test_intervals_of_one_fold(data_folder):
    data = load_molecules("FreeSolv")
    *_, train, test = next(error_bars._folds(data.graphs, 1))
    found = error_bars.covered(data, train[:150], test, 1)
    assert 0.7 < found["posterior"] <= found["scaffold"] <= 1.0
    assert found["factor"] >= 1.0


def test_rows_of_limits(monkeypatch, tmp_path):
    smiles = [f"{'C' * n}{end}" for n in range(1, 21) for end in "ONF"]
    values = np.array([0.3 * s.count("C") + 1.5 * s.count("N") for s in smiles])
    data = Molecules(smiles_to_collection(smiles), smiles, values)
    monkeypatch.setattr(censored, "load_molecules", lambda name: data)
    options = StudyOptions(tmp_path, ["made"], ["limits", "left_out"], repeats=2, n_jobs=1)
    censored.run(options)
    path = tmp_path / "rows" / "censored.jsonl"
    before = path.read_bytes()
    censored.run(options)  # nothing is missing
    assert path.read_bytes() == before
    rows = read_rows(path)
    assert len(rows) == 8
    for row in rows:
        assert row["n_limits"] == pytest.approx(0.3 * row["n_train"], abs=3)
        assert 0 < row["n_within"] < row["n_test"]
