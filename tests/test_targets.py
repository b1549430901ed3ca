"""Targets: what is known of y, how it is selected, checked and learned from."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import r2_score
from sklearn.model_selection import (
    KFold,
    StratifiedKFold,
    cross_val_score,
    permutation_test_score,
    train_test_split,
)

import treelens as tl
from treelens.errors import GraphDataError
from treelens.evaluation.validation import cross_validate
from treelens.maps import Logarithm
from treelens.targets import (
    TargetRecord,
    Targets,
    first_no_number,
    first_without_class,
    likely_limits,
    likely_limits_in_words,
)

SETTINGS = {"depth": 1, "weights": "uniform", "progress": False}


@pytest.fixture(scope="module")
def known():
    """Graphs, and values of which a third are lower limits, with their noise."""
    graphs, _ = tl.make_synthetic(n_per_substructure=6, random_state=0)
    y = 1.0 + graphs.sizes.astype(float)
    limits = np.where(np.arange(len(y)) % 3 == 0, ">", "=")
    return graphs, Targets(y, limits=limits, noise=0.1 * y, name="size", unit="nodes")


# --- selecting and splitting ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "rows",
    [
        slice(1, 4),
        [3, 0, 1],
        np.array([True, False, True, True]),
        (np.array([2, 0]), Ellipsis),
    ],
    ids=["slice", "integers", "mask", "as scikit-learn asks"],
)
def test_all_that_is_known_of_a_value_stays_with_it(rows):
    y = Targets(
        [1.0, 2.0, 3.0, 4.0], limits=list("=><="), noise=[0.1, 0.2, 0.3, 0.4], transform="ln"
    )
    some, place = y[rows], rows[0] if isinstance(rows, tuple) else rows
    positions = np.arange(4)[place]
    assert some.values.tolist() == y.values[positions].tolist()
    assert some.noise.tolist() == y.noise[positions].tolist()
    signs = [] if some.limits is None else some.limits.tolist()
    assert signs == (y.limits[positions].tolist() if y.limits[positions].any() else [])
    assert some.record == y.record


def test_single_values_and_arrays_are_plain():
    y = Targets([1.0, 2.0], limits=["=", ">"])
    assert y[1] == 2.0
    assert list(y) == [1.0, 2.0] == y.tolist()
    assert np.asarray(y).sum() == 3.0
    assert (np.array([1.0, 0.0]) == y).tolist() == [True, False]
    assert (len(y), y.shape, y.ndim, y.dtype) == (2, (2,), 1, np.float64)


def test_values_are_a_copy():
    given = np.array([1.0, 2.0])
    y = Targets(given)
    given[0] = 9.0
    assert y[0] == 1.0


def test_repr_says_what_is_known():
    y = Targets([1, 2, 3], limits=[0, 1, -1], transform="log10", name="IC50", unit="nM")
    assert repr(y) == "Targets(3 values of log10 of 'IC50' (nM), 2 limits)"
    assert repr(y[:1]) == "Targets(1 value of log10 of 'IC50' (nM))"
    assert repr(Targets([1.0], noise=[0.1])) == "Targets(1 value, noise)"
    assert TargetRecord("Kd (nM)", "nM").in_words == "'Kd (nM)'"


def test_splitters_and_scores_of_scikit_learn_take_them(known):
    graphs, y = known
    model = tl.GraphRegressor(**SETTINGS)
    scores = cross_val_score(model, graphs, y, cv=3)
    assert np.isfinite(scores).all()
    folds = KFold(3).split(graphs, y)
    by_hand = [model.fit(graphs[a], y[a]).predict(graphs[b]) for a, b in folds]
    expected = [
        1.0 - ((y.values[b] - mean) ** 2).sum() / ((y.values[b] - y.values[b].mean()) ** 2).sum()
        for mean, (_, b) in zip(by_hand, KFold(3).split(graphs, y), strict=True)
    ]
    np.testing.assert_allclose(
        cross_val_score(model, graphs, y, cv=3, scoring="r2"), expected, rtol=1e-9
    )
    _, classes = tl.make_synthetic(n_per_substructure=6, random_state=0)
    clear = Targets(10.0 * classes, noise=0.1 * np.ones(len(classes)))
    score, permuted, p = permutation_test_score(
        model, graphs, clear, cv=KFold(3, shuffle=True, random_state=0), n_permutations=5
    )
    assert p == pytest.approx(1 / 6)
    assert (permuted < score).all()


def test_classes_are_stratified():
    graphs, y = tl.make_synthetic(n_per_substructure=6, random_state=0)
    model = tl.GraphClassifier(**SETTINGS)
    plain = cross_val_score(model, graphs, y, cv=StratifiedKFold(3))
    np.testing.assert_array_equal(cross_val_score(model, graphs, Targets(y), cv=3), plain)
    train, test = train_test_split(Targets(y, name="has"), stratify=y, random_state=0)
    assert isinstance(train, Targets)
    assert test.record.name == "has"


# --- graphs carry nothing of y -------------------------------------------------------------------


def test_shuffled_targets_take_their_limits_along(known):
    graphs, y = known
    order = np.random.default_rng(0).permutation(len(y))
    model = tl.GraphRegressor(**SETTINGS).fit(graphs, y[order])
    assert model.train_limits_.tolist() == y.limits[order].tolist()


@pytest.fixture
def table(tmp_path):
    """Two columns of the same molecules: one with limits and a transform, one without."""
    pytest.importorskip("rdkit")
    smiles = [f"{'C' * n}{end}" for n in range(1, 13) for end in "ONF"]
    first = [">50" if 10 ** (0.2 * k) > 50 else f"{10 ** (0.2 * k):.4g}" for k in range(36)]
    rows = [f"{s},{a},{0.5 + k}" for k, (s, a) in enumerate(zip(smiles, first, strict=True))]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["smiles,IC50,other", *rows]) + "\n")
    return tl.read_table(path, target="IC50", transform="log10", unit="nM")


def test_another_column_is_learned_as_it_is(table):
    graphs, y = table
    assert table.targets is y
    assert y.limits.any()
    other = np.arange(36.0) + 0.5
    model = tl.GraphRegressor(**SETTINGS).fit(graphs, other)
    assert model.train_limits_ is None
    np.testing.assert_array_equal(model.train_values_, other)
    assert not {"limit", "noise"} & {name.split("_")[-1] for name in graphs.graph_data}
    logs = tl.GraphRegressor(**SETTINGS).fit(graphs, y.learned())  # taken by the user already
    np.testing.assert_array_equal(logs.train_values_, np.log10(y))
    assert logs.predict(graphs).max() < 3.0


def test_a_model_keeps_name_unit_and_transform(table, tmp_path):
    graphs, y = table
    model = tl.GraphRegressor(**SETTINGS).fit(graphs, y)
    model.save(tmp_path / "m.treelens")
    record = tl.load(tmp_path / "m.treelens").model_.training.record
    assert record == y.record == TargetRecord("IC50", "nM", Logarithm("log10"))
    assert model.predict(graphs).max() > 10.0
    assert model.report(tmp_path / "r.html", graphs, y).exists()
    summary = model.summary(graphs, y)
    assert summary["model"]["target"] == "log10 of 'IC50' (nM)"


def test_weights_do_not_drop_the_limits(known):
    graphs, y = known
    weights = np.linspace(0.5, 1.5, len(y))
    weighted = Targets(y.values, limits=y.limits, sample_weight=weights)
    model = tl.GraphRegressor(**SETTINGS).fit(graphs, weighted)
    assert model.train_limits_.tolist() == y.limits.tolist()
    same = tl.GraphRegressor(**SETTINGS).fit(graphs, y.values, weights, limits=y.limits)
    np.testing.assert_array_equal(model.predict(graphs), same.predict(graphs))
    plain = tl.GraphRegressor(**SETTINGS).fit(graphs, y.values)
    assert plain.train_limits_ is None  # y.values are values and nothing else


def test_scores_are_of_values_that_were_measured(known):
    graphs, y = known
    model = tl.GraphRegressor(**SETTINGS).fit(graphs, y)
    exact = y.limits == 0
    beyond = Targets(y.values + 50.0 * y.limits, limits=y.limits)  # limits further away
    expected = r2_score(y.values[exact], model.predict(graphs)[exact])
    assert model.score(graphs, y) == model.score(graphs, beyond) == expected
    with pytest.raises(GraphDataError, match="limits only"):
        model.score(graphs[~exact], y[~exact])


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["limits", "noise", "sample_weight"])
def test_what_targets_hold_is_not_given_twice(name, known):
    graphs, y = known
    with pytest.raises(TypeError, match=f"{name} belongs to the targets"):
        tl.GraphRegressor(**SETTINGS).fit(graphs, y, **{name: np.ones(len(y))})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"limits": ["="]}, r"'>' for each of the 2 graphs; got an array of shape \(1,\)"),
        ({"limits": ">"}, r"give a list of .* for each of the 2 graphs; got '>'"),
        ({"limits": ["=", "?"]}, "position 1"),
        ({"noise": [0.1]}, "give 2 standard deviations"),
        ({"noise": [0.1, -1.0]}, "graph 1 has -1.0"),
        ({"noise": 0.1}, "give 2 standard deviations; got 0.1"),
        ({"sample_weight": [1.0, 0.0]}, r"above 0 .*, but graph 1 has 0 \(1 such weights\)"),
        ({"sample_weight": [np.nan, 0.0]}, r"graph 0 has nan \(2 such weights\)"),
        ({"sample_weight": [1.0]}, "one per graph"),
        ({"transform": "square"}, "transform must be one of auto, none, log10, ln"),
        ({"noise": [0.1, 0.1], "sample_weight": [1.0, 1.0]}, "not both"),
        ({"limits": np.array(["=", {}], dtype=object)}, r"got \{\} at position 1"),
        ({"noise": [0.1, 1e200]}, r"from 0 to 1e\+100, but graph 1 has 1e\+200"),
        ({"noise": np.ones((2, 2))}, "graph 0 has array"),
        ({"noise": [0.1, np.ones(3)]}, "graph 1 has array"),
        ({"sample_weight": ["a", "b"]}, "sample_weight must be 2 numbers"),
        ({"sample_weight": [1e308, 1e308]}, r"at most 1e\+100"),
        ({"transform": np.array(["ln", "ln"])}, "transform must be one of"),
    ],
)
def test_what_cannot_be_known_of_values(given, words):
    with pytest.raises(ValueError, match=words):
        Targets([1.0, 2.0], **given)


def test_targets_of_targets_are_a_mistake():
    with pytest.raises(TypeError, match="holds Targets already"):
        Targets(Targets([1.0, 2.0]))


def test_noise_of_a_value_without_a_logarithm_names_the_graph():
    y = Targets([1.0, 0.0, 2.0], noise=[0.1, 0.2, 0.3], transform="log10")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for learned in (y.learned, y.learned_noise):
            with pytest.raises(GraphDataError, match="the value of graph 1 is 0"):
                learned()


def test_no_targets_have_no_weights():
    assert Targets([1.0], sample_weight=[2.0])[:0].weights().tolist() == []


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_graph_without_a_class_is_named_in_one_way(missing):
    y = Targets(["a", "b", missing, "b", missing])
    found = first_without_class(y.values)
    assert found == (2, f"y holds no class ({missing})")
    with pytest.raises(GraphDataError, match=re.escape(found[1]) + " for 2 .* at position 2"):
        y.classes()


def test_noise_that_nobody_knows(known):
    graphs, y = known
    nothing = Targets(y.values, noise=np.full(len(y), np.nan))
    with pytest.raises(GraphDataError, match="no standard deviation is known"):
        tl.GraphRegressor(**SETTINGS).fit(graphs, nothing)
    some = Targets([1.0, 2.0, 4.0], noise=[0.5, None, ""], transform="ln")
    np.testing.assert_allclose(some.learned_noise(), 0.5)
    np.testing.assert_allclose(
        Targets([1.0, 2.0], noise=[0.1, 0.2], transform="ln").learned_noise(), 0.1
    )


@pytest.mark.parametrize("name", ["limits", "noise"])
def test_a_gpu_refuses_what_it_would_not_use(name, known):
    graphs, y = known
    own = Targets(y.values, **{name: getattr(y, name)})
    model = tl.GraphRegressor(**SETTINGS, device="cuda")
    with pytest.raises(ValueError, match=f"{name} is not supported with device='cuda'"):
        model.fit(graphs, own)


def test_learners_of_plain_values_refuse_what_they_would_not_use(known):
    _, y = known
    with pytest.raises(GraphDataError, match=r"Forest learns from values alone.* limits and noise"):
        y.values_alone("Forest")
    assert Targets(y.values).values_alone("Forest").tolist() == y.tolist()


def test_frames_and_series():
    frame = pd.DataFrame({"pIC50": [1.0, 2.0]}, index=[7, 3])
    assert Targets(frame).record.name == Targets(frame["pIC50"]).record.name == "pIC50"
    assert Targets(frame).tolist() == [1.0, 2.0]
    both = Targets(frame.assign(other=[0.0, None]))
    with pytest.raises(GraphDataError, match=r"y has 2 columns \(pIC50, other\)"):
        Targets.of(both, 2)
    assert both.endpoints == ("pIC50", "other")
    assert repr(both) == "Targets(3 values of 2 endpoints of 2 graphs)"
    one = both[[1]]
    assert (one.endpoints, one.shape, np.isnan(one.values).tolist()) == (
        both.endpoints,
        (1, 2),
        [[False, True]],
    )
    np.testing.assert_array_equal(both[0], [1.0, 0.0])
    for known in ({"limits": "=>"}, {"noise": [1, 1]}):
        with pytest.raises(ValueError, match=r"expected \(2, 2\): one for each cell of y"):
            Targets(both.values, **known)


def test_limits_noise_and_weights_of_several_endpoints():
    frame = pd.DataFrame({"a": [1.0, None, 3.0], "b": [4.0, 5.0, None], "c": ["x", "y", "x"]})
    limits = pd.DataFrame({"a": ["=", None, ">"], "b": [None, "<", None], "c": [None] * 3})
    noise = np.array([[0.1, np.nan, np.nan], [np.nan, np.nan, np.nan], [0.3, np.nan, np.nan]])
    y = Targets(frame, limits=limits, noise=noise, transform={"a": "log10"})
    assert repr(y) == "Targets(7 values of 3 endpoints of 3 graphs, 2 limits, noise)"
    assert y.limits.tolist() == [[0, 0, 0], [0, -1, 0], [1, 0, 0]]
    assert y[[2]].limits.tolist() == [[1, 0, 0]]
    first, second = y.endpoint(0), y.endpoint(1)
    assert (first.limits.tolist(), first.noise.tolist()) == ([0, 1], [0.1, 0.3])
    assert (first.transform, first.name, second.noise) == ("log10", "a", None)
    assert second.exact.tolist() == [True, False]
    weighted = Targets(frame, sample_weight=np.full((3, 3), 2.0))
    assert weighted.endpoint(2).sample_weight.tolist() == [2.0, 2.0, 2.0]
    assert Targets(frame, limits=np.zeros((3, 3))).limits is None
    many = np.append(np.arange(40.0), np.full(10, 40.0))
    found = Targets(np.stack([many, -many], axis=1), limits="auto")
    assert found.limits.sum(axis=0).tolist() == [10, -10]
    limits["c"] = ["<", None, None]
    with pytest.raises(GraphDataError, match="'c' holds classes"):
        Targets(frame, limits=limits)


def test_columns_of_several_endpoints():
    frame = pd.DataFrame({"a": [1.0, None, 3.0], "b": ["x", None, "y"], "c": [True, False, None]})
    y = Targets(frame, transform={"a": "log10"})
    assert [each.has_classes for each in y.columns] == [False, True, True]
    assert [each.transform for each in y.columns] == ["log10", None, None]
    assert y.measured.tolist() == [[True, True, True], [False, False, True], [True, True, False]]
    assert y[[0, 2]].values[:, 1].tolist() == ["x", "y"]
    assert y[1:].columns == y.columns
    assert [
        each.transform
        for each in Targets(frame[["a", "a"]].set_axis(["a", "b"], axis=1), transform="ln").columns
    ] == ["ln", "ln"]
    with pytest.raises(ValueError, match="transform must be one of"):
        Targets(frame, transform={"a": "sqrt"})
    category = Targets(frame.assign(a=pd.Categorical([0, 1, None])))
    assert category.columns[0].has_classes
    assert Targets(np.array([["1", "2"], ["", "4"]], dtype=object)[:1]).values.tolist() == [[1, 2]]
    for wrong in (["x", 1.0, 2.0], [1.0, np.inf, 2.0], ["1", "high", "2"]):
        with pytest.raises(GraphDataError, match="in the column 'a', at position"):
            Targets(frame.assign(a=wrong))


@pytest.mark.parametrize(
    "y",
    [
        ["a", 1, "a", 1],
        [1, 1.0, "1", "1"],
        pd.Series(["a", 1, "a", 1]),
        [b"a", 2, b"a", 2],
        ["a", b"a", "b", "b"],
    ],
)
def test_classes_of_several_kinds_are_refused(y):
    with pytest.raises(GraphDataError, match="convert all classes to one kind"):
        Targets(y).classes()


CHAINS = [
    ([(k, k + 1) for k in range(n)], dict(enumerate("C" * n + end)))
    for n in range(1, 7)
    for end in "ON"
]
SPLITS = [(np.arange(k, 12, 2), np.arange(1 - k, 12, 2)) for k in (0, 1)]
DOORS = {
    "classifier": lambda y: tl.GraphClassifier(depth=1).fit(CHAINS, y),
    "svm": lambda y: tl.GraphSVC(kernel="wwl-linear", depth=1, cv=2, progress=False).fit(CHAINS, y),
    "learned kernel": lambda y: tl.WassersteinWL(1, weights=tl.PairwiseWeights()).fit(CHAINS, y),
    "blocks": lambda y: tl.GraphClassifier(depth=1).fit(tl.CollectionBlocks(CHAINS, y, 5)),
    "score": lambda y: tl.GraphClassifier(depth=1).fit(CHAINS, ["a", "b"] * 6).score(CHAINS, y),
    "cross-validation": lambda y: cross_validate(
        {"ours": tl.GraphClassifier(depth=1)}, tl.as_graph_collection(CHAINS), y, SPLITS
    ),
}


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
@pytest.mark.parametrize("y", [["a", 1] * 6, pd.Series(["1", 1] * 6), ["a"] * 10 + [1] * 2])
def test_classes_of_several_kinds_are_refused_at_every_door(door, y):
    with pytest.raises(GraphDataError, match="convert all classes to one kind"):
        door(y)


def test_scores_of_classes_are_shares_and_weighted():
    model = tl.GraphClassifier(depth=1).fit(CHAINS, ["a", "b"] * 6)
    wrong = ["a", "b"] * 5 + ["b", "a"]
    assert model.score(CHAINS, wrong) == pytest.approx(10 / 12)
    weights = [1.0] * 10 + [5.0] * 2
    assert model.score(CHAINS, wrong, sample_weight=weights) == pytest.approx(0.5)


def test_cells_of_a_table_are_text_in_all_rows(tmp_path):
    pytest.importorskip("rdkit")
    path = tmp_path / "mixed.csv"
    rows = "".join(
        f"{'C' * n}{end},{c}\n" for n in range(2, 8) for end, c in (("O", "a"), ("N", 1))
    )
    path.write_text(f"smiles,label\n{rows}")
    assert set(tl.read_table(path, target="label").targets) == {"a", "1"}
    assert set(tl.read_smiles(path)[1].tolist()) == {"a", "1"}


def test_codes_among_the_classes_of_a_model():
    classes = np.array([-1, 1])
    for y in (["1", "-1"], [1, -1], [1.0, -1.0]):
        assert Targets(y).codes_among(classes).tolist() == [1, 0]
    assert Targets([1, 2]).codes_among(np.array(["1", "2"])).tolist() == [0, 1]
    with pytest.raises(GraphDataError, match=r"y\[1\] is 5, which is none of the classes"):
        Targets([1, 5]).codes_among(classes)


# --- classes and numbers -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "y",
    [
        ["b", "a", "b"],
        np.array([7, -1, 7]),
        (True, False, True),
        pd.Series([2.0, 1.0, 2.0]),
        np.ma.array([2, 1, 2]),
    ],
    ids=["texts", "integers", "booleans", "a series", "nothing masked"],
)
def test_codes_are_positions_among_the_classes_in_order(y):
    classes, codes = Targets.of(y, 3).classes()
    assert codes.tolist() == [1, 0, 1]
    assert classes[codes].tolist() == list(y)
    assert (classes[:-1] < classes[1:]).all()


@pytest.mark.parametrize(
    "nothing", [None, np.nan, float("nan"), pd.NA, pd.NaT], ids=lambda x: type(x).__name__
)
def test_a_class_that_is_missing_is_named_by_its_place(nothing):
    with pytest.raises(GraphDataError, match=r"no class .* 2 graphs, the first at position 1"):
        Targets(["a", nothing, "b", nothing]).classes()  # an array would make the class "nan"


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (None, r"call fit\(graphs, y\)"),
        ([[0, 1]], "one-dimensional"),
        ([0, 1, 0], "There are 2 graphs"),
        ([5, 5], r"one class only \(5\)"),
        ([0.25, 0.5], "GraphRegressor"),
        ({"a", "b"}, "a set: expected a list"),
    ],
)
def test_what_cannot_be_classes(y, words):
    with pytest.raises(GraphDataError, match=words):
        Targets.of(y, 2).classes()


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.array([1j, 2]), "complex"),
        ([1j, 2.0], "complex"),
        (np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]"), "dates"),
        (pd.Series(pd.to_datetime(["2020-01-01", "2021-01-01"])), "dates"),
        (np.ma.array([1.0, 2.0], mask=[0, 1]), "masked for 1 graphs"),
    ],
    ids=["complex array", "complex list", "dates", "series", "masked"],
)
def test_kinds_that_would_be_converted_in_silence(y, words):
    with pytest.raises(GraphDataError, match=words):
        Targets(y)


@pytest.mark.parametrize("names", [("active", "Active"), ("a", "a ")])
def test_classes_that_differ_in_capitals_or_blanks_are_pointed_out(names):
    with pytest.warns(UserWarning, match="differ in capitals or blanks"):
        Targets([*names, "other"]).classes()


def test_numbers_of_any_kind_become_floats() -> None:
    found = Targets(["1", 2, np.float32(0.5)]).numbers()
    assert found.dtype == np.float64
    assert found.tolist() == [1.0, 2.0, 0.5]
    assert Targets([3.0, 3.0]).numbers().tolist() == [3.0, 3.0]  # no reason to rescale


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "call fit"),
        (["a", "b"], "not numbers.*GraphClassifier"),
        ([[1.0], [2.0]], r"of shape \(2, 1\): .*one-dimensional"),
        ([1.0], "There are 2 graphs but 1 values"),
        ([1.0, np.nan], "nan, which is no number, at position 1"),
        ([-np.inf, np.nan], "-inf, which is no number, at position 0"),
    ],
)
def test_what_are_no_numbers_to_learn(y, message) -> None:
    with pytest.raises(ValueError, match=message):
        Targets.of(y, 2).numbers()


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (1e-300 * np.arange(20), "taken as equal"),
        (1.0 + 1e-14 * np.arange(20), "taken as equal"),
        (2**60 + np.arange(20), "rounded to the same numbers"),
        ([2**60 + k for k in range(20)], "rounded to the same numbers"),
    ],
)
def test_numbers_that_hardly_differ_are_said_to_be_taken_as_equal(y, words) -> None:
    with pytest.warns(UserWarning, match=words):
        tl.GraphRegressor(**SETTINGS).fit(["C" * k for k in range(1, 21)], y)


@pytest.mark.filterwarnings("error:.*(taken as equal|rounded)")
@pytest.mark.parametrize("y", [[5.0] * 20, 2**60 + 2**40 * np.arange(20), [2**60] * 20])
def test_equal_numbers_and_large_differences_need_no_word(y) -> None:
    tl.GraphRegressor(**SETTINGS).fit(["C" * k for k in range(1, 21)], y)


@pytest.mark.parametrize("y", [[1e154, 2e154], [1e300, -1e300], [0.0, -2e100]])
def test_numbers_whose_squares_overflow_are_refused_by_their_place(y) -> None:
    place = int(np.argmax(np.abs(y) > 1e100))
    with pytest.raises(GraphDataError, match=f"at position {place}.*in a larger unit"):
        tl.GraphRegressor(**SETTINGS).fit(["C", "CC"], y)
    assert np.isfinite(Targets(np.abs(y) + 1.0, transform="ln").learned()).all()


@pytest.mark.parametrize(
    ("y", "first"),
    [(["1.5", "< 2"], 1), ([1.0, np.nan], 1), (["", " "], 0), ([None, None], 0), ([2, 3], None)],
)
def test_what_may_be_numbers_but_for_some(y, first) -> None:
    found = first_no_number(np.asarray(y))
    assert found == first if found is None else found[0] == first


def test_values_that_many_share_at_an_end_are_likely_limits():
    rng = np.random.default_rng(0)
    spread = np.round(rng.uniform(4.0, 99.0, size=200), 2)
    piled = np.concatenate([np.full(30, 3.0), spread, np.full(12, 150.0)])
    y = Targets(piled, limits="auto")
    assert (y.limits == -1).sum() == 30
    assert (y.limits == 1).sum() == 12
    assert likely_limits(spread) is None
    assert likely_limits(np.round(rng.normal(size=300), 1)) is None  # rounded values repeat, too
    assert likely_limits(np.repeat(np.arange(5.0), 40)) is None  # a scale from 0 to 4
    assert likely_limits_in_words(piled, y.limits) == (
        "12% of the values are 3, the smallest and 5% of the values are 150, the largest"
    )


def test_a_fit_says_where_limits_are_likely(known):
    graphs, _ = known
    values = np.linspace(1.0, 2.0, len(graphs))
    values[: len(graphs) // 4] = 0.5
    with pytest.warns(UserWarning, match="limits='auto'"):
        tl.GraphRegressor(**SETTINGS).fit(graphs, values)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        model = tl.GraphRegressor(**SETTINGS).fit(graphs, values, limits="auto")
    assert (model.train_limits_ == -1).sum() == len(graphs) // 4


def test_noise_as_wide_as_the_values_stays_finite_on_a_logarithm():
    """Its slope has no bound near 0: replicates of large values say little of small ones."""
    values = np.array([0.01, 0.02, 1.0, 20.0, 300.0])
    found = tl.Targets(values, noise=np.full(5, 50.0), transform="ln").learned_noise()
    assert found is not None
    assert found.max() == pytest.approx(np.log(values).std())
    np.testing.assert_allclose(found[-1], 50.0 / 300.0)
    little = tl.Targets(values, noise=0.01 * values, transform="ln").learned_noise()
    np.testing.assert_allclose(little, 0.01)
