"""Gaussian processes on more graphs than fit into memory, here, in processes or on a Dask cluster.

Patterns, weights and landmarks come from a sample, which is drawn by a hash of each graph's number;
the posterior is that of all graphs, through sums over landmarks, whose size does not depend on how
many graphs there are. An executor has three methods: ``map(function, parts, *shared)`` yields
``function(*part, *shared)`` in the order of the parts, ``loaded(parts)`` tells what they hold, and
``total(function, parts, *shared)`` adds up what the function returns.
"""

from __future__ import annotations

import inspect
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain, islice, zip_longest
from operator import methodcaller
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np

from treelens.errors import GraphDataError
from treelens.gp import landmarks
from treelens.gp.landmarks import BLOCK, LandmarkFit, LandmarkPosterior, LandmarkSums
from treelens.gp.model import FittedGP
from treelens.gp.posterior import LeaveOneOut, ScaledTargets, solve_upper
from treelens.gp.views import FittedView
from treelens.graphs.blocks import Block, Part, block_name, graph_name, parts_of, repeat_messages
from treelens.graphs.collection import Graph, GraphCollection
from treelens.graphs.convert import as_graph_collection
from treelens.kernels.base import SumKernel
from treelens.parallel import batches
from treelens.patterns.forest import SeenGraphs
from treelens.patterns.histograms import GraphViews
from treelens.targets import Targets

if TYPE_CHECKING:
    from distributed import Client

_TASK_SIZE = 8 * BLOCK  # graphs that a task sent to a worker holds at least
# Unfinished tasks per worker thread: enough to keep it busy, few enough to hold in memory.
_TASKS_PER_THREAD = 4
_TASKS_ADDED = 8  # results that a task adds up
# The position of the first target that cannot be learned from, and words about it; None: all can.
FirstWrong = Callable[[np.ndarray], tuple[int, str] | None]
Task = Callable[..., Any]


class LoadedPart(NamedTuple):
    """What a part holds; its graphs may be on another machine."""

    n_graphs: int
    y: Targets | None
    messages: tuple[Warning, ...]
    select: Callable[[list[int]], list[Graph]]  # graphs by their position
    # What stands for the part in later tasks, which need not load it again; None: it is not kept.
    kept: Any = None


class BlockSample(NamedTuple):
    """Some graphs of the blocks, and the targets of all."""

    graphs: GraphCollection
    y: Targets
    all_targets: Targets  # (n_graphs in all,)
    part_sizes: list[int]  # how many graphs each part held
    kept: list[Any]  # the parts, where the executor keeps all of them


def sample_of_blocks(
    blocks: Iterable[Any],
    size: int,
    seed: int,
    first_wrong: FirstWrong = lambda y: None,
    executor: SerialExecutor | None = None,
) -> BlockSample:
    """Draw ``size`` graphs, or all, evenly; the same ones however the blocks are cut.

    Blocks are parsed by the executor, unless they are in memory here. Which graphs are drawn
    depends on how many came before, so that some are asked for that others replace later.
    """
    kept: list[tuple[int, int, Graph]] = []  # key, number and graph
    targets: list[np.ndarray] = []
    described: list[tuple[str | None, str | None, str | None]] = []  # transform, name, unit
    sizes: list[int] = []
    first, limit = 0, np.uint64(2**64 - 1)
    parts = parts_of(blocks)
    head = list(islice(parts, 1))
    if executor is None or (head and isinstance(head[0], Block)):
        executor = SerialExecutor()
    held: list[Any] = []
    for number, part in enumerate(executor.loaded(chain(head, parts))):
        repeat_messages(part.messages)
        n = part.n_graphs
        sizes.append(n)
        held.append(part.kept)
        if not n:
            continue
        if part.y is None:
            raise GraphDataError(
                f"{block_name(number)} holds no targets: give every block its y (SmilesBlocks: "
                "target=..., CollectionBlocks: y=..., else pairs (graphs, y))."
            )
        own = Targets.of(part.y, n)
        described.append((own.transform, own.name, own.unit))
        targets.append(own.values)
        wrong = first_wrong(targets[-1])
        if wrong is not None:
            place = graph_name(number, wrong[0], part.select([wrong[0]])[0], first)
            raise GraphDataError(f"{place}: {wrong[1]}. Drop the graph or give it a target.")
        keys = _mixed(np.arange(first, first + n), seed)
        new = np.flatnonzero(keys <= limit).tolist()
        found = part.select(new) if new else []
        kept += [(int(keys[k]), first + k, graph) for k, graph in zip(new, found, strict=True)]
        if len(kept) > size:
            kept = sorted(kept, key=lambda each: each[:2])[:size]
            limit = np.uint64(kept[-1][0])
        first += n
    if first < 2:
        raise GraphDataError(f"The blocks hold {first} graphs: at least two are needed.")
    if len({y.dtype.kind in "biuf" for y in targets}) > 1:  # NumPy would make texts of all
        raise GraphDataError("Some blocks hold numbers, others texts: give all of them one kind.")
    if len(set(described)) > 1:
        raise GraphDataError("The targets of the blocks differ in name, unit or transform.")
    (transform, name, unit) = described[0]
    every = Targets(np.concatenate(targets), transform=transform, name=name, unit=unit)
    kept.sort(key=lambda each: each[1])
    graphs = as_graph_collection([graph for _, _, graph in kept])
    drawn = every[[number for _, number, _ in kept]]
    return BlockSample(graphs, drawn, every, sizes, [] if None in held else held)


def _mixed(numbers: np.ndarray, seed: int) -> np.ndarray:
    """A hash of each number under a seed, as uint64."""
    # Were seeds only added, samples of neighbouring seeds would be shifted copies of each other.
    own = _scattered(np.array([seed], dtype=np.uint64))
    return _scattered(_scattered(numbers.astype(np.uint64)) ^ own)


def _scattered(words: np.ndarray) -> np.ndarray:
    """Splitmix64 of whole numbers."""
    words = (words + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


class LandmarkView(NamedTuple):
    """All that a worker needs to compare graphs with the landmarks."""

    views: tuple[FittedView, ...]
    kernel: SumKernel
    landmarks: GraphViews
    factor: np.ndarray  # (m, m) of the kernel among landmarks
    noise: float


def posterior_of_blocks(
    model: FittedGP,
    blocks: Iterable[Any],
    sample: BlockSample,
    targets: ScaledTargets,
    sample_targets: ScaledTargets,
    n_jobs: int = 1,
    executor: SerialExecutor | None = None,
) -> tuple[LandmarkPosterior, LeaveOneOut]:
    """Return the posterior given all graphs, and leave-one-out predictions of the sample.

    ``model`` is that of the sample, whose basis graphs are the landmarks; ``targets`` are of all.
    """
    factor = landmarks.factor_landmarks(model.kernel_rows(model.basis_graphs, n_jobs), n_jobs)
    view = LandmarkView(model.views, model.kernel, model.basis_graphs, factor, model.noise)
    alone = executor is None
    parts = iter(sample.kept) if sample.kept else parts_of(blocks, model.recipe)
    runs = _runs(parts, sample.part_sizes, targets, not alone)
    executor = executor or SerialExecutor()
    inner, right = executor.total(_sums_of_run, runs, view, n_jobs if alone else 1)
    sums = LandmarkSums(factor, inner + np.eye(len(factor)), right)
    fit = LandmarkFit(
        model.kernel,
        model.training_graphs,
        model.noise / sample_targets.weights,
        sample_targets.values,
        n_jobs,
    )
    own = fit.projections(factor, model.basis_graphs)
    return fit.conditioned(sums, model.basis_indices, own)


def _runs(
    parts: Iterable[Part], sizes: Sequence[int], targets: ScaledTargets, together: bool
) -> Iterator[tuple[tuple[Part, ...], int, ScaledTargets]]:
    """Yield neighbouring parts with the number of their first graph and their targets.

    One part at a time, or ``together`` until a task is worth sending; ``sizes`` are of all parts.
    """
    least = _TASK_SIZE if together else 1
    waiting: list[Part] = []
    first = last = 0
    for k, (part, size) in enumerate(zip_longest(parts, sizes), 1):
        if part is None or size is None:
            raise _changed(f"There were {len(sizes)} blocks at first, and another number")
        waiting.append(part)
        last += size
        if last - first >= least or (k == len(sizes) and last > first):
            yield tuple(waiting), first, targets.select(slice(first, last))
            waiting, first = [], last


def _changed(what: str) -> GraphDataError:
    return GraphDataError(
        f"{what} when they were read again: blocks are read twice, and must hold the same graphs "
        "in the same order each time."
    )


def _sums_of_run(
    parts: tuple[Part, ...], first: int, targets: ScaledTargets, view: LandmarkView, n_jobs: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Return what the graphs of some parts add to the sums: the task of one worker."""
    inner, right = np.zeros_like(view.factor), np.zeros((len(view.factor), targets.values.shape[1]))
    start = 0
    for part in parts:
        graphs = part.load().graphs
        if graphs is None or not len(graphs):
            continue
        n = len(graphs)
        for where in batches(n, BLOCK) if start + n <= len(targets.values) else ():
            own = targets.select(slice(start + where.start, start + where.stop))
            seen = SeenGraphs(tuple(each.refine(graphs[where], n_jobs) for each in view.views))
            rows = view.kernel.matrix(seen.features, view.landmarks, n_jobs)
            projected = solve_upper(view.factor, rows.T, transposed=True, n_jobs=n_jobs)
            noise = view.noise / own.weights
            found = landmarks.block_sums(projected, noise, own.values, n_jobs)
            inner += found[0]
            right += found[1]
        start += n
    if start != len(targets.values):
        raise _changed(
            f"From graph {first} on, blocks held {len(targets.values)} graphs at first, and {start}"
        )
    return inner, right


Sums = tuple[np.ndarray, ...]


def _added(first: Sums, *others: Sums) -> Sums:
    """Return sums of arrays, element by element."""
    return tuple(sum(more, start=own) for own, *more in zip(first, *others, strict=True))


class SerialExecutor:
    """One part after the other: never more than one in memory."""

    def map(self, function: Task, parts: Iterable[Any], *shared: Any) -> Iterator[Any]:
        return (function(*part, *shared) for part in parts)

    def loaded(self, parts: Iterable[Part]) -> Iterator[LoadedPart]:
        """Yield what each part holds."""
        for block in self.map(methodcaller("load"), ((part,) for part in parts)):
            n_graphs, y, messages = _described(block)
            yield LoadedPart(n_graphs, y, messages, partial(_selected, block))

    def total(self, function: Task, parts: Iterable[Any], *shared: Any) -> Sums:
        """Return the sums of the arrays that the function returns."""
        found = self.map(function, parts, *shared)
        total = tuple(each.copy() for each in next(found))
        for more in found:
            for own, added in zip(total, more, strict=True):
                own += added
        return total


def _described(block: Block) -> tuple[int, Targets | None, tuple[Warning, ...]]:
    return 0 if block.graphs is None else len(block.graphs), block.y, block.messages


def _selected(block: Block, rows: list[int]) -> list[Graph]:
    return [block.graphs[row] for row in rows]


class JoblibExecutor(SerialExecutor):
    """In ``n_jobs`` processes, or wherever ``joblib.parallel_config`` says."""

    def __init__(self, n_jobs: int = 2) -> None:
        self.n_jobs = n_jobs

    def map(self, function: Task, parts: Iterable[Any], *shared: Any) -> Iterator[Any]:
        from joblib import Parallel, delayed

        parallel = Parallel(n_jobs=self.n_jobs, return_as="generator", pre_dispatch="2*n_jobs")
        return parallel(delayed(function)(*part, *shared) for part in parts)


class DaskExecutor(SerialExecutor):
    """On the workers of a Dask cluster.

    Workers keep the graphs that they have parsed, and add up their sums among themselves. Tasks
    know what they were made of, so when a worker dies the scheduler runs its tasks again
    elsewhere, and the result is the same.

    Parameters
    ----------
    client : dask.distributed.Client
        Of a scheduler whose workers have treelens installed. Without workers, tasks wait for some
        to come, as long as it takes.

    Examples
    --------
    >>> from dask.distributed import Client  # doctest: +SKIP
    >>> model.fit(blocks, executor=DaskExecutor(Client("scheduler:8786")))  # doctest: +SKIP
    """

    def __init__(self, client: Client) -> None:
        self.client = client

    @property
    def _ahead(self) -> int:
        """How many tasks may be unfinished."""
        return _TASKS_PER_THREAD * max(1, sum(self.client.nthreads().values()))

    def map(self, function: Task, parts: Iterable[Any], *shared: Any) -> Iterator[Any]:
        """Yield results in the order of the parts; a few tasks are always ahead."""
        inputs = [self._submit(_itself, value) for value in shared]
        waiting: deque[Any] = deque()
        for part in parts:
            waiting.append(self._submit(function, *part, *inputs))
            if len(waiting) >= self._ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def loaded(self, parts: Iterable[Part]) -> Iterator[LoadedPart]:
        """Yield what each part holds; its graphs stay with the worker that has parsed them."""
        waiting: deque[tuple[Any, Any]] = deque()

        def first() -> LoadedPart:
            block, described = waiting.popleft()

            def select(rows: list[int]) -> list[Graph]:
                found: list[Graph] = self._submit(_selected, block, rows).result()
                return found

            n_graphs, y, messages = described.result()
            return LoadedPart(n_graphs, y, messages, select, block)

        for part in parts:
            block = self._submit(methodcaller("load"), part)
            waiting.append((block, self._submit(_described, block)))
            if len(waiting) >= self._ahead:
                yield first()
        while waiting:
            yield first()

    def total(self, function: Task, parts: Iterable[Any], *shared: Any) -> Sums:
        """Return the sums of the arrays that the function returns, which workers add up.

        Some tasks at a time become one, and so on: one result travels to the client.
        """
        from dask.distributed import wait

        inputs = [self._submit(_itself, value) for value in shared]
        waiting: deque[Any] = deque()
        levels: list[list[Any]] = []
        for part in parts:
            found = self._submit(function, *part, *inputs)
            waiting.append(found)
            if len(waiting) >= self._ahead:
                wait(waiting.popleft())
            for level in levels:
                level.append(found)
                if len(level) < _TASKS_ADDED:
                    break
                found = self._submit(_added, *level)
                level.clear()
            else:
                levels.append([found])
        waiting.clear()
        total: Sums = self._submit(_added, *chain.from_iterable(levels)).result()
        return total

    def _submit(self, function: Task, *inputs: Any) -> Any:
        """Begin one task and return its future."""
        with warnings.catch_warnings():
            # Dask advises to scatter a large input; a scattered one would die with its worker.
            warnings.filterwarnings("ignore", "Sending large graph")
            return self.client.submit(function, *inputs, pure=False)


def _itself(value: object) -> object:
    return value


def check_executor(executor: object) -> SerialExecutor | None:
    """Return an executor; an error says what it should be."""
    if executor is None or isinstance(executor, SerialExecutor):
        return executor
    raise TypeError(
        "executor must be one of treelens.gp.executors.JoblibExecutor(2) and "
        f"treelens.gp.executors.DaskExecutor(client), got {executor!r:.60}."
    )


class LearnsFromBlocks(Protocol):
    """An estimator that takes blocks and an executor."""

    def fit(self, X: object, /, *, executor: object) -> object: ...


BlockModel = TypeVar("BlockModel", bound=LearnsFromBlocks)


def fit_distributed(
    model: BlockModel,
    blocks: Iterable[Any],
    client: Client | str | None = None,
    n_workers: int = 2,
) -> BlockModel:
    """Fit a model that takes blocks on a cluster.

    Parameters
    ----------
    model : GraphRegressor or GraphClassifier
    blocks : iterable of parts
        ``SmilesBlocks``, ``CollectionBlocks`` or a list of ``(graphs, y)`` pairs.
    client : dask.distributed.Client or str, optional
        A client, or the address of a scheduler to connect to for the while. By default
        worker processes are started on this machine and stopped at the end.
    n_workers : int
        Number of those. As with any worker processes, a script that starts them keeps what it
        does under ``if __name__ == "__main__":``.

    Returns
    -------
    model, fitted: that of ``model.fit(blocks)``, up to rounding.
    """
    parameters = inspect.signature(model.fit).parameters if hasattr(model, "fit") else {}
    if isinstance(model, type) or "executor" not in parameters:
        raise TypeError(
            f"Blocks are learned from by GraphRegressor() and GraphClassifier(); got {model!r:.60}."
            " Others take graphs in memory: fit(graphs, y)."
        )
    if client is not None and not isinstance(client, str):
        model.fit(blocks, executor=DaskExecutor(client))
        return model
    try:
        from dask.distributed import Client, LocalCluster
    except ImportError as error:
        raise ImportError("A cluster needs Dask: pip install dask distributed.") from error

    with ExitStack() as stack:
        address = client or stack.enter_context(
            LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=None)
        )
        model.fit(blocks, executor=DaskExecutor(stack.enter_context(Client(address))))
    return model
