"""The sums behind the tables of pages, and the pictures of the paper."""

import numpy as np
import pytest
from reproduction.data import StudyOptions
from reproduction.figures import DEPTH, LEFT, RIGHT, compare_nodes
from reproduction.figures import run as draw
from reproduction.fragments import Ames, _fingerprints, forest_environments, summary
from reproduction.pages import common_rows, paired, ties

from treelens import WassersteinWL, WLOptimalAssignment, WLSubtree, as_graph_collection


def test_a_mean_is_over_the_splits_that_every_method_has():
    rows = [
        {"method": method, "split": split, "rmse": rmse, "n_train": 80, "n_test": 20}
        for method, split, rmse in [
            ("treelens", 0, 1.0),
            ("treelens", 1, 3.0),
            ("treelens", 2, 50.0),
            ("ecfp_gp", 0, 2.0),
            ("ecfp_gp", 1, 2.0),
        ]
    ]
    assert {row["split"] for row in common_rows(rows, [], ["split"])} == {0, 1}
    gain = paired(rows, "treelens", "ecfp_gp", "rmse", ("split",))
    assert (gain.difference, gain.degrees_of_freedom) == (0.0, 1)
    assert paired(rows, "treelens", "none", "rmse", ("split",)) is None


def test_one_large_fold_does_not_stand_for_all():
    """Whole scaffolds: the first fold may be half of a set; five folds are still 1 to 4."""
    sizes = [(320, 322), (152, 490), (52, 590), (67, 575), (51, 591)]
    scores = {"treelens": [1.0, 1.2, 0.9, 1.1, 1.3], "forest": [1.1, 1.5, 1.0, 1.1, 1.6]}
    rows = [
        {"method": m, "split": k, "rmse": values[k], "n_test": n_test, "n_train": n_train}
        for m, values in scores.items()
        for k, (n_test, n_train) in enumerate(sizes)
    ]
    test = paired(rows, "treelens", "forest", "rmse", ("split",))
    apart = np.subtract(*scores.values())
    assert test.standard_error == pytest.approx(np.sqrt((1 / 5 + 1 / 4) * apart.var(ddof=1)))
    reverse = paired(rows, "forest", "treelens", "rmse", ("split",))
    assert reverse.p_value == pytest.approx(test.p_value)  # two-sided


def test_what_is_level_with_the_best_has_all_splits():
    spread = np.array([0.0, 0.02, -0.01, 0.01])
    values = {"auto": 1.0 + spread, "near": 1.01 - spread, "far": 2.0 + 2 * spread, "few": [0.9]}
    rows = [
        {"method": m, "split": k, "rmse": x, "n_test": 20, "n_train": 80}
        for m, own in values.items()
        for k, x in enumerate(own)
    ]
    assert ties(rows, "rmse", smaller=True) == ("auto", "near")
    assert ties(rows, "rmse", smaller=False) == ("far",)
    assert ties(rows[:1], "rmse", smaller=True) == ()


# --- fragments ----------------------------------------------------------------------------------

TAILS = ["C" * k for k in range(1, 13)]
SMILES = [f"{t}c1ccc([N+](=O)[O-])cc1" for t in TAILS] + [f"{t}CCc1ccccc1O" for t in TAILS]
Y = np.repeat([1, 0], 12)


@pytest.mark.parametrize("by_shap", [False, True], ids=["switched off", "SHAP"])
def test_bits_of_one_class_speak_for_it(by_shap):
    chem = pytest.importorskip("rdkit.Chem")
    if by_shap:
        pytest.importorskip("shap", reason="needs shap: pip install -e '.[studies]'")
    molecules = [chem.MolFromSmiles(text) for text in SMILES]
    bits, places = _fingerprints(molecules)
    found = forest_environments(Ames(None, molecules, Y, {}), by_shap)
    assert len(found) > 5
    for row in found[:5]:
        bit = int(row["pattern"].removeprefix("bit "))
        assert np.sign(row["effect"]) == np.sign(Y[bits[:, bit] > 0].mean() - 0.5)
        assert row["support"] == (bits[:, bit] > 0).sum()
        assert row["places"] == places[bit]


def test_a_class_is_met_by_the_first_positive_fragment():
    rows = [
        {"effect": -1.0, "meets": ["azo"]},
        {"effect": 1.0, "meets": []},
        {"effect": 0.5, "meets": ["azo", "nitroso"]},
    ]
    found = summary(rows)
    assert (found["met_at"]["azo"], found["met_at"]["aromatic nitro"]) == (2, None)
    assert found["n_met"] == 2


# --- pictures -----------------------------------------------------------------------------------


def test_values_under_the_panels_are_the_kernels():
    graphs = as_graph_collection(
        [(list(g.edges), dict(enumerate(g.node_labels))) for g in (LEFT, RIGHT)]
    )
    found, options = compare_nodes(), {"depth": DEPTH, "include_depth_zero": False}
    for kernel, value in (
        (WLSubtree, found.subtree),
        (WLOptimalAssignment, found.optimal_assignment),
    ):
        assert value == pytest.approx(kernel(**options).fit_transform(graphs)[0, 1], abs=1e-9)
    kernel = WassersteinWL(gamma=1.0, **options).fit_transform(graphs)[0, 1]
    assert found.wasserstein == pytest.approx(-np.log(kernel), abs=1e-7)


def test_pictures_are_whole(tmp_path):
    draw(StudyOptions(tmp_path))
    written = list((tmp_path / "figures").iterdir())
    names = {"wl_scheme", "three_kernels", "hinges", "synthetic_substructures"}
    assert {path.name for path in written} == {f"{name}.png" for name in names}
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in written)
