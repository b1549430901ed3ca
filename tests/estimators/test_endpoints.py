"""Several endpoints through GraphRegressor, GraphClassifier and GraphPanel: one door."""

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import cross_val_score

import treelens as tl
from strategies import random_collection
from treelens.errors import GraphDataError
from treelens.gp.panel_model import FittedPanel
from treelens.storage.files import ModelFileError

SETTINGS = {"depth": 1, "n_jobs": 1, "max_steps": 40}
SUMMARY_WORDS = "is for models of one endpoint, and this one has 2"


@pytest.fixture(scope="module")
def data():
    """A number, a class that goes with it, and graphs."""
    rng = np.random.default_rng(1)
    graphs = random_collection(rng, 80, max_nodes=12)
    size = graphs.sizes + 2.0 * rng.normal(size=80)  # half of which the graphs do not tell
    large = (size > np.median(size)) ^ (rng.uniform(size=80) < 0.1)  # some are wrong
    table = pd.DataFrame({"size": size, "twice": 2.0 * size + rng.normal(size=80)})
    table["kind"] = np.where(large, "large", "small")
    table["odd"] = np.where(graphs.sizes % 2 == 1, 1.0, 0.0)
    table.loc[::4, "size"] = np.nan
    table.loc[1::4, "kind"] = None
    table.loc[2::5, "odd"] = np.nan
    return graphs, table


@pytest.fixture(scope="module")
def numbers(data):
    return tl.GraphRegressor(**SETTINGS).fit(data[0][:60], data[1][["size", "twice"]][:60])


@pytest.fixture(scope="module")
def classes(data):
    return tl.GraphClassifier(**SETTINGS).fit(data[0][:60], data[1][["kind", "odd"]][:60])


@pytest.fixture(scope="module")
def both(data):
    return tl.GraphPanel(**SETTINGS).fit(data[0][:60], data[1][["size", "kind", "twice"]][:60])


def test_arrays_frames_and_targets_of_numbers_are_one_panel(data, numbers):
    graphs, table = data
    frame = table[["size", "twice"]][:60]
    new = graphs[60:]
    expected = numbers.predict(new, return_std=True)
    assert expected[0].shape == expected[1].shape == (20, 2)
    assert numbers.endpoints_ == ["size", "twice"]
    assert isinstance(numbers.model_, FittedPanel)
    for y in (frame.to_numpy(), tl.Targets(frame)):
        again = tl.GraphRegressor(**SETTINGS).fit(graphs[:60], y)
        np.testing.assert_array_equal(again.predict(new), expected[0])
    panel = tl.GraphPanel(**SETTINGS).fit(graphs[:60], frame)
    np.testing.assert_array_equal(panel.predict(new, return_std=True), expected)
    cov = numbers.predict(new, return_cov="endpoints")[1]
    np.testing.assert_allclose(np.sqrt(cov[:, [0, 1], [0, 1]]), expected[1])
    assert numbers.score(new, table[["size", "twice"]][60:]) > 0.5
    assert numbers.scores(new, table[["size"]][60:]).loc["size", "n"] == 15
    assert numbers.correlations_.loc["size", "twice"] > 0.8
    assert set(numbers.shares_.columns) == {"size", "twice"}
    assert numbers.loo_.loc[("new", "size"), "r2"] > 0.5
    assert numbers.converged_
    assert (numbers.noise_ > 0).all()


def test_one_column_stays_the_model_of_one_endpoint(data):
    graphs, table = data
    y = table["twice"][:60]
    one = tl.GraphRegressor(**SETTINGS).fit(graphs[:60], y)
    frame = tl.GraphRegressor(**SETTINGS).fit(graphs[:60], y.to_frame())
    np.testing.assert_array_equal(one.predict(graphs), frame.predict(graphs))
    assert one.predict(graphs).shape == (80,)
    assert one.endpoints_ == ["twice"]
    for call in (
        lambda: one.predict(graphs, measured=table[["twice"]]),
        lambda: one.predict(graphs, return_cov="endpoints"),
        lambda: one.scores(graphs, table["twice"]),
    ):
        with pytest.raises(ValueError, match="several endpoints"):
            call()
    assert not hasattr(one, "correlations_")


def test_classes_with_gaps(data, classes):
    graphs, table = data
    new, truth = graphs[60:], table[["kind", "odd"]][60:]
    assert [each.tolist() for each in classes.classes_] == [["large", "small"], [0, 1]]
    found = classes.predict(new)
    assert found.shape == (20, 2)
    assert set(found[:, 0]) <= {"large", "small"}
    assert set(found[:, 1]) <= {0, 1}
    chances, decisions = classes.predict_proba(new), classes.decision_function(new)
    assert [each.shape for each in chances] == [(20, 2), (20, 2)]
    for k, own in enumerate(chances):
        np.testing.assert_allclose(own.sum(axis=1), 1.0)
        np.testing.assert_array_equal(own[:, 1] > 0.5, decisions[:, k] > 0)
    scores = classes.scores(new, truth)
    assert scores.loc["kind", "roc_auc"] > 0.6
    assert scores.loc["kind", "n"] == 15
    assert classes.score(new, truth) == pytest.approx(scores["accuracy"].mean())
    # probabilities are calibrated on training graphs that are left out
    left_out = classes.loo_.loc["new"]
    assert left_out.loc["kind", "roc_auc"] > 0.8


def test_numbers_and_classes_tell_of_each_other(data, both):
    graphs, table = data
    new, truth = graphs[60:], table[["size", "kind", "twice"]][60:]
    found = both.predict(new)
    assert found.dtype == object
    assert isinstance(found[0, 0], float)
    assert found[0, 1] in ("large", "small")
    assert both.predict_proba(new)["kind"].shape == (20, 2)
    assert both.classes_by_endpoint_["kind"].tolist() == ["large", "small"]
    known = both.scores(new, truth, measured=truth)
    alone = both.scores(new, truth)
    assert known.loc["size", "rmse"] < alone.loc["size", "rmse"]
    assert np.isnan(alone.loc["kind", "rmse"])
    assert np.isnan(alone.loc["size", "roc_auc"])
    assert both.correlations_.loc["size", "kind"] < -0.2  # the second class is "small"
    parts = alone.loc["size", "r2"], alone.loc["kind", "accuracy"], alone.loc["twice", "r2"]
    assert both.score(new, truth) == pytest.approx(np.mean(parts))
    # what is measured of new molecules: a class tells of a number
    large = pd.DataFrame({"kind": ["large"] * 20})
    small = pd.DataFrame({"kind": ["small"] * 20})
    difference = both.predict(new, measured=large)[:, 0] - both.predict(new, measured=small)[:, 0]
    assert (difference.astype(float) > 0).all()


@pytest.mark.parametrize("name", ["numbers", "classes", "both"])
def test_files_keep_them(data, name, request, tmp_path):
    model, new = request.getfixturevalue(name), data[0][60:]
    model.save(tmp_path / "m.treelens")
    loaded = tl.load(tmp_path / "m.treelens")
    assert type(loaded) is type(model)
    np.testing.assert_array_equal(loaded.predict(new), model.predict(new))
    pd.testing.assert_frame_equal(loaded.loo_, model.loo_)
    pd.testing.assert_frame_equal(loaded.correlations_, model.correlations_)
    assert loaded.converged_ == model.converged_
    if name != "classes":
        pd.testing.assert_frame_equal(
            pd.DataFrame(loaded.predict(new, return_std=True)[1]),
            pd.DataFrame(model.predict(new, return_std=True)[1]),
        )


def test_a_file_of_another_kind_is_refused(classes, tmp_path):
    from treelens.estimators.model_files import write_model

    write_model(tl.GraphRegressor(), classes.model_, tmp_path / "m.treelens")
    with pytest.raises(ModelFileError, match="which has no model like this"):
        tl.load(tmp_path / "m.treelens")


@pytest.mark.parametrize("name", ["numbers", "both"])
def test_notebooks_show_scores_and_correlations(name, request):
    html = request.getfixturevalue(name)._html_repr()
    assert "Correlations" in html
    assert "size" in html
    assert "<table" in html


def test_scikit_learn_scores_it(data):
    y = tl.Targets(data[1][["size", "twice"]])
    found = cross_val_score(tl.GraphRegressor(**SETTINGS), data[0], y, cv=2)
    assert found.shape == (2,)
    assert (found > 0.3).all()


def test_endpoints_that_were_not_measured_are_not_scored(data, numbers):
    graphs, truth = data[0][60:], data[1][["size", "twice"]][60:]
    one = truth.assign(size=np.nan)
    assert numbers.score(graphs, one) == pytest.approx(
        numbers.scores(graphs, one).loc["twice", "r2"]
    )
    with pytest.raises(GraphDataError, match="too few values of any endpoint"):
        numbers.score(graphs, one.assign(twice=np.nan))


def test_tables_of_predictions(data, both):
    graphs, truth = data[0][60:], data[1][["size", "kind", "twice"]][60:]
    table = both.predict_table(graphs, measured=truth)
    mean, std = both.predict(graphs, return_std=True, measured=truth)
    np.testing.assert_allclose(table["size_prediction"], mean[:, 0].astype(float))
    np.testing.assert_allclose(table["size_std"], std[:, 0])
    assert table["kind_class"].tolist() == mean[:, 1].tolist()
    bounds = both.predict_interval(graphs, measured=truth)
    np.testing.assert_allclose(table[["size_lower_90", "size_upper_90"]], bounds[:, 0])
    assert table["kind_measured"].isna().tolist() == truth["kind"].isna().tolist()
    assert table["similarity"].between(0, 1).all()
    nearest = both.predict_table(data[0][:5])
    assert nearest["similarity"].tolist() == [1.0] * 5
    assert set(table.filter(like="in_domain").columns) == {
        "size_in_domain",
        "kind_in_domain",
        "twice_in_domain",
    }
    with pytest.raises(ValueError, match="is for models of one endpoint"):
        tl.GraphRegressor(**SETTINGS).fit(graphs, truth[["size", "twice"]]).domain(graphs)


def test_a_fitted_panel_does_not_change(data, numbers, tmp_path):
    graphs = data[0]
    numbers.save(tmp_path / "m.treelens")
    model = tl.load(tmp_path / "m.treelens").model_
    assert model.joint.factor is None
    model.decide(graphs[60:], variance=True)
    assert model.joint.factor is None
    with pytest.raises(AttributeError):
        model.joint.factor = np.zeros((1, 1))


@pytest.mark.parametrize(
    "call",
    [
        lambda model, graphs: model.patterns_,
        lambda model, graphs: model.kernel_matrix(graphs),
        lambda model, graphs: model.kneighbors(graphs),
        lambda model, graphs: model.condition(graphs, [1.0] * len(graphs)),
        lambda model, graphs: model.evidence_,
        lambda model, graphs: model.sample_y(graphs),
    ],
)
def test_what_panels_lack_says_so(data, numbers, call):
    with pytest.raises((ValueError, AttributeError), match=SUMMARY_WORDS):
        call(numbers, data[0][60:])


@pytest.mark.parametrize(
    ("settings", "more", "words"),
    [
        ({"weights": "branches"}, {}, "weights='branches' is for one endpoint"),
        ({}, {"covariates": np.zeros((60, 1))}, "covariates is not supported with several"),
        ({}, {"noise": np.ones(60)}, r"noise has the shape \(60,\), expected \(60, 2\)"),
        ({}, {"limits": ["="] * 60}, r"limits has the shape \(60,\)"),
        ({}, {"sample_weight": np.ones(60)}, r"sample_weight has the shape \(60,\)"),
    ],
)
def test_what_several_endpoints_do_not_take(data, settings, more, words):
    graphs, table = data
    with pytest.raises((ValueError, TypeError), match=words):
        tl.GraphRegressor(**(SETTINGS | settings)).fit(
            graphs[:60], table[["size", "twice"]][:60], **more
        )


def test_predictions_refuse_what_they_do_not_have(data, numbers):
    for more in ({"covariates": [1.0] * 20}, {"learned_scale": True}, {"intervals": "scaffold"}):
        with pytest.raises(ValueError, match="not supported with several endpoints"):
            numbers.predict(data[0][60:], **more)
    with pytest.raises(GraphDataError, match="'size' is one of numbers, and y holds 'big'"):
        numbers.predict(data[0][60:62], measured=pd.DataFrame({"size": ["big", "small"]}))


def test_measured_classes_must_be_known(data, both):
    with pytest.raises(GraphDataError, match=r"'kind': .* none of the classes"):
        both.predict(data[0][60:62], measured=pd.DataFrame({"kind": ["large", "huge"]}))


def test_an_endpoint_of_one_value_is_named():
    graphs = [
        ([(i, i + 1) for i in range(n)], dict.fromkeys(range(n + 1), "C")) for n in range(1, 21)
    ]
    y = pd.DataFrame({"size": np.arange(20.0), "same": np.ones(20)})
    with pytest.warns(UserWarning, match="All 20 values of the endpoint 'same' are 1"):
        tl.GraphRegressor(depth=1, n_jobs=1).fit(graphs, y)
