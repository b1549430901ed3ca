"""Tables of a user as views: rows by id, shares that are learned, what is said of wrong ones."""

import numpy as np
import pandas as pd
import pytest

import treelens as tl
from strategies import random_collection
from treelens.errors import GraphDataError

RNG = np.random.default_rng(0)
NAMES = [f"g{k}" for k in range(70)]
GRAPHS = random_collection(RNG, 70, max_nodes=7).with_names(NAMES)
HEAT = RNG.normal(size=70)
SIZES = np.array([graph.n_nodes for graph in GRAPHS], dtype=float)
Y = SIZES + 2.0 * HEAT + 0.1 * RNG.normal(size=70)
TABLE = pd.DataFrame({"id": NAMES, "heat": HEAT, "assay": ["a", "b"] * 35})
FEW = {"depth": 1, "weights": "uniform", "n_jobs": 1}


def views(table, **settings):
    return [tl.WLPatterns(), tl.Table(table, **settings)]


@pytest.fixture(scope="module")
def model():
    return tl.GraphRegressor(**FEW, views=views(TABLE)).fit(GRAPHS[:50], Y[:50])


def test_rows_are_found_by_id_in_any_order(model, tmp_path):
    shuffled = TABLE.sample(frac=1.0, random_state=0)
    again = tl.GraphRegressor(**FEW, views=views(shuffled)).fit(GRAPHS[:50], Y[:50])
    mean = model.predict(GRAPHS[50:], tables=TABLE)
    np.testing.assert_allclose(again.predict(GRAPHS[50:], tables=shuffled), mean, rtol=1e-9)
    plain = tl.GraphRegressor(**FEW, views=[tl.WLPatterns()]).fit(GRAPHS[:50], Y[:50])
    errors = [np.std(each - Y[50:]) for each in (mean, plain.predict(GRAPHS[50:]))]
    assert errors[0] < 0.5 * errors[1]
    assert model.views_ == ["patterns", "table"]
    TABLE.to_csv(tmp_path / "heat.csv", index=False)
    of_file = tl.GraphRegressor(**FEW, views=views(tmp_path / "heat.csv")).fit(GRAPHS[:50], Y[:50])
    assert of_file.views_ == ["patterns", "heat"]
    found = of_file.predict(GRAPHS[50:], tables={"heat": tmp_path / "heat.csv"})
    np.testing.assert_allclose(found, mean, rtol=1e-6)


def test_a_table_that_says_nothing_gets_a_small_share():
    noise = pd.DataFrame({"id": NAMES, **{f"n{k}": RNG.normal(size=70) for k in range(5)}})
    truth = SIZES + 0.1 * RNG.normal(size=70)
    found = tl.GraphRegressor(**FEW, views=views(noise)).fit(GRAPHS[:50], truth[:50])
    assert found.shares_["table"] < 0.02
    plain = tl.GraphRegressor(**FEW, views=[tl.WLPatterns()]).fit(GRAPHS[:50], truth[:50])
    errors = [
        np.sqrt(np.mean((mean - truth[50:]) ** 2))
        for mean in (found.predict(GRAPHS[50:], tables=noise), plain.predict(GRAPHS[50:]))
    ]
    assert errors[0] < 1.1 * errors[1]


def test_files_keep_what_predictions_need(model, tmp_path):
    model.save(tmp_path / "m.treelens")
    loaded = tl.load(tmp_path / "m.treelens")
    kept = [each.predict(GRAPHS[50:], tables=TABLE) for each in (model, loaded)]
    np.testing.assert_allclose(*kept)
    bounds = loaded.predict_interval(GRAPHS[50:], tables=TABLE)
    assert (bounds[:, 0] < bounds[:, 1]).all()


def test_several_tables_have_names():
    more = pd.DataFrame({"id": NAMES, "size": SIZES})
    two = [*views(TABLE, name="warm"), tl.Table(more, name="large")]
    model = tl.GraphRegressor(**FEW, views=two).fit(GRAPHS[:50], Y[:50])
    assert model.views_ == ["patterns", "warm", "large"]
    model.predict(GRAPHS[50:], tables={"warm": TABLE, "large": more})
    with pytest.raises(ValueError, match="several tables"):
        model.predict(GRAPHS[50:], tables=TABLE)
    with pytest.raises(ValueError, match="no table of this model"):
        model.predict(GRAPHS[50:], tables={"cold": TABLE})
    with pytest.raises(ValueError, match="two tables called 'table'"):
        tl.GraphRegressor(views=[*views(TABLE), tl.Table(more)]).fit(GRAPHS, Y)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (TABLE[:40], "no row for 10 of 50 graphs"),
        (pd.concat([TABLE, TABLE[:1]]), "two rows of the id 'g0'"),
        (TABLE.rename(columns={"id": "name"}), "no column 'id' of ids"),
        (TABLE[["id"]], "needs columns"),
    ],
)
def test_tables_that_cannot_be_joined(table, words):
    with pytest.raises(GraphDataError, match=words):
        tl.GraphRegressor(**FEW, views=views(table)).fit(GRAPHS[:50], Y[:50])


def test_graphs_without_ids_and_without_rows(model):
    bare = tl.as_graph_collection(list(GRAPHS[:50].with_names(None)))
    with pytest.raises(GraphDataError, match="needs ids of the graphs"):
        tl.GraphRegressor(**FEW, views=views(TABLE)).fit(bare, Y[:50])
    with pytest.raises(GraphDataError, match="tables=frame"):
        model.predict(GRAPHS[50:])
    with pytest.raises(TypeError, match="covariates=array"):
        tl.GraphRegressor(**FEW, views=views(np.zeros((70, 2)))).fit(GRAPHS, Y)


def test_ids_that_are_numbers_match_their_text():
    numbered = GRAPHS.with_names(list(range(70)))
    table = TABLE.assign(id=np.arange(70.0))  # as a column with gaps is read
    found = tl.GraphRegressor(**FEW, views=views(table)).fit(numbered[:50], Y[:50])
    assert found.shares_["table"] > 0.1
