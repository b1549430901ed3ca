"""Model files of classifiers: exact, whole or absent, and harmless whatever they contain."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import ShuffleSplit

import treelens as tl
from storage.conftest import GRAPHS, THREE, Y, assert_same_predictions, fitted, refuse, reloaded
from treelens.estimators.model_files import load
from treelens.gp import posterior
from treelens.graphs.collection import Graph
from treelens.kernels.table import KERNELS
from treelens.storage.files import ModelFileError

# --- what comes back ------------------------------------------------------------------------


@pytest.mark.parametrize(("weight_radius", "y"), [(0.0, THREE), (2.0, Y)], ids=["three", "two"])
@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_predictions_are_the_same_to_the_last_bit(kernel, weight_radius, y, tmp_path):
    model = fitted(kernel, weight_radius, y)
    loaded = reloaded(model, tmp_path)
    assert_same_predictions(model, loaded)
    assert model.patterns_.equals(loaded.patterns_)


def test_everything_found_in_fitting_comes_back(model, path):
    loaded = tl.load(path)
    with pytest.raises(AttributeError, match="training graphs"):
        _ = loaded.fragments_
    for name in ("best_params_", "learning_gain_"):
        assert getattr(loaded, name) == getattr(model, name), name
    ours, theirs = model.cv_results_, loaded.cv_results_
    assert (theirs.scores, theirs.losses, theirs.best()) == (ours.scores, ours.losses, ours.best())
    np.testing.assert_array_equal(loaded.train_codes_, model.train_codes_)
    np.testing.assert_array_equal(loaded.support_vectors_, model.support_vectors_)
    load(path).save(path.with_name("again"))
    assert path.with_name("again").read_bytes() == path.read_bytes()


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "solver",
    [
        tl.ProjectedGradient(max_iter=50, tol=1.0),
        tl.StochasticGradient(n_checks=0, n_steps=500),
        "batch",
    ],
)
def test_the_learner_comes_back_with_its_record(solver, tmp_path):
    learner = tl.PairwiseWeights(solver=solver, margins=(0.6, 0.4))
    model = fitted(weight_radius=2.0, learner=learner, include_depth_zero=np.bool_(False))
    loaded = reloaded(model, tmp_path)
    assert_same_predictions(model, loaded)
    assert loaded.learner.flat_parameters() == learner.flat_parameters()
    assert loaded.learner_.flat_parameters() == model.learner_.flat_parameters()
    ours, theirs = model.learner_.result_, loaded.learner_.result_
    np.testing.assert_array_equal(ours.history, theirs.history)
    np.testing.assert_array_equal(ours.gaps, theirs.gaps)
    for name in ("margins", "converged", "n_iter", "solver"):
        assert getattr(ours, name) == getattr(theirs, name)
    assert loaded.learner_.weights_ is loaded.weights_


def test_parameters_come_back_and_the_model_can_be_fitted_again(tmp_path):
    model = fitted(
        weight_radius=0.0,
        class_weight={1: 2.0, -1: 1.0},
        kernel=("tanimoto", "wwl-linear"),
        depth=np.array([1, 2]),
        scoring="balanced_accuracy",
        learner=None,
    )
    loaded = reloaded(model, tmp_path)
    ours, theirs = model.get_params(deep=False), loaded.get_params(deep=False)
    np.testing.assert_array_equal(ours.pop("depth"), theirs.pop("depth"))
    assert ours == theirs
    assert_same_predictions(loaded.fit(GRAPHS, Y), model)


def test_parameters_that_cannot_be_stored_come_back_as_defaults(tmp_path):
    splitter = ShuffleSplit(1, test_size=0.5, random_state=0)
    model = fitted(weight_radius=0.0, cv=splitter, random_state=np.random.RandomState(0))
    assert np.isnan(model.cv_results_.decisions[model.cv_results_.best()]).any()
    loaded = reloaded(model, tmp_path)
    assert (loaded.cv, loaded.random_state) == (5, None)
    assert_same_predictions(model, loaded)


@pytest.mark.parametrize(
    "classes",
    [
        np.array([3, 9], np.int8),
        np.array([1.0, 2.0]),
        np.array([False, True]),
        np.array(["no", "yes, sure"]),
        np.array(["no", "yes"], dtype=object),
    ],
    ids=lambda x: str(x.dtype),
)
def test_classes_keep_their_type(classes, tmp_path):
    model = fitted("wwl-linear", 0.0, classes[(Y > 0).astype(int)])
    loaded = reloaded(model, tmp_path)
    assert loaded.classes_.dtype == model.classes_.dtype
    assert loaded.predict(GRAPHS).tolist() == model.predict(GRAPHS).tolist()


def test_edge_labels_and_leaving_out_depth_zero(mutag, tmp_path):
    graphs, y = mutag
    model = fitted("tanimoto", 0.0, y[:60], graphs[:60], include_depth_zero=False)
    loaded = reloaded(model, tmp_path)
    assert loaded.vocabulary_.uses_edge_labels
    assert loaded.model_.training.histograms.first_depth == 1
    assert_same_predictions(model, loaded, graphs[60:])
    assert model.patterns_.equals(loaded.patterns_)


def relabelled(labels):
    """The same graphs with other node labels, of which there are four."""
    return tl.as_graph_collection(
        [Graph(tuple(labels[x] for x in g.node_labels), g.edges) for g in GRAPHS]
    )


@pytest.mark.parametrize(
    "labels",
    [
        ["ü\ud800", 2**70, float("inf"), ("C", 2, (0.5,))],
        [np.int64(3), np.float32(0.1), np.str_("x"), np.bool_(True)],
    ],
    ids=["mixed", "numpy"],
)
def test_labels_keep_value_and_type(labels, tmp_path):
    graphs = relabelled(labels)
    model = fitted("wwl-linear", 0.0, graphs=graphs)
    loaded = reloaded(model, tmp_path)
    ours, theirs = model.vocabulary_.node_alphabet, loaded.vocabulary_.node_alphabet
    assert ours == theirs
    assert [type(x) for x in ours] == [type(x) for x in theirs]
    assert_same_predictions(model, loaded, graphs)


# --- what cannot be saved -------------------------------------------------------------------


def test_a_learner_of_another_class_or_an_unfitted_model_cannot_be_saved(tmp_path):
    class Own(tl.PairwiseWeights):
        pass

    with pytest.raises(TypeError, match="its learner is not"):
        fitted(learner=Own()).save(tmp_path / "x.treelens")
    for kind in (tl.GraphSVC, tl.GraphRegressor):
        with pytest.raises(NotFittedError):
            kind().save(tmp_path / "x.treelens")
    assert not list(tmp_path.iterdir())


# --- damaged and altered files --------------------------------------------------------------


def test_a_truncated_file(path, tmp_path):
    whole = path.read_bytes()
    for end in np.linspace(0, len(whole) - 1, 60).astype(int):
        (tmp_path / "cut").write_bytes(whole[:end])
        with pytest.raises(ModelFileError, match="it is cut off, damaged"):
            load(tmp_path / "cut")


def test_a_flipped_bit_anywhere_is_noticed_or_harmless(model, path, tmp_path):
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    n_noticed = 0
    for position in rng.integers(len(whole), size=300):
        damaged = bytearray(whole)
        damaged[position] ^= 1 << rng.integers(8)
        (tmp_path / "flipped").write_bytes(damaged)
        try:
            loaded = load(tmp_path / "flipped")
        except ModelFileError:
            n_noticed += 1
        else:  # a date, a mode: what no reader looks at
            assert_same_predictions(model, loaded)
    assert n_noticed > 250


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("kernel.weights", lambda x: x[:-1], "must have the shape"),
        ("kernel.weights", lambda x: x - 10, "weights must be at least 0"),
        ("coefficients", lambda x: x.T.copy(), "must have the shape"),
        ("levels.0.own", lambda x: x + 100, "own must be at least 0 and below 4"),
        ("levels.1.child_keys", lambda x: x - 1, "child_keys must be at least 0"),
        ("levels.0.child_offsets", lambda x: x + 1, "must ascend from 0"),
        ("levels.0.child_offsets", lambda x: np.r_[0, 2**63 - 1, -(2**63), x[3:]], "ascend from 0"),
        ("training.views.0.graphs", lambda x: x + 1, "graphs must be at least 0 and below 40"),
        (
            "training.views.0.graphs",
            lambda x: x[::-1].copy(),
            "graphs must ascend within a pattern",
        ),
        ("training.views.0.counts", lambda x: x - 1, "counts must be at least 1"),
        ("training.views.0.counts", lambda x: x + 1, "counts must add up"),
        (
            "training.views.0.level_offsets",
            lambda x: np.r_[0, 1, x[2:]],
            "add up|patterns of the voc",
        ),
        ("views.0.level_shares", lambda x: 0.0 * x, "level_shares must be those of the voc"),
        ("views.0.level_shares", lambda x: 0.5 * x, "level_shares must be those of the voc"),
        ("targets", lambda x: x + 1, "targets must be at least 0 and below 2"),
        ("basis_indices", lambda x: x + 1000, "basis_indices must be"),
        ("basis_indices", lambda x: x[::-1].copy(), "must ascend"),
    ],
)
def test_arrays_that_do_not_fit_together(path, name, change, message):
    refuse(path, lambda r: r.set_array(name, change(r.array(name))), message)


def test_variances_come_from_the_file_where_it_keeps_them(tmp_path, monkeypatch):
    """To seven digits, without a factor of the covariance; what needs all digits computes it."""
    graphs, y = GRAPHS, GRAPHS.sizes + 0.1 * np.arange(len(GRAPHS))
    model = tl.GraphRegressor(depth=1).fit(graphs, y)
    expected = model.predict(graphs, return_std=True)
    model.save(tmp_path / "plain")
    model.save(tmp_path / "more", variances=True)
    assert (tmp_path / "more").stat().st_size > (tmp_path / "plain").stat().st_size
    loaded = tl.load(tmp_path / "more")
    tl.load(tmp_path / "more").save(tmp_path / "again")
    for path in ("more", "again"):
        loaded = tl.load(tmp_path / path)
        with monkeypatch.context() as patched:
            patched.setattr(posterior, "cholesky_in_place", None)
            mean, std = loaded.predict(graphs, return_std=True)
        np.testing.assert_array_equal(mean, expected[0])
        np.testing.assert_allclose(std, expected[1], rtol=1e-5)
        cov = loaded.predict(graphs, return_cov=True)[1]
        np.testing.assert_allclose(cov, model.predict(graphs, return_cov=True)[1], rtol=1e-8)
    svm = tl.GraphSVC("tanimoto", 1, 0, C=1.0, cv=2).fit(graphs, y > np.median(y))
    svm.save(tmp_path / "svm", variances=True)  # which has none


def test_no_rounded_factor_where_the_noise_is_too_small_for_it(tmp_path):
    graphs, y = GRAPHS, GRAPHS.sizes + 0.1 * np.arange(len(GRAPHS))
    model = tl.GraphRegressor(depth=1).fit(graphs, y)
    model.model_ = replace(model.model_, noise=1e-6 * model.model_.kernel.variance)
    with pytest.warns(UserWarning, match="noise is so small"):
        model.save(tmp_path / "model", variances=True)
    model.save(tmp_path / "plain")
    assert (tmp_path / "model").stat().st_size == (tmp_path / "plain").stat().st_size


def test_patterns_that_are_all_equal(path):
    """A table of ten thousand equal patterns would be searched from end to end."""

    def equal(repacked):
        repacked.set_array("levels.0.own", np.zeros(10_000, dtype=np.int32))
        repacked.set_array("levels.0.child_offsets", np.zeros(10_001, dtype=np.int64))
        repacked.set_array("levels.0.child_keys", np.zeros(0, dtype=np.int64))

    refuse(path, equal, "must differ from each other")


def put(*keys, **entries):
    """Change entries of a JSON object inside the file."""

    def change(repacked):
        inner = repacked.data
        for key in keys:
            inner = inner[key]
        inner.update(entries)

    return change


VOCABULARY = ("model", "patterns", "forest", "vocabularies", "$tuple", 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r.members.pop(r.member("basis_indices")), "basis_indices' is missing"),
        (put("model", classes={"$list": ["int64", [2, 1]]}), "classes must be two or more"),
        (put("model", classes={"$list": ["object", ["a", 1]]}), "classes must be two or more"),
        (
            put("model", classes={"$list": ["object", [{"$tuple": [1]}, {"$tuple": [2]}]]}),
            "classes",
        ),
        (put(*VOCABULARY, node_alphabet={"$tuple": [{"a": 1}, 1, 2, 3]}), "can be hashed"),
        (
            put(*VOCABULARY, node_alphabet={"$tuple": [0, 1, 2, {"$float": "nan"}]}),
            "different labels",
        ),
        (put("model", "patterns", first_depth=9), "first_depth"),
        (put("model", "patterns", kind="subtree"), "kind of pair feature"),
        (put("model", "decision", "kernel", name="none"), "kernel must be one of"),
        (put("model", "choice", best_params={"depth": "2"}), "best_params must be"),
        (put("model", "choice", learner={"solver": "luck"}), "'solver' parameter"),
        (put("model", "choice", "cv_results", scores={}, losses={}, decisions={}), "on all"),
        (put(estimator="Oracle"), "'estimator' is 'Oracle'"),
        (put(estimator="GraphClassifier"), "'estimator' is"),
        (put(estimator=["GraphSVC"]), "'estimator' is"),
        (put(parameters=[]), "'parameters':"),
        (put("parameters", n_jobs=100_000), "n_jobs must be"),
        (put("parameters", more=1), "unexpected keyword argument 'more'"),
        (put("parameters", learner=3), "'parameters': "),
        (put("parameters", scoring="luck"), "'parameters': The 'scoring' parameter of GraphSVC"),
        (lambda r: r.manifest.update(format="other"), "no treelens model"),
    ],
)
def test_entries_that_are_missing_or_wrong(path, change, message):
    refuse(path, change, message)
