"""GraphClassifier and GraphRegressor fitted to blocks and predicting blocks."""

import gc
import weakref
from functools import partial

import networkx
import numpy as np
import pytest

import treelens as tl
from treelens.chem.blocks import SmilesBlocks
from treelens.errors import GraphDataError
from treelens.gp.executors import SerialExecutor
from treelens.gp.landmarks import LandmarkPosterior
from treelens.graphs.blocks import Block, CollectionBlocks

SETTINGS = {"depth": 1, "random_state": 0, "exact_size": 60, "n_landmarks": 20, "n_jobs": 1}
SMILES = ["CCO", "CCN", "c1ccccc1", "CC(=O)O", "CCCl", "C1CC1", "CO", "CN", "CCCC", "OCCO"]
KINDS = {"classes": tl.GraphClassifier, "numbers": tl.GraphRegressor}


@pytest.fixture(scope="module")
def data():
    """Graphs, and of each a class and a number that follows its size but for noise."""
    graphs, classes = tl.make_synthetic(n_per_substructure=15, random_state=0)
    noise = np.random.default_rng(0).normal(0, 0.5, len(graphs))
    names = np.where(np.asarray(classes) > 0, "yes", "no")
    return graphs, {"classes": names, "numbers": graphs.sizes + noise}


@pytest.fixture(scope="module")
def models(data):
    graphs, targets = data
    return {
        kind: make(**SETTINGS).fit(CollectionBlocks(graphs, targets[kind], 33))
        for kind, make in KINDS.items()
    }


def assert_same_model(one, other) -> None:
    one, other = one.model_, other.model_
    found, expected = one.posterior, other.posterior
    np.testing.assert_allclose(found.coefficients, expected.coefficients, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found.precision_gain, expected.precision_gain, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(one.weights, other.weights)
    assert one.slope == pytest.approx(other.slope)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("block_size", [7, 10**6])
def test_blocks_of_any_size_give_the_same_model(data, models, kind, block_size):
    graphs, targets = data
    found = KINDS[kind](**SETTINGS).fit(CollectionBlocks(graphs, targets[kind], block_size))
    assert_same_model(found, models[kind])
    assert isinstance(found.model_.posterior, LandmarkPosterior)


@pytest.mark.parametrize("class_weight", ["balanced", {"no": 1.0, "yes": 5.0}])
def test_with_every_graph_a_landmark_it_is_the_exact_model(data, class_weight):
    graphs, targets = data
    y = targets["classes"].copy()
    y[::3] = "no"  # so that balance changes something
    settings = {"depth": 1, "random_state": 0, "class_weight": class_weight, "threshold": 0.5}
    exact = tl.GraphClassifier(**settings, views=[tl.WLPatterns()]).fit(graphs, y)
    model = tl.GraphClassifier(**settings).fit(CollectionBlocks(graphs, y, 50))
    for method in ("decision_function", "predict_proba"):
        expected = getattr(exact, method)(graphs)
        np.testing.assert_allclose(getattr(model, method)(graphs), expected, atol=1e-5)
    np.testing.assert_allclose(model.loo_.decisions, exact.loo_.decisions, atol=1e-5)


def test_blocks_of_a_table_are_learned_on_its_scale(tmp_path):
    pytest.importorskip("rdkit")
    rows = [
        f"{'C' * n}{end},{10 ** (0.1 * n + 0.3 * k)}"
        for n in range(1, 21)
        for k, end in enumerate("ON")
    ]
    path = tmp_path / "assay.csv"
    path.write_text("\n".join(["smiles,IC50", *rows]) + "\n")
    table = tl.read_table(path, target="IC50", transform="log10")
    model = tl.GraphRegressor(**SETTINGS).fit(CollectionBlocks(table.graphs, table.targets, 9))
    np.testing.assert_allclose(model.predict(table.graphs), table.targets.values, rtol=0.2)
    path.write_text("\n".join(["smiles,IC50", *rows, "CCCCCCO,>1000"]) + "\n")
    table = tl.read_table(path, target="IC50", duplicates="keep")
    with pytest.raises(ValueError, match="limits"):
        tl.GraphRegressor(**SETTINGS).fit(CollectionBlocks(table.graphs, table.targets, 9))


def answers(model, given) -> list[np.ndarray]:
    """All predictions for graphs or blocks."""
    if hasattr(model, "classes_"):
        methods = ("predict", "predict_proba", "decision_function", "out_of_vocabulary")
        return [getattr(model, name)(given) for name in methods]
    return [model.predict(given), *model.predict(given, return_std=True)]


@pytest.fixture(scope="module")
def several_classes(data):
    """A support vector machine of three classes."""
    three = np.array(["a", "b", "c"])[np.arange(len(data[0])) % 3]
    return tl.GraphSVC("wwl", 1, 0, 1.0, 1.0, cv=2, random_state=0).fit(data[0][::2], three[::2])


@pytest.mark.parametrize("kind", [*KINDS, "svc"])
def test_blocks_are_predicted_as_graphs_are(data, models, kind, several_classes):
    graphs, targets = data[0], {"svc": data[1]["classes"], **data[1]}
    model = several_classes if kind == "svc" else models[kind]
    expected = answers(model, graphs)
    for blocks in (
        CollectionBlocks(graphs, None, 50),
        list(CollectionBlocks(graphs, targets[kind], 50)),
        [(graphs[:90], None), (graphs[:0], None), (list(graphs[90:]), targets[kind][90:])],
    ):
        for found, wanted in zip(answers(model, blocks), expected, strict=True):
            assert found.shape == wanted.shape
            if wanted.dtype.kind == "f":
                np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
            else:
                np.testing.assert_array_equal(found, wanted)
    with pytest.raises(GraphDataError, match=r"Block 1 .*: There are 120 graphs but 3 values"):
        model.predict([(graphs, None), (graphs, targets[kind][:3])])


def test_blocks_are_predicted_one_at_a_time(data, models):
    loads, held, most_held = [], [], 0

    class Counted:
        def __init__(self, number) -> None:
            self.rows = slice(25 * number, 25 * number + 25)

        def load(self):
            nonlocal most_held
            gc.collect()
            most_held = max(most_held, sum(ref() is not None for ref in held))
            graphs = data[0][self.rows]
            loads.append(self)
            held.append(weakref.ref(graphs))
            return Block(graphs, None)

    parts = [Counted(number) for number in range(-(-len(data[0]) // 25))]
    assert len(parts) > 3
    assert len(models["classes"].predict_proba(parts)) == len(data[0])
    assert loads == parts  # each once, in order
    assert most_held <= 1  # of the blocks before


@pytest.mark.filterwarnings("ignore::treelens.errors.InvalidMoleculesWarning")
def test_molecules_of_a_file_are_predicted_in_blocks(tmp_path):
    pytest.importorskip("rdkit")
    model = tl.GraphClassifier(depth=1, random_state=0).fit(SMILES * 3, [0, 1] * 15)
    path = tmp_path / "new.csv"
    path.write_text("\n".join(["smiles", *SMILES[:4], "bad", "bad too", *SMILES[4:]]) + "\n")
    blocks = SmilesBlocks(path, target=None, block_size=2, on_invalid="skip")
    np.testing.assert_allclose(model.predict_proba(blocks), model.predict_proba(SMILES))
    np.testing.assert_array_equal(model.predict(blocks), model.predict(SMILES))
    path.write_text("smiles\nbad\n")
    with pytest.raises(GraphDataError, match="The blocks contain no graph"):
        model.predict(blocks)


@pytest.mark.parametrize("loaded", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_explanations_fragments_table_and_report(data, models, kind, loaded, tmp_path):
    graphs, targets = data
    model = models[kind]
    if loaded:
        model.save(tmp_path / "m.treelens")
        model = tl.load(tmp_path / "m.treelens")
    said = partial(model.predict, learned_scale=True)
    if kind == "classes":
        said = model.decision_function
    for number in (0, 3):
        explanation = model.explain(graphs[number])
        whole = explanation.base + explanation.node_contributions.sum()
        assert whole == pytest.approx(said(graphs[number : number + 1])[0])
        assert len(explanation.neighbors)
    some = graphs[:20], targets[kind][:20]
    assert "</html>" in model.report(tmp_path / "report.html", *some).read_text("utf-8")
    assert {"in_domain", "expected_error"} <= set(model.predict_table(graphs[:5]))
    assert len(model.fragments(graphs, targets[kind])) > 0
    if loaded:
        with pytest.raises(AttributeError, match="does not have its training graphs"):
            _ = model.fragments_
    else:
        assert (model.fragments_["support"] <= SETTINGS["exact_size"]).all()  # of the sample


@pytest.mark.parametrize("name", ["y", "sample_weight", "covariates"])
def test_blocks_and_executors_take_nothing_else(data, models, name):
    graphs, y = data[0], data[1]["classes"]
    beside, blocks = {name: np.arange(len(graphs), dtype=float)}, CollectionBlocks(graphs, y)
    with pytest.raises(TypeError, match=f"Blocks take no {name} beside them"):
        tl.GraphClassifier().fit(blocks, **beside)
    if name == "covariates":
        with pytest.raises(TypeError, match=f"Blocks take no {name} beside them"):
            models["classes"].predict(blocks, **beside)
    with pytest.raises(TypeError, match="executor must be one of"):
        tl.GraphClassifier().fit(blocks, executor=3)
    with pytest.raises(TypeError, match="executor works on blocks"):
        tl.GraphClassifier().fit(graphs, y, executor=SerialExecutor())


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_where_graphs_are_expected(data, models, kind, tmp_path):
    graphs, model = data[0], models[kind]
    blocks = CollectionBlocks(graphs, data[1][kind], 50)
    for refusing in (
        lambda: model.explain(blocks),
        lambda: model.summary(blocks),
        lambda: model.report(tmp_path / "r.html", blocks),
        lambda: model.predict_table(blocks),
        lambda: model.fragments(blocks),
        lambda: tl.GraphSVC().fit(blocks, data[1]["classes"]),
    ):
        with pytest.raises(GraphDataError, match=r"got blocks.*part\.load\(\)\.graphs"):
            refusing()
    with pytest.raises(GraphDataError, match="NetworkX graph by itself"):
        model.predict(networkx.grid_graph((2, 2)))  # nodes are pairs, but it is no list of blocks
    beside = model.score(blocks, data[1][kind])
    assert beside == pytest.approx(model.score(graphs, data[1][kind]))


def test_blocks_without_graphs_change_nothing(data, models):
    graphs, y = data[0], data[1]["classes"]
    blocks = [(graphs[:0], []), (graphs[:70], y[:70]), (graphs[:0], []), (graphs[70:], y[70:])]
    assert_same_model(tl.GraphClassifier(**SETTINGS).fit(blocks), models["classes"])
    with pytest.raises(GraphDataError, match="at least two are needed"):
        tl.GraphClassifier(**SETTINGS).fit([(graphs[:0], [])])
    with pytest.raises(GraphDataError, match="The blocks contain no graph"):
        models["classes"].predict([(graphs[:0], None)])
