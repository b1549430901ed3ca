"""Gaussian processes on graphs whose evidence decides how much every pattern weighs."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, Literal, overload

import numpy as np
import scipy
from sklearn.metrics import r2_score
from sklearn.utils import check_random_state

from treelens._sklearn_compat import Interval, RegressorMixin, StrOptions
from treelens.errors import GraphDataError, check_choice, check_whole
from treelens.estimators.base import FittedClassifier, view
from treelens.estimators.gaussian_process import GaussianProcessEstimator, TrainingTargets
from treelens.gp.censoring import starting_weights
from treelens.gp.choice import tenths_by_rank
from treelens.gp.posterior import (
    LeaveOneOut,
    LeftOutClasses,
    LeftOutGroups,
    LeftOutNumbers,
    ScaledTargets,
    class_columns,
    in_units_of_targets,
    left_out_classes,
    left_out_groups,
    left_out_numbers,
)
from treelens.gp.scales import DEPTH as SCALE_DEPTH
from treelens.gp.scales import choose_scale
from treelens.graphs.collection import GraphCollection
from treelens.graphs.content import draw_keys
from treelens.graphs.convert import holds_blocks
from treelens.graphs.kinds import kind_of_facts
from treelens.maps import TargetMap
from treelens.models.predictions import (
    Threshold,
    class_weights,
    fit_slope,
    parse_threshold,
    warn_if_one_class,
    warn_if_slope_at_bound,
)
from treelens.targets import (
    Targets,
    check_class_labels,
    first_no_number,
    first_without_class,
    likely_limits,
    likely_limits_in_words,
)
from treelens.views import ViewSettings


class GraphRegressor(RegressorMixin, GaussianProcessEstimator):
    """Gaussian process regression on graphs, with weights of patterns that are learned.

    Graphs are compared by how often each Weisfeiler-Lehman pattern occurs in them. Scales of the
    kernel and weights of patterns maximise the marginal likelihood, under a prior by which a rare
    pattern borrows from the more common ones that it refines. Priors hold learned weights to
    uniform ones where data are few.

    Parameters
    ----------
    depth : int or "auto", default="auto"
        The number of Weisfeiler-Lehman iterations: how many bonds a pattern reaches. ``"auto"``:
        of uniform weights the depth from 1 to 4 with the largest marginal likelihood; learned
        weights use all depths up to this one, and at least up to 2.
    weights : {"auto", "uniform", "depths", "branches"}, default="auto"
        Uniform weights, one per depth, or one for every *branch* of the tree of patterns, which
        ``"auto"`` stands for.
    descriptors : {"auto", "compact", "fast", "all"} or bool, default="auto"
        Short for ``chem.Descriptors(...)`` among the views: a kernel on descriptors of whole
        molecules, whose share is learned. ``"compact"`` or True: 21 cheap ones (logP, polar
        surface, donors, rings, charge, ...); ``"fast"``: those of RDKit that cost little time;
        ``"all"``. ``"auto"``: compact ones of molecules, where ``views`` is ``"auto"``, too. Not
        with blocks, nor on a GPU.
    views : "auto" or list, default="auto"
        What is seen of graphs, each view under a kernel of its own: :class:`treelens.WLPatterns`,
        :class:`treelens.Paths`, :class:`treelens.Table`, ``treelens.chem.Descriptors``,
        ``treelens.chem.Ecfp``. ``"auto"`` are Weisfeiler-Lehman patterns, paths (where graphs have
        at most 60 nodes on average) and, where there are any, attributes of nodes
        (:class:`treelens.AttributeCells`) and descriptors of molecules; a list is complete but for
        covariates and for ``descriptors`` by name. With blocks and on a GPU, ``"auto"`` is the
        first of these alone.
    prior_strength : float, default=30
        How firmly the prior holds each branch to the weight of the pattern that it refines.
    learning_size : int, default=1200
        Weights are learned on at most so many training graphs, drawn evenly over the targets. Of
        more, up to 4,000 settle amplitude and noise. A larger one may learn better weights, in time
        that grows with its cube. Several endpoints learn on three times as many cells.
    exact_size : int, default=12000
        Up to so many training graphs predictions are exact, with 24 bytes of memory for every pair
        of graphs (3.5 GB at most by default); beyond, they go through landmarks. On a GPU, left at
        its default, as many as its memory holds: some 75,000 in 141 GB. Of several endpoints, two
        and a half times as many cells.
    n_landmarks : int, default=3000
        How many graphs predictions then go through, most of them chosen where those before predict
        worst. Time is proportional to ``n_landmarks**2`` for every training graph.
    max_steps : int, default=100
        Iterations of each stage of the search on half of the graphs; on all of them there are at
        most 15, and above 1,000 graphs 6.
    device : str, default="cpu"
        Where to fit and predict: ``"cuda"`` is a GPU, through CuPy and numba-cuda (extra ``gpu``).
        Values agree with the CPU's to rounding, which a search at little noise may magnify; the
        model predicts on a CPU as well.
    n_jobs : int, optional
        Threads; by default all processors, or what ``joblib.parallel_config`` says, with the
        results of one: BLAS keeps to one thread. A number, or -1 for all processors, is for BLAS,
        too: faster from some thousand graphs on, and last digits of results may change.
    random_state : int, RandomState or None, default=0
        Deals graphs to the halves that weights are learned and compared on, and draws samples and
        landmarks.
    progress : bool, optional
        Whether to show a progress bar; by default only on a terminal.

    Attributes
    ----------
    model_ : FittedGP
        Patterns, weights, kernel and posterior, frozen. Other fitted attributes are views of it:
        ``best_depth_``, ``best_weights_``, ``uses_descriptors_``, ``learning_gain_``, ``loo_``,
        ``weights_``, ``patterns_``, ``fragments_``, ``evidence_``, ``history_``, ``converged_``.

    Examples
    --------
    >>> import treelens as tl
    >>> graphs = tl.as_graph_collection([(
    ...     [(i, i + 1) for i in range(n)], {i: "C" for i in range(n + 1)}) for n in range(1, 13)])
    >>> model = tl.GraphRegressor(depth=1).fit(graphs, [float(n) for n in range(1, 13)])
    >>> mean, std = model.predict(graphs[5:6], return_std=True)
    >>> bool(abs(mean[0] - 6.0) < 0.5), bool(std[0] > 0)
    (True, True)
    """

    _left_out_scaffolds: tuple[Any, LeftOutGroups] | None = None
    _endpoint_kind = "numbers"

    def score(self, X: object, y: object, sample_weight: object = None) -> float:
        """Return the share of the variance of y that predictions explain (R2).

        Limits are left out: only values that were measured can be compared with. Of several
        endpoints it is the mean of theirs; :meth:`scores` has each.
        """
        if self._is_panel:
            return self._panel_score(X, y)
        predicted = self.predict(X)
        targets = Targets.of(y, len(predicted), sample_weight=sample_weight)
        measured = targets[targets.exact]
        if not len(measured):
            raise GraphDataError("y holds limits only: there is no value to compare with.")
        weights = measured.sample_weight
        return float(r2_score(measured.numbers(), predicted[targets.exact], sample_weight=weights))

    def _training_targets(self, y: Targets) -> TrainingTargets:
        found = likely_limits(y.numbers()) if y.limits is None else None
        if found is not None:
            warnings.warn(
                f"{likely_limits_in_words(y.numbers(), found)}: where the assay ends there, pass "
                "limits='auto', which takes these values as limits.",
                UserWarning,
                stacklevel=3,
            )
        values, std, weights = y.learned(), y.learned_noise(), y.weights()
        if (n_exact := int(y.exact.sum())) < 2:
            raise ValueError(
                f"{n_exact} of {len(y)} values are exact: a regressor needs at least 2."
            )
        if std is not None:
            weights = starting_weights(std**2, values)
            weights = weights / weights.mean()
        known = self._standardized(values, weights)
        if std is not None:
            known = known._replace(noise=std**2 / known.targets.scale**2)
        return known._replace(targets=replace(known.targets, limits=y.limits), record=y.record)

    def _on_scale(
        self, graphs: GraphCollection, y: Targets, covariates: Sequence[str] = ()
    ) -> Targets:
        if y.transform is not None:
            return y
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        settings = ViewSettings(SCALE_DEPTH, self.prior_strength, self._n_jobs())
        scale = choose_scale(
            y,
            draw_keys(graphs, y.numbers(), seed, self._sees_attributes()),
            lambda some: self._training_views(graphs[some], settings, covariates),
        )
        return y if scale is None else y.on_scale(scale)

    def _standardized(self, values: np.ndarray, weights: np.ndarray) -> TrainingTargets:
        targets = ScaledTargets.standardized(values[:, None], weights, None)
        return TrainingTargets(values, tenths_by_rank(values), targets)

    def _sample_targets(self, y: Targets, all_y: Targets) -> tuple[TrainingTargets, ScaledTargets]:
        known = self._standardized(y.learned(), np.ones(len(y)))._replace(record=y.record)
        every = all_y.learned()[:, None]
        return known, known.targets.alike(every, np.ones(len(every)))

    def _targets_with_more(self, y: Targets, weights: np.ndarray) -> TrainingTargets:
        values = np.concatenate([self.model_.training.targets, y.numbers_on(self._scale)])
        targets = self.model_.targets_with(values[:, None], weights)
        return TrainingTargets(values, tenths_by_rank(values), targets)

    _first_wrong = staticmethod(first_no_number)

    def _scored(self, left_out: LeaveOneOut, known: TrainingTargets) -> tuple[LeftOutNumbers, None]:
        return left_out_numbers(left_out, known.targets, known.given), None

    @property
    def loo_(self) -> LeftOutNumbers:
        """Predictions of each training graph from all the others, with their scores.

        In the units of y; of targets with ``transform="log10"`` or ``"ln"``, on that scale. Of
        several endpoints a DataFrame of scores, as :class:`treelens.GraphPanel` has it.
        """
        if self._is_panel:
            return self._panel_left_out()  # type: ignore[return-value]
        found, training = self._fitted_model.record.left_out, self._fitted_model.training
        scale = training.record.hidden
        if scale is None:
            return found  # type: ignore[no-any-return]
        return in_units_of_targets(found, scale, training.targets, training.exact)

    train_values_: np.ndarray = view(
        "training.reported",
        "Values of the training graphs, or limits (``train_limits_``), on the scale of ``loo_``.",
    )
    train_limits_: np.ndarray | None = view(
        "training.limits", "1 where a training value is a lower limit, -1 an upper; None: none."
    )

    @overload
    def predict(
        self,
        X: object,
        return_std: Literal[False] = False,
        return_cov: Literal[False] = False,
        include_noise: bool = True,
        *,
        covariates: object = None,
        tables: object = None,
        learned_scale: bool = False,
        intervals: str = "posterior",
        point: str = "mean",
        measured: object = None,
    ) -> np.ndarray: ...
    @overload
    def predict(
        self,
        X: object,
        return_std: bool = False,
        return_cov: bool | str = False,
        include_noise: bool = True,
        *,
        covariates: object = None,
        tables: object = None,
        learned_scale: bool = False,
        intervals: str = "posterior",
        point: str = "mean",
        measured: object = None,
    ) -> tuple[np.ndarray, np.ndarray]: ...
    def predict(
        self,
        X: object,
        return_std: bool = False,
        return_cov: bool | str = False,
        include_noise: bool = True,
        *,
        covariates: object = None,
        tables: object = None,
        learned_scale: bool = False,
        intervals: str = "posterior",
        point: str = "mean",
        measured: object = None,
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Return values and, if asked for, their standard deviations or their covariance.

        Parameters
        ----------
        X : graphs, or blocks of them
            Blocks (such as ``SmilesBlocks(path, target=None)``) are read one at a time, and need no
            targets. What ``on_invalid="skip"`` leaves out has no entry; the warning names it.
        return_std : bool, default=False
        return_cov : bool or "endpoints", default=False
            Instead of standard deviations, the covariance of all graphs; not with blocks. With
            several endpoints ``"endpoints"``: that of the endpoints of each graph, on the scales
            that were learned.
        include_noise : bool, default=True
            Whether deviations are those of new measurements, or of values without noise.
        covariates : table or array of one row per graph, optional
            As in ``fit``, where the model has any and ``X`` does not hold them itself.
        tables : DataFrame, path of a file, or dict of these by name, optional
            Rows for the ids of ``X``, where a :class:`treelens.Table` is among the views.
        learned_scale : bool, default=False
            Of a model that learned on another scale (``transform``): return values, deviations and
            covariances on that scale, instead of the units of y.
        intervals : {"posterior", "scaffold"}, default="posterior"
            ``"scaffold"``, for molecules of new scaffolds: deviations are widened by
            ``left_out_scaffolds_.factor``, so that on training molecules whose scaffold is left
            out nine of ten measurements are within ``mean ± 1.645 std``.
        point : {"mean", "median"}, default="mean"
            Of a model that learned on another scale, which the two are the same on: the mean has
            the smallest squared error in the units of y, the median the smallest absolute error.

        measured : DataFrame or array, shape (n_graphs, n_endpoints), optional
            Of several endpoints, known cells of these graphs, NaN where nothing was measured: the
            others are predicted with them. A measured cell shows the prediction made without it.

        Returns
        -------
        mean : ndarray, shape (n_graphs,) or (n_graphs, n_endpoints)
        std : ndarray, shape (n_graphs,), or cov : ndarray, shape (n_graphs, n_graphs)
            If asked for, of the predictive distribution in the units of y. Deviations of many
            graphs, of an exact model of 1,500 graphs or more, are good to 5e-6 of them: most of
            their work is in float32. Where the model learned
            on another scale this is no normal distribution: see :meth:`predict_interval`. Of
            several endpoints (n_graphs, n_endpoints), and (n_graphs, n_endpoints, n_endpoints) on
            the scales that were learned.
        """
        if return_std and return_cov:
            raise ValueError("Ask for return_std or return_cov, not for both.")
        check_choice("point", point, ("mean", "median"))
        if self._is_panel:
            _check_of_panel(covariates, learned_scale, intervals)
            found: np.ndarray | tuple[np.ndarray, np.ndarray] = self._predict_panel(
                X, return_std, return_cov, include_noise, measured, tables, point
            )
            return found
        _check_of_one_endpoint(return_cov, measured)
        graphs = self._with_numbers(X, covariates, tables)
        scale = None if learned_scale else self._scale
        if return_cov:
            mean, cov = self._joint(graphs, include_noise)
            cov *= self._widening(intervals) ** 2
            if scale is None:
                return mean, cov
            std = np.sqrt(np.diagonal(cov))
            return _point(scale, mean, std, point), scale.inverse_cov(mean, cov)
        if not return_std and (scale is None or point == "median"):
            mean = np.concatenate([each.mean[:, 0] for each in self._each(graphs)])
            return mean if scale is None else scale.inverse(mean)
        mean, std = self._means_and_deviations(graphs, include_noise, intervals)
        if scale is None:
            return mean, std
        found = _point(scale, mean, std, point)
        return (found, scale.inverse_std(mean, std)) if return_std else found

    def predict_interval(
        self,
        X: object,
        level: float = 0.9,
        *,
        covariates: object = None,
        tables: object = None,
        intervals: str = "posterior",
    ) -> np.ndarray:
        """Return the bounds between which measurements lie with a probability.

        They are quantiles, so where the model learned on another scale (``transform``) they are not
        symmetric about the mean, and stay within the bounds of that scale.

        Parameters
        ----------
        X, covariates, tables, intervals :
            As in :meth:`predict`.
        level : float, default=0.9
            The probability; half of the rest lies below the lower bound.

        Returns
        -------
        ndarray, shape (n_graphs, 2)
            Of several endpoints (n_graphs, n_endpoints, 2).

        Examples
        --------
        >>> import treelens as tl
        >>> graphs, y = tl.make_synthetic(n_per_substructure=5, random_state=0)
        >>> model = tl.GraphRegressor(depth=1).fit(graphs[3:], y[3:])
        >>> model.predict_interval(graphs[:3], level=0.5).shape
        (3, 2)
        """
        if not (isinstance(level, Real) and 0.0 < level < 1.0):
            raise ValueError(f"level must be a probability between 0 and 1, got {level!r}.")
        if self._is_panel:
            _check_of_panel(covariates, False, intervals)
            return self._panel_intervals(X, level, None, tables)
        graphs, scale = self._with_numbers(X, covariates, tables), self._scale
        mean, std = self._means_and_deviations(graphs, True, intervals)
        width = scipy.special.ndtri(0.5 + 0.5 * float(level)) * std
        bounds = np.stack([mean - width, mean + width], axis=1)
        return bounds if scale is None else scale.inverse(bounds)

    def _means_and_deviations(
        self, X: object, include_noise: bool, intervals: str
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return means and standard deviations (n_graphs,) each, on the scale that is learned."""
        factor = self._widening(intervals)
        found = list(self._each(X, variance=True))
        mean = np.concatenate([each.mean[:, 0] for each in found])
        variance = np.concatenate([each.variance for each in found if each.variance is not None])
        if not include_noise:
            variance = np.maximum(variance - self.noise_, 0.0)
        return mean, factor * np.sqrt(variance)

    @property
    def left_out_scaffolds_(self) -> LeftOutGroups:
        """Predictions of each training molecule without those of its Bemis-Murcko scaffold.

        Computed when first used, from the training molecules, which a file must have kept.
        Molecules without a ring have no scaffold: they do not count in its scores.
        """
        model, kept = self._of_one_endpoint("left_out_scaffolds_"), self._left_out_scaffolds
        if kept is None or kept[0] is not model:
            graphs = self._train_graphs
            families = None if graphs is None else kind_of_facts(graphs.graph_data).families(graphs)
            if families is None:
                raise ValueError(
                    "Intervals by scaffold need the training molecules, and this model was fitted "
                    "to other graphs or its file does not keep them: use intervals='posterior'."
                )
            kept = model, left_out_groups(model, np.array(families), self._n_jobs())
            self._left_out_scaffolds = kept
        return kept[1]

    def _widening(self, intervals: str) -> float:
        """Return what standard deviations are multiplied by."""
        check_choice("intervals", intervals, ("posterior", "scaffold"))
        return self.left_out_scaffolds_.factor if intervals == "scaffold" else 1.0

    def _joint(self, X: object, include_noise: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return means (n,) and the covariance (n, n) of all graphs, on the learned scale."""
        if holds_blocks(X):
            raise TypeError("A covariance is one of all graphs at once: give graphs, no blocks.")
        mean, cov = self._of_one_endpoint("A joint posterior of graphs").joint(
            self._new_graphs(X), self._n_jobs()
        )
        if include_noise:
            cov[np.diag_indices_from(cov)] += self.noise_
        return mean[:, 0], cov

    def sample_y(
        self,
        X: object,
        n_samples: int = 1,
        random_state: object = 0,
        *,
        include_noise: bool = True,
        covariates: object = None,
        tables: object = None,
        learned_scale: bool = False,
    ) -> np.ndarray:
        """Draw values of all graphs together from the posterior.

        Parameters
        ----------
        X : graphs
        n_samples : int, default=1
        random_state : int, RandomState or None, default=0
        include_noise : bool, default=True
            Whether to draw measurements, or values without noise (for Thompson sampling).
        covariates, tables, learned_scale :
            As in :meth:`predict`.

        Returns
        -------
        ndarray, shape (n_graphs, n_samples)

        Examples
        --------
        >>> import treelens as tl
        >>> graphs, y = tl.make_synthetic(n_per_substructure=5, random_state=0)
        >>> model = tl.GraphRegressor(depth=1).fit(graphs[3:], y[3:])
        >>> model.sample_y(graphs[:3], n_samples=100).shape
        (3, 100)
        """
        check_whole("n_samples", n_samples, 1)
        mean, cov = self._joint(self._with_numbers(X, covariates, tables), include_noise)
        values, vectors = np.linalg.eigh(cov)  # a factor even where rounding leaves it singular
        normal = check_random_state(random_state).standard_normal((len(mean), n_samples))
        drawn = mean[:, None] + vectors @ (np.sqrt(np.maximum(values, 0.0))[:, None] * normal)
        scale = None if learned_scale else self._scale
        return drawn if scale is None else scale.inverse(drawn)


def _point(scale: TargetMap, mean: np.ndarray, std: np.ndarray, point: str) -> np.ndarray:
    """Return means or medians in the units of the targets."""
    return scale.inverse_mean(mean, std) if point == "mean" else scale.inverse(mean)


def _check_of_panel(
    covariates: object, learned_scale: bool = False, intervals: str = "posterior"
) -> None:
    """Raise where predictions of several endpoints are asked for what they do not have."""
    asked = {
        "covariates": covariates is not None,
        "learned_scale=True": learned_scale,
        f"intervals={intervals!r}": intervals != "posterior",
    }
    for name, given in asked.items():
        if given:
            raise ValueError(f"{name} is not supported with several endpoints: leave it out.")


def _check_of_one_endpoint(return_cov: object, measured: object) -> None:
    """Raise where predictions of one endpoint are asked for what several have."""
    if measured is not None or isinstance(return_cov, str):
        name = "measured" if measured is not None else f"return_cov={return_cov!r}"
        raise ValueError(f"{name} is for models of several endpoints, and this one has one.")


class GraphClassifier(FittedClassifier, GaussianProcessEstimator):
    """Gaussian process classification of graphs, with weights of patterns that are learned.

    As :class:`GraphRegressor`, with the classes coded as numbers: +1 and -1 for two, one column
    each for more, all with the same kernel. Decision values are posterior means.

    Parameters
    ----------
    depth, weights, descriptors, views, prior_strength, learning_size, exact_size, \
n_landmarks, max_steps, device, n_jobs, random_state, progress :
        As for :class:`GraphRegressor`. Where a class is rare (of two, below 25 %), weights are
        learned from it whole and three times as many of the others, and the scales of the
        kernel then fitted in the true proportions; predictions are made from all graphs.
    class_weight : None, "balanced" or dict, default=None
        How much the graphs of each class count: the noise of a graph is divided by it.
    threshold : float or str, default="auto"
        How probable the rarer of two classes must be to be named. ``"auto"``: where it is rare
        (below 25 %), the threshold with the largest Matthews correlation, else 0.5;
        ``"recall=0.9"``: the highest that finds nine tenths of it; ``"precision=0.8"``;
        ``"cost=10"``: missing one costs as much as ten false alarms. All of these are chosen on
        leave-one-out predictions. Probabilities and decision values do not depend on it.

    Attributes
    ----------
    model_ : FittedGP

    Examples
    --------
    >>> import treelens as tl
    >>> graphs, y = tl.make_synthetic(n_per_substructure=5, random_state=0)
    >>> model = tl.GraphClassifier(depth=2).fit(graphs, y)
    >>> model.predict(graphs[:2]).tolist() == y[:2].tolist()
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GaussianProcessEstimator._parameter_constraints,
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "threshold": [Interval(Real, 0, 1, closed="neither"), str],
    }
    _endpoint_kind = "classes"

    def __init__(
        self,
        depth: int | str = "auto",
        weights: str = "auto",
        *,
        descriptors: bool | str = "auto",
        views: object = "auto",
        class_weight: object = None,
        threshold: float | str = "auto",
        prior_strength: float = 30.0,
        learning_size: int = 1200,
        exact_size: int = 12_000,
        n_landmarks: int = 3000,
        max_steps: int = 100,
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: object = 0,
        progress: bool | None = None,
    ) -> None:
        super().__init__(
            depth,
            weights,
            descriptors=descriptors,
            views=views,
            prior_strength=prior_strength,
            learning_size=learning_size,
            exact_size=exact_size,
            n_landmarks=n_landmarks,
            max_steps=max_steps,
            device=device,
            n_jobs=n_jobs,
            random_state=random_state,
            progress=progress,
        )
        self.class_weight = class_weight
        self.threshold = threshold

    def _validate_params(self) -> None:
        super()._validate_params()
        parse_threshold(self.threshold)

    def _training_targets(self, y: Targets) -> TrainingTargets:
        return self._coded(y)._replace(record=y.record)

    def _coded(self, y: Targets) -> TrainingTargets:
        classes, codes = y.classes()
        weights = y.weights()
        weights = weights * class_weights(self.class_weight, classes, codes)
        targets = ScaledTargets.standardized(class_columns(codes, len(classes)), weights, 1.0)
        return TrainingTargets(codes, codes, targets, classes)

    def _sample_targets(self, y: Targets, all_y: Targets) -> tuple[TrainingTargets, ScaledTargets]:
        check_class_labels(all_y.values)
        lost = all_y.values[~np.isin(all_y.values, np.unique(y.values))].tolist()
        if lost:
            raise ValueError(
                f"The class {lost[0]!r} is in the blocks, {lost.count(lost[0])} of {len(all_y)} "
                f"graphs, but among the {len(y)} graphs that were drawn from them there is none of "
                "it. Raise exact_size, or leave out classes that are so rare."
            )
        known = self._coded(y)._replace(record=y.record)
        assert known.classes is not None
        codes = np.searchsorted(known.classes, all_y.values)
        of_class = known.targets.weights[np.unique(known.given, return_index=True)[1]]
        columns = class_columns(codes, len(known.classes))
        return known, known.targets.alike(columns, of_class[codes])

    def _targets_with_more(self, y: Targets, weights: np.ndarray) -> TrainingTargets:
        classes, before = self.classes_, self.train_codes_
        new = y.codes_among(classes)
        of_class = class_weights(self.class_weight, classes, before)
        weights = weights * of_class[np.unique(before, return_index=True)[1]][new]
        codes = np.concatenate([before, new])
        targets = self.model_.targets_with(class_columns(codes, len(classes)), weights)
        return TrainingTargets(codes, codes, targets, classes)

    _first_wrong = staticmethod(first_without_class)

    def _scored(
        self, left_out: LeaveOneOut, known: TrainingTargets
    ) -> tuple[LeftOutClasses, float]:
        codes, targets, classes = known.given, known.targets, known.classes
        assert classes is not None
        decisions = targets.offset + targets.scale * left_out.mean
        slope = fit_slope(decisions, codes, targets.weights)
        warn_if_slope_at_bound(slope)
        scores = left_out_classes(decisions, codes, classes, slope, self.threshold)
        warn_if_one_class(np.searchsorted(classes, scores.predictions), classes)
        return scores, slope

    @property
    def loo_(self) -> LeftOutClasses:
        """Predictions of each training graph from all the others, with their scores.

        Of several endpoints a DataFrame of scores, as :class:`treelens.GraphPanel` has it.
        """
        if self._is_panel:
            return self._panel_left_out()  # type: ignore[return-value]
        return self._fitted_model.record.left_out  # type: ignore[no-any-return]

    threshold_: Threshold | None = view(
        "threshold", "What a rare class is named by; None: the most probable class is named."
    )

    @property
    def classes_(self) -> Any:
        """The classes, ascending; of several endpoints a list with those of each."""
        if self._is_panel:
            return [each.classes for each in self._panel.endpoints]
        return self._fitted_model.classes

    def predict(
        self,
        X: object,
        *,
        covariates: object = None,
        tables: object = None,
        measured: object = None,
    ) -> np.ndarray:
        """Classes, shape (n_graphs,): the most probable, or a rare one above its threshold.

        Of several endpoints (n_graphs, n_endpoints). ``X``, ``covariates``, ``tables`` and
        ``measured`` are as in :meth:`GraphRegressor.predict`.
        """
        if self._is_panel:
            _check_of_panel(covariates)
            found: np.ndarray = self._predict_panel(X, False, False, True, measured, tables)
            return found
        _check_of_one_endpoint(False, measured)
        return super().predict(self._with_numbers(X, covariates, tables))

    def predict_proba(
        self,
        X: object,
        *,
        covariates: object = None,
        tables: object = None,
        measured: object = None,
    ) -> Any:
        """Class probabilities, shape (n_graphs, n_classes); the parameters are those of `predict`.

        A logistic function of decision values that is calibrated on left-out training graphs. Of
        several endpoints a list with an array for each, as scikit-learn has it.
        """
        if self._is_panel:
            _check_of_panel(covariates)
            return list(self._panel_probabilities(X, measured, tables).values())
        _check_of_one_endpoint(False, measured)
        return super().predict_proba(self._with_numbers(X, covariates, tables))

    def decision_function(self, X: object) -> np.ndarray:
        """Decision values: (n_graphs,) for two classes, else (n_graphs, n_classes or endpoints)."""
        if self._is_panel:
            return self._decide_panel(X, False).mean
        return super().decision_function(X)

    def score(self, X: object, y: object, sample_weight: object = None) -> float:
        """Return the share of graphs whose class is predicted; the mean of several endpoints."""
        if self._is_panel:
            return self._panel_score(X, y)
        return super().score(X, y, sample_weight)
