"""The smaller studies of the paper: data sets, synthetic graphs, learned patterns."""

import json

import numpy as np
import pytest
from reproduction.data import StudyOptions

from reproduction import pattern_study, published, synthetic_study
from strategies import make_random_graphs
from treelens import make_synthetic
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.vocabulary import PatternVocabulary

# --- Table 1 ----------------------------------------------------------------------------------


def test_table1_counts_edges_once_and_says_what_is_wrong(data_folder, tmp_path):
    published.run(StudyOptions(tmp_path, quick=True))
    data = json.loads((tmp_path / "rows" / "table1.json").read_text())
    assert data["MUTAG"] == {
        "graphs": 188, "class_sizes": {"-1": 63, "1": 125}, "mean_nodes": 17.93,
        "mean_edges": 19.79, "node_labels": 7, "edge_labels": 4,
    }  # fmt: skip
    assert (data["PTC_MR"]["mean_nodes"], data["PTC_DGCNN"]["mean_nodes"]) == (14.29, 25.56)
    page = "\n".join(published.table1_parts(tmp_path))
    assert "19.79 (39.6)" in page
    assert "counts every edge twice" in page


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


def test_the_printed_numbers_never_reach_a_radius():
    """Why one radius of the paper's grid stands for all three where its steps are taken."""
    small, large = (
        synthetic_study.fit_one(0, "preset_paper", False).set_params(weight_radius=radius)
        for radius in (0.1, 1.0)
    )
    graphs, y = make_synthetic(substructures=[1, 2, 3, 4], random_state=0)
    weights = [model.fit(graphs, y).patterns_["weight"].sort_index() for model in (small, large)]
    np.testing.assert_allclose(weights[0], weights[1], rtol=1e-12)


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


# --- intervals --------------------------------------------------------------------------------


def test_intervals_of_one_fold_and_their_table(data_folder, tmp_path):
    from reproduction.data import load_molecules

    from reproduction import defaults

    data = load_molecules("FreeSolv")
    split, fold, train, test = next(defaults._folds(data.graphs, 1))
    found = defaults.covered(data, train[:150], test, 1)
    assert 0.7 < found["posterior"] <= found["scaffold"] <= 1.0
    assert found["factor"] >= 1.0
    row = {"set": "FreeSolv", "split": split, "fold": fold, **found}
    assert f"{100 * found['scaffold']:.1f} (" in defaults._interval_parts([row])[-1]
