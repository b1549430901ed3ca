"""A classifier and a regressor for more graphs than fit into memory: always by blocks.

They are :class:`GraphClassifier` and :class:`GraphRegressor`, which learn from blocks and predict
blocks themselves. Only one thing differs: graphs that are given at once are cut into blocks too, so
that a model is the same, bit for bit, whether its graphs came from a file or from a list, and
whether there were fewer of them than ``exact_size`` or more.
"""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

from treelens._sklearn_compat import Interval
from treelens.estimators.evidence import GraphClassifier, GraphRegressor
from treelens.estimators.process import GaussianProcessOnGraphs
from treelens.graphs.blocks import CollectionBlocks, check_blocks, holds_blocks
from treelens.graphs.convert import check_graphs

if TYPE_CHECKING:
    from typing_extensions import Self

_BLOCK_SIZE: dict[str, list[Any]] = {"block_size": [Interval(Integral, 1, None, closed="left")]}


class FitsByBlocks(GaussianProcessOnGraphs):
    """``fit`` by blocks, whatever the graphs come as."""

    block_size: int

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        covariates: Any = None,
        executor: Any = None,
    ) -> Self:
        """Draw a sample to learn patterns, weights and landmarks from, then condition on all.

        Parameters
        ----------
        X : blocks, or graphs of any kind that :func:`treelens.as_graph_collection` takes
            Blocks (:class:`SmilesBlocks`, :class:`TUBlocks`, :class:`CollectionBlocks` or a list of
            pairs ``(graphs, y)``) are read twice, one in memory at a time. Graphs are cut into
            blocks of ``block_size``.
        y : array-like, shape (n_graphs,), optional
            The targets of graphs; those of blocks are in the blocks.
        sample_weight, covariates : None
            Blocks take none.
        executor : executor, optional
            Where blocks are read and worked on, such as
            :class:`treelens.gp.executors.JoblibExecutor`; by default here, one after the other.
            The model is the same, bit for bit.
        """
        self._validate_params()
        if y is None:
            check_blocks(X)
        elif not holds_blocks(X):
            X, y = CollectionBlocks(check_graphs(X), y, self.block_size), None
        return super().fit(X, y, sample_weight, covariates=covariates, executor=executor)


class StreamingGraphClassifier(FitsByBlocks, GraphClassifier):
    """:class:`GraphClassifier` on any number of graphs: read in blocks, seen through landmarks.

    Memory is that of a sample of ``exact_size`` graphs, of one block, of ``n_landmarks**2`` numbers
    a few times over, and some 32 bytes for each target. The model does not depend on how the blocks
    are cut nor on who works on them. Everything that a :class:`GraphClassifier` tells is there; of
    the training graphs (``loo_``, ``fragments_``, ``patterns_``) it is told of the sample.

    Parameters
    ----------
    depth, weights, trees, class_weight, threshold, prior_strength, learning_size, n_landmarks, \
max_steps, device, n_jobs, random_state, progress :
        As for :class:`GraphClassifier`.
    block_size : int, default=5000
        Graphs that are given at once are cut into blocks of so many.
    exact_size : int, default=12000
        How many graphs the sample holds.

    Examples
    --------
    >>> import treelens as tl
    >>> graphs, y = tl.make_synthetic(n_per_substructure=5, random_state=0)
    >>> model = tl.StreamingGraphClassifier(depth=2, block_size=30, random_state=0)
    >>> blocks = tl.CollectionBlocks(graphs, y, block_size=7)
    >>> here, there = model.fit(graphs, y).predict_proba(graphs), model.fit(blocks)
    >>> bool((there.predict_proba(tl.CollectionBlocks(graphs)) == here).all())
    True
    """

    _parameter_constraints: ClassVar = {**GraphClassifier._parameter_constraints, **_BLOCK_SIZE}

    def __init__(
        self,
        depth: int = 4,
        weights: str = "branches",
        *,
        block_size: int = 5000,
        trees: Any = "auto",
        class_weight: Any = None,
        threshold: Any = "auto",
        prior_strength: float = 30.0,
        learning_size: int = 3000,
        exact_size: int = 12_000,
        n_landmarks: int = 3000,
        max_steps: int = 100,
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: Any = None,
        progress: bool | None = None,
    ) -> None:
        self._keep_parameters(locals())


class StreamingGraphRegressor(FitsByBlocks, GraphRegressor):
    """:class:`GraphRegressor` on any number of graphs: read in blocks, seen through landmarks.

    As :class:`StreamingGraphClassifier`, for numbers.

    Parameters
    ----------
    depth, weights, trees, prior_strength, learning_size, n_landmarks, max_steps, device, n_jobs, \
random_state, progress :
        As for :class:`GraphRegressor`.
    block_size, exact_size :
        As for :class:`StreamingGraphClassifier`.

    Examples
    --------
    >>> import treelens as tl
    >>> graphs = tl.as_graph_collection([(
    ...     [(i, i + 1) for i in range(n)], {i: "C" for i in range(n + 1)}) for n in range(1, 13)])
    >>> model = tl.StreamingGraphRegressor(depth=1, block_size=5, random_state=0)
    >>> _ = model.fit(graphs, [float(n) for n in range(1, 13)])
    >>> mean, std = model.predict(tl.CollectionBlocks(graphs, block_size=4), return_std=True)
    >>> bool(abs(mean[5] - 6.0) < 0.5), len(std)
    (True, 12)
    """

    _parameter_constraints: ClassVar = {**GraphRegressor._parameter_constraints, **_BLOCK_SIZE}

    def __init__(
        self,
        depth: int = 4,
        weights: str = "branches",
        *,
        block_size: int = 5000,
        trees: Any = "auto",
        prior_strength: float = 30.0,
        learning_size: int = 3000,
        exact_size: int = 12_000,
        n_landmarks: int = 3000,
        max_steps: int = 100,
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: Any = None,
        progress: bool | None = None,
    ) -> None:
        self._keep_parameters(locals())
