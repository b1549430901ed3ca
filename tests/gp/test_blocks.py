"""Gaussian processes on blocks: the model of all graphs, however and wherever these are read."""

import importlib
import pickle
import re

import joblib
import numpy as np
import pytest

import treelens as tl
from treelens.chem.blocks import SmilesBlocks
from treelens.errors import InvalidMoleculesWarning
from treelens.gp import executors
from treelens.gp.executors import (
    DaskExecutor,
    JoblibExecutor,
    SerialExecutor,
    check_executor,
    sample_of_blocks,
)
from treelens.gp.landmarks import LandmarkPosterior
from treelens.graphs.blocks import CollectionBlocks

SETTINGS = {"depth": 1, "random_state": 0, "exact_size": 40, "n_landmarks": 15, "n_jobs": 1}


@pytest.fixture(scope="module")
def data():
    graphs, classes = tl.make_synthetic(n_per_substructure=12, random_state=0)
    sizes = np.diff(graphs.node_offsets).astype(float)
    return graphs, classes, sizes + np.random.default_rng(0).normal(0, 0.1, len(graphs))


def test_a_sample_does_not_depend_on_the_blocks(data):
    graphs, _, values = data
    samples = [
        sample_of_blocks(CollectionBlocks(graphs, values, size), 20, seed=3)
        for size in (7, 50, 1000)
    ]
    for sample in samples[1:]:
        assert np.array_equal(sample.y, samples[0].y)
        assert list(sample.graphs) == list(samples[0].graphs)
    assert np.array_equal(samples[0].all_targets, values)
    assert np.isin(samples[0].y, values).all()
    other = sample_of_blocks(CollectionBlocks(graphs, values, 50), 20, seed=4)
    assert not np.array_equal(other.y, samples[0].y)


class Elsewhere(SerialExecutor):
    """An executor that notes what it is asked to do."""

    def __init__(self):
        self.done = []

    def map(self, function, parts, *shared):
        for part in parts:
            self.done.append(function)
            yield pickle.loads(pickle.dumps(function(*part, *shared)))


def test_an_executor_reads_files_but_not_what_is_in_memory(data, tmp_path):
    graphs, _, values = data
    executor, path = Elsewhere(), tmp_path / "molecules.csv"
    sample_of_blocks(CollectionBlocks(graphs, values, 50), 20, 3, executor=executor)
    assert executor.done == []
    rows = "".join(f"{'C' * (1 + i % 9)},{i}\n" for i in range(30))
    path.write_text("smiles,value\n" + rows + "bad!,31\nCO,32\n")
    blocks = SmilesBlocks(path, target="value", block_size=8, on_invalid="skip")
    with pytest.warns(InvalidMoleculesWarning, match=r"row 31 \(line 32\)"):
        here = sample_of_blocks(blocks, 10, 3)
    with pytest.warns(InvalidMoleculesWarning, match=r"row 31 \(line 32\)"):
        there = sample_of_blocks(blocks, 10, 3, executor=executor)
    assert len(executor.done) == 4
    assert list(there.graphs) == list(here.graphs)
    assert np.array_equal(there.all_targets, here.all_targets)
    assert there.part_sizes == here.part_sizes == [8, 8, 8, 7]


def test_a_sample_is_drawn_evenly():
    graphs = tl.make_synthetic(n_per_substructure=2, random_state=0)[0]
    numbers = np.arange(len(graphs), dtype=float)
    counts = np.zeros(len(graphs))
    for seed in range(400):
        drawn = sample_of_blocks(CollectionBlocks(graphs, numbers, 5), 4, seed).y.values
        counts[drawn.astype(int)] += 1
    expected = 400 * 4 / len(graphs)
    assert np.abs(counts - expected).max() < 5 * np.sqrt(expected)


@pytest.mark.parametrize("seeds", [(0, 1), (1, 2), (7, 8), (0, 2**31 - 2)])
def test_samples_of_two_seeds_overlap_as_by_chance(seeds):
    """Also when one is moved along: a seed that were only added would shift the sample."""
    n, size = 2000, 400
    graphs = tl.as_graph_collection([([], {0: "C"})])[np.zeros(n, dtype=int)]
    blocks = CollectionBlocks(graphs, np.arange(n), 500)
    one, other = (set(sample_of_blocks(blocks, size, seed).y.tolist()) for seed in seeds)
    share = size / n
    deviation = np.sqrt(size * share * (1 - share) ** 2)
    for shift in range(-2, 3):
        overlap = len(one & {number + shift for number in other})
        assert abs(overlap - size * share) < 4.5 * deviation


def test_the_posterior_is_that_of_all_graphs(data):
    graphs, _, values = data
    model = tl.GraphRegressor(**SETTINGS).fit(CollectionBlocks(graphs, values, 30))
    assert isinstance(model.model_.posterior, LandmarkPosterior)
    fitted = model.model_
    among = fitted.kernel_rows(fitted.basis_graphs)
    rows = fitted.kernel_rows(fitted.refine(graphs).features)
    rough = rows @ np.linalg.solve(among, rows.T) + fitted.noise * np.eye(len(graphs))
    targets = (values - fitted.target_offset[0]) / fitted.target_scale
    mean = rows @ np.linalg.solve(among, rows.T @ np.linalg.solve(rough, targets))
    np.testing.assert_allclose(
        model.predict(graphs), fitted.target_offset[0] + fitted.target_scale * mean, rtol=1e-4
    )


def test_a_class_that_the_sample_lacks_is_named_even_if_that_leaves_one(data):
    graphs = data[0]
    classes = np.zeros(len(graphs), dtype=int)
    seed = int(np.random.RandomState(0).randint(2**31 - 1))
    sample = sample_of_blocks(CollectionBlocks(graphs, np.arange(len(graphs)), 25), 40, seed)
    classes[np.setdiff1d(np.arange(len(graphs)), sample.y)[:3]] = 1
    with pytest.raises(ValueError, match=r"The class 1 is in the blocks, 3 of \d+ graphs, but"):
        tl.GraphClassifier(**SETTINGS).fit(CollectionBlocks(graphs, classes, 25))


@pytest.mark.parametrize(("at", "wrong"), [(0, np.nan), (31, np.inf), (70, "n.d."), (52, None)])
def test_a_value_that_is_no_number_is_named_by_its_place(data, at, wrong):
    graphs, _, values = data
    broken = values.astype(object)
    broken[at] = wrong
    if isinstance(wrong, float):
        broken = broken.astype(float)
    told = rf"Block {at // 25} \(counted from 0\), graph {at % 25} of it \({at} of all\): y holds "
    with pytest.raises(ValueError, match=told + ".*which is no number. Drop the graph"):
        tl.GraphRegressor(**SETTINGS).fit(CollectionBlocks(graphs, broken, 25))


def test_a_molecule_with_a_wrong_value_is_named_by_its_row(tmp_path):
    pytest.importorskip("rdkit")
    lines = [f"{'C' * n}O,{n}" for n in range(1, 30)]
    lines[3], lines[20] = "no smiles,4", "CCCC,inf"
    path = tmp_path / "x.csv"
    path.write_text("\n".join(["smiles,value", *lines]) + "\n")
    blocks = SmilesBlocks(path, target="value", block_size=10, on_invalid="skip")
    told = r"Block 2 .*graph 0 of it \(19 of all\), row 21 of its table: y holds inf"
    with pytest.warns(UserWarning, match="row 4"), pytest.raises(ValueError, match=told):
        tl.GraphRegressor(**SETTINGS).fit(blocks)


@pytest.mark.parametrize("change", [-1, 1])
def test_blocks_that_change_between_two_readings_are_refused(data, change):
    graphs, _, values = data

    class Changing:
        """Another number of graphs each time."""

        n = len(graphs) - 5

        def __iter__(self):
            yield graphs[: self.n], values[: self.n]
            self.n += change

    blocks = Changing()
    with pytest.raises(ValueError, match=r"held \d+ graphs at first, and \d+ when .* read again"):
        tl.GraphRegressor(**SETTINGS).fit(blocks)


@pytest.mark.parametrize(
    ("blocks", "words"),
    [
        ([(slice(2), [1, 2]), (slice(2), ["a", "b"])], "give all of them one kind"),
        (
            [(slice(2), np.array(["a", None], dtype=object))],
            r"graph 1 of it \(1 of all\): y holds no class \(None\)",
        ),
    ],
)
def test_blocks_that_cannot_be_learned_from(data, blocks, words):
    given = [
        (data[0][rows], np.array(y, dtype=object if None in y else None)) for rows, y in blocks
    ]
    with pytest.raises(ValueError, match=words):
        tl.GraphClassifier(**SETTINGS).fit(given)


def doubled(part: int, weight: int) -> int:
    return part * weight


@pytest.mark.parametrize("executor", [SerialExecutor(), JoblibExecutor(1), JoblibExecutor(2)])
def test_results_come_in_the_order_of_the_parts(executor) -> None:
    with joblib.parallel_config(backend="threading"):
        assert list(executor.map(doubled, [(3,), (1,), (2,)], 2)) == [6, 2, 4]


def test_executors_give_the_same_model_and_none_the_same_up_to_rounding(data, monkeypatch) -> None:
    monkeypatch.setattr(executors, "_TASK_SIZE", 30)  # several tasks
    graphs, _, values = data
    blocks = CollectionBlocks(graphs, values, 20)
    one, two, alone = (
        tl.GraphRegressor(**SETTINGS).fit(blocks, executor=executor).model_.posterior
        for executor in (SerialExecutor(), JoblibExecutor(2), None)
    )
    np.testing.assert_array_equal(one.coefficients, two.coefficients)
    np.testing.assert_array_equal(one.precision_gain, two.precision_gain)
    np.testing.assert_allclose(one.coefficients, alone.coefficients, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("executor", [3, "dask", SerialExecutor, DaskExecutor])
def test_what_is_no_executor_is_refused_with_the_names_of_some(executor) -> None:
    with pytest.raises(TypeError, match=r"executor must be") as caught:
        check_executor(executor)
    named = re.findall(r"(treelens[\w.]*)\.(\w+)\(", str(caught.value))
    assert [name for _, name in named] == ["JoblibExecutor", "DaskExecutor"]
    for module, name in named:
        assert issubclass(getattr(importlib.import_module(module), name), SerialExecutor)
    for good in (None, SerialExecutor(), JoblibExecutor(2)):
        check_executor(good)
