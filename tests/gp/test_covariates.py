"""Covariates become numbers the same way for training and for new graphs."""

import numpy as np
import pandas as pd
import pytest

from treelens import as_graph_collection
from treelens.errors import GraphDataError
from treelens.gp.views import CovariateColumn, CovariateTable, with_covariates
from treelens.views import descriptors_of

ONE = ([(0, 1)], {0: "C", 1: "O"})


def _graphs(**columns):
    n = len(next(iter(columns.values())))
    return as_graph_collection([ONE] * n).with_data(columns)


def test_numbers_are_standardised_by_the_training_graphs():
    table = CovariateTable.fit(_graphs(t=[1.0, 3.0]), ["t"])
    assert table.encode(_graphs(t=[1.0, 3.0, 5.0]))[:, 0].tolist() == [-1.0, 1.0, 3.0]


def test_classes_are_at_distance_one_and_unknown_or_missing_ones_are_none():
    table = CovariateTable.fit(_graphs(assay=["a", None, "b", "a", ""]), ["assay"])
    assert table.columns[0].classes == ("a", "b")
    encoded = table.encode(_graphs(assay=["a", "b", "c", None]))
    assert np.linalg.norm(encoded[0] - encoded[1]) == pytest.approx(1.0)
    assert encoded[2:].tolist() == [[0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize("missing", ["", None, float("nan"), "NA", "n/a", pd.NA])
def test_a_missing_number_is_the_mean(missing):
    table = CovariateTable.fit(_graphs(t=[1.0, 3.0, missing]), ["t"])
    assert table.encode(_graphs(t=[missing])).tolist() == [[0.0]]


def test_missing_cells_are_said():
    graphs = _graphs(t=[1.0, 3.0, None, ""], assay=["a", "b", None, "a"])
    table = CovariateTable.fit(graphs, ["t", "assay"])
    with pytest.warns(UserWarning, match=r"empty \(2 of 't', 1 of 'assay'\)"):
        table.encode(graphs)


def test_constant_columns_and_far_values_do_no_harm():
    table = CovariateTable.fit(_graphs(t=[2.0, 2.0], u=[0.0, 1.0]), ["t", "u"])
    assert table.encode(_graphs(t=[3.0], u=[1e9])).tolist() == [[1.0, 10.0]]


@pytest.mark.parametrize(
    ("columns", "names", "message"),
    [
        ({"t": [1.0]}, ["u", "v"], "'u' is missing"),
        ({"t": [str(k) + "x" for k in range(60)]}, ["t"], "is it an id"),
        ({"t": [None, ""]}, ["t"], "is empty"),
        ({"t": [1.0, np.inf]}, ["t"], "is infinite at position 1"),
        ({"t": [1.0]}, ["rdkit:MolLogP"], "were not read from any"),
        (
            {"t": [1.0, "2.5", 3.0, 4.0, 5.0, "warm"]},
            ["t"],
            "1 of 6 graphs, the first at position 5",
        ),
    ],
)
def test_columns_that_cannot_be_used_are_errors(columns, names, message):
    if any(name.startswith("rdkit") for name in names):
        pytest.importorskip("rdkit", reason="RDKit is not installed")
    with pytest.raises(GraphDataError, match=message):
        CovariateTable.fit(_graphs(**columns), names)


@pytest.mark.parametrize(("wrong", "words"), [("warm", "holds numbers"), (-np.inf, "is infinite")])
def test_a_new_value_that_is_no_number_is_named_by_its_place(wrong, words):
    table = CovariateTable.fit(_graphs(t=[1.0, 2.0]), ["t"])
    with pytest.raises(GraphDataError, match=rf"'t' {words} .*at position 1: '{wrong}'"):
        table.encode(_graphs(t=[1.0, wrong]))
    with pytest.raises(GraphDataError, match="row 8"):
        table.encode(_graphs(t=[1.0, wrong], row=[3, 7]))


@pytest.mark.parametrize(
    "given",
    [
        {"t": [1, 2]},
        pd.DataFrame({"t": [1, 2]}),
        np.array([[1], [2]]),
        [1, 2],
        ["old"],
        ("old",),
        np.array(["old"]),
        pd.Index(["old"]),
    ],
)
def test_tables_and_names_of_any_kind(given):
    graphs, names = with_covariates(_graphs(old=[1, 2]), given)
    assert CovariateTable.fit(graphs, names).encode(graphs).tolist() == [[-1.0], [1.0]]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rdkit": [1, 2]}, "column"),
        ({"smiles": [1, 2]}, "column"),
        ({"t": 5.0}, "no table"),
        ({"t": np.ones((2, 2))}, "no table"),
        ({"t": [1, 2, 3]}, "3 rows for 2 graphs"),
        ([1, 2, 3], "3 rows for 2 graphs"),
        (np.ones((2, 2, 2)), "no table"),
    ],
)
def test_tables_that_cannot_be_are_named(given, message):
    with pytest.raises(GraphDataError, match=message):
        with_covariates(as_graph_collection([ONE, ONE]), given)


def test_descriptors_are_normal_scores_of_those_of_rdkit():
    pytest.importorskip("rdkit", reason="RDKit is not installed")
    from rdkit import Chem
    from rdkit.Chem import Descriptors
    from scipy.stats import norm, rankdata

    smiles = ["CCO", "c1ccccc1", "CC(=O)O", "CCCC", "CCCC"]
    graphs = as_graph_collection(smiles)
    view = descriptors_of(graphs, "all")
    table, numbers = view.table, view.numbers
    assert len(table.columns) == len(dict(Descriptors._descList))
    column = table.names.index("rdkit:MolLogP")
    values = [Descriptors.MolLogP(Chem.MolFromSmiles(text)) for text in smiles]
    expected = norm.ppf((rankdata(values) - 0.5) / len(values))
    np.testing.assert_allclose(numbers[:, column], expected, atol=1e-8)
    greasy = table.encode(as_graph_collection(["C" * 60]))[0, column]
    assert greasy == numbers[:, column].max()  # far outside is no stranger than the extreme


def test_descriptors_that_are_not_defined_are_the_median():
    name, nothing = "rdkit:MaxPartialCharge", float("nan")
    table = CovariateTable.fit(_graphs(**{name: [1.0, 2.0, 3.0, nothing]}), [name])
    assert table.encode(_graphs(**{name: [2.0, nothing]})).tolist() == [[0.0], [0.0]]
    table = CovariateTable.fit(_graphs(**{name: [nothing, nothing]}), [name])
    assert table.encode(_graphs(**{name: [2.0, nothing]})).tolist() == [[0.0], [0.0]]


@pytest.mark.parametrize("chosen", ["compact", "fast", "all"])
def test_values_of_descriptors_come_back_from_their_scores(chosen):
    pytest.importorskip("rdkit", reason="RDKit is not installed")
    smiles = ["C" * n + end for n in range(1, 12) for end in ("O", "N", "Cl", "c1ccccc1O")]
    view = descriptors_of(as_graph_collection(smiles), chosen)
    table, numbers = view.table, view.numbers
    again = as_graph_collection(["C"] * len(smiles)).with_data(table.decode(numbers))
    np.testing.assert_array_equal(table.encode(again), numbers)


@pytest.mark.parametrize(("mean", "spread"), [(0.0, 1.0), (2020.0, 0.5), (-1e-6, 1e-7), (1e6, 3.0)])
def test_values_come_back_from_numbers_to_the_last_bit(mean, spread):
    values = mean + spread * np.random.default_rng(0).normal(size=2000)
    column = CovariateColumn.of("x", values)
    numbers = column.encoded(values)
    np.testing.assert_array_equal(column.encoded(column.decoded(numbers)), numbers)
