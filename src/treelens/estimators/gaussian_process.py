"""What the regressor and the classifier share: parameters, fitting, and what a fit tells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state

from treelens._sklearn_compat import Interval, StrOptions
from treelens.estimators.base import view
from treelens.estimators.learned_kernel import LearnedKernel
from treelens.estimators.panel_fitting import PanelEstimator
from treelens.estimators.prediction_table import DOMAIN_COLUMNS, prediction_table
from treelens.gp.censoring import with_known_noise
from treelens.gp.choice import sample_for
from treelens.gp.data import CountedView, NumbersView, TrainingData, TrainingView
from treelens.gp.executors import (
    SerialExecutor,
    check_executor,
    posterior_of_blocks,
    sample_of_blocks,
)
from treelens.gp.fitting import (
    FittedEvidence,
    LearningGain,
    check_memory,
    condition,
    evidence_history,
    fit_gaussian_process,
    landmarks_for,
    learning_gain,
)
from treelens.gp.model import EvidenceRecord
from treelens.gp.posterior import LeaveOneOut, ScaledTargets
from treelens.gp.views import DESCRIPTORS, with_covariates
from treelens.graphs.blocks import check_beside_blocks
from treelens.graphs.collection import GraphCollection
from treelens.graphs.content import draw_keys
from treelens.graphs.convert import check_graphs, holds_blocks
from treelens.graphs.kinds import DESCRIPTOR_PREFIX, PLAIN, kind_of_facts
from treelens.models.domain import Domain
from treelens.models.predictions import TrainingGraphs, has_rare_class
from treelens.parallel import progress_ticks
from treelens.targets import TargetRecord, Targets
from treelens.views import ViewSettings, WLPatterns, check_views, descriptors_of, usual_views

if TYPE_CHECKING:
    from typing_extensions import Self

_CELLS_PER_GRAPH = 3  # of several endpoints that weights are learned on
_EXACT_CELLS_PER_GRAPH = 2.5  # of many, the covariance is in float32
_MAX_DEPTH = 4  # of patterns where the depth is chosen
_EXACT_SIZE = 12_000  # graphs of which the posterior is exact by default


class TrainingTargets(NamedTuple):
    """Targets of the training graphs, as given and standardised."""

    given: np.ndarray  # (n_graphs,) values, or class codes
    groups: np.ndarray  # (n_graphs,) what samples are drawn from: tenths of values, or classes
    targets: ScaledTargets
    classes: np.ndarray | None = None
    noise: np.ndarray | None = None  # (n_graphs,) known variances, standardised
    record: TargetRecord = TargetRecord()


class GaussianProcessEstimator(LearnedKernel, PanelEstimator):
    """The regressor and the classifier, but for what ``y`` means and how it is scored."""

    model_: Any  # FittedGP, or FittedPanel of several endpoints
    _intervals = "posterior"

    # For the subclasses to say: targets checked and standardised; those of a sample of blocks and
    # of all their graphs; those with more graphs; the first that cannot be learned from; scores
    # of left-out graphs.
    _training_targets: Callable[..., TrainingTargets]
    _sample_targets: Callable[..., tuple[TrainingTargets, ScaledTargets]]
    _targets_with_more: Callable[..., TrainingTargets]
    _first_wrong: Callable[[np.ndarray], tuple[int, str] | None]
    _scored: Callable[..., tuple[Any, float | None]]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "depth": [StrOptions({"auto"}), Interval(Integral, 0, 20, closed="both")],
        "weights": [StrOptions({"auto", "uniform", "depths", "branches"})],
        "descriptors": [StrOptions({"auto", "compact", "fast", "all"}), "boolean"],
        "views": [StrOptions({"auto"}), list, tuple],
        "prior_strength": [Interval(Real, 0, None, closed="neither")],
        "learning_size": [Interval(Integral, 2, None, closed="left")],
        "exact_size": [Interval(Integral, 2, None, closed="left")],
        "n_landmarks": [Interval(Integral, 2, None, closed="left")],
        "max_steps": [Interval(Integral, 1, None, closed="left")],
        "device": [str],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "progress": ["boolean", None],
    }

    def __init__(
        self,
        depth: int | str = "auto",
        weights: str = "auto",
        *,
        descriptors: bool | str = "auto",
        views: object = "auto",
        prior_strength: float = 30.0,
        learning_size: int = 1200,
        exact_size: int = _EXACT_SIZE,
        n_landmarks: int = 3000,
        max_steps: int = 100,
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: object = 0,
        progress: bool | None = None,
    ) -> None:
        self.depth = depth
        self.weights = weights
        self.descriptors = descriptors
        self.views = views
        self.prior_strength = prior_strength
        self.learning_size = learning_size
        self.exact_size = exact_size
        self.n_landmarks = n_landmarks
        self.max_steps = max_steps
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.progress = progress

    def fit(
        self,
        X: object,
        y: object = None,
        sample_weight: object = None,
        *,
        covariates: object = None,
        executor: object = None,
        limits: object = None,
        noise: object = None,
    ) -> Self:
        """Learn the weights and condition on the targets.

        Parameters
        ----------
        X : GraphCollection or anything :func:`treelens.as_graph_collection` takes
            Or blocks of more graphs than fit into memory, such as
            :class:`treelens.graphs.blocks.SmilesBlocks`, with their targets in them and nothing
            but an executor beside them. They are read twice: for a sample of ``exact_size`` graphs,
            which all but the posterior comes from, and for the posterior, that of all graphs.
        y : Targets or array-like, shape (n_graphs,) or (n_graphs, n_endpoints)
            Numbers for a regressor, classes of any kind for a classifier. Several columns (an
            array or a DataFrame, NaN where nothing was measured) are learned together, as
            :class:`treelens.GraphPanel` does. :class:`treelens.Targets`
            (``table.targets`` of :func:`treelens.read_table`) hold limits, noise, weights and a
            transform as well; for an array, give them by the parameters below.
        sample_weight : array-like, shape (n_graphs,), optional
            The noise variance of a graph is divided by its weight. Where errors are known, use
            ``noise``.
        covariates : names, table or array of one row per graph, optional
            What else is known of each graph (assay, temperature, descriptors): names of columns
            that ``graphs.graph_data`` holds, a DataFrame, or an array; ``"rdkit"`` is all of
            RDKit's descriptors. Numbers are standardised, texts are classes. They have a kernel of
            their own, added to that of the graphs. As ``limits`` and ``noise``, on a CPU only.
        executor : executor, optional
            With blocks: where they are parsed and worked on, such as
            :class:`treelens.gp.executors.JoblibExecutor` (processes here) or
            :class:`treelens.gp.executors.DaskExecutor` (a cluster). The model is the same up to
            rounding: an executor adds sums over several blocks at a time.
        limits : array-like, shape (n_graphs,), or "auto", optional
            Of a regressor: ``">"`` (or 1) where the value is known only to lie above ``y``, ``"<"``
            (or -1) where it lies below, ``"="`` (or 0) where ``y`` is the value. ``"auto"``: where
            many share the smallest or the largest value, as at the end of an assay's range.
        noise : array-like, shape (n_graphs,), optional
            Of a regressor: standard deviations of the measurements, in the units of ``y``; NaN
            stands for their median. The noise variance of a graph is this known one plus a common
            one that is learned. Not with ``sample_weight``.
        """
        self._validate_params()
        beside = {"covariates": covariates, "limits": limits, "noise": noise}
        if self.device != "cpu":
            from treelens.gp.device import check_device

            own = {"limits": y.limits, "noise": y.noise} if isinstance(y, Targets) else {}
            more = {"descriptors": self.descriptors not in ("auto", False), "views": self.views}
            for name, given in {**beside, **own, **more}.items():
                if given is not None and given is not False and not isinstance(given, str):
                    raise ValueError(
                        f"{name} is not supported with device={self.device!r}: leave it out, or "
                        "use device='cpu'."
                    )
            check_device(self.device)
        if holds_blocks(X):
            check_beside_blocks(y=y, sample_weight=sample_weight, **beside)
            return self._fit_blocks(X, check_executor(executor))
        if executor is not None:
            raise TypeError("An executor works on blocks (such as SmilesBlocks): leave it out.")
        graphs = check_graphs(X)
        if len(graphs) < 2:
            raise ValueError("There is 1 graph: a Gaussian process needs at least 2 to learn from.")
        targets = Targets.of(
            y, len(graphs), limits=limits, noise=noise, sample_weight=sample_weight, several=True
        )
        if targets.endpoints is not None:
            self._check_beside_panel(covariates)
            self._fit_panel(graphs, targets)
            return self
        names: list[str] = []
        if covariates is not None:
            graphs, names = with_covariates(graphs, covariates)
        known = self._training_targets(self._on_scale(graphs, targets, names))
        exact_size = self.exact_size
        if self.device != "cpu" and exact_size == _EXACT_SIZE:  # as many as the GPU holds
            from treelens.gp.device import largest_on_device

            exact_size = max(exact_size, largest_on_device(self.device) or 0)
        fitted = self._condition(graphs, known, exact_size, names)
        if known.noise is not None:
            n_jobs = self._n_jobs()
            fitted, scaled = with_known_noise(fitted, known.noise, known.targets, n_jobs)
            known = known._replace(targets=scaled)
        return self._keep(fitted, fitted.left_out, known)

    def _check_beside_panel(self, covariates: object) -> None:
        """Raise where something is asked for that several endpoints do not have."""
        if covariates is not None:
            raise ValueError(
                "covariates is not supported with several endpoints: give them as a view, "
                "views=[tl.WLPatterns(), tl.Paths(), tl.Table(...)]."
            )
        if getattr(self, "class_weight", None) is not None:
            raise ValueError("class_weight is not supported with several endpoints: leave it out.")
        if self.device != "cpu":
            raise ValueError(
                f"Several endpoints are not supported with device={self.device!r}: use 'cpu'."
            )

    def _fit_blocks(self, blocks: Iterable[Any], executor: SerialExecutor | None) -> Self:
        """Fit a sample through landmarks, then take the posterior of all graphs."""
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        sample = sample_of_blocks(blocks, self.exact_size, seed, self._first_wrong, executor)
        own = self._on_scale(sample.graphs, sample.y)
        every = sample.all_targets
        if own.record.chosen and own.record.scale is not None:
            every = every.on_scale(own.record.scale)
        known, targets = self._sample_targets(own, every)
        exact_size = min(self.exact_size, self.n_landmarks)
        fitted = self._condition(sample.graphs, known, exact_size, patterns_alone=True)
        posterior, left_out = posterior_of_blocks(
            fitted.model, blocks, sample, targets, known.targets, self._n_jobs(), executor
        )
        training = fitted.model.training
        assert training is not None
        if len(sample.y) < len(sample.all_targets):
            training = replace(training, n_in_all=len(sample.all_targets))
        model = replace(fitted.model, posterior=posterior, sample_weights=None, training=training)
        return self._keep(replace(fitted, model=model), left_out, known)

    def _keep(self, fitted: FittedEvidence, left_out: LeaveOneOut, known: TrainingTargets) -> Self:
        """Keep a fitted model with its scores."""
        scores, slope = self._scored(left_out, known)
        record = EvidenceRecord(
            fitted.used.weights,
            evidence_history(fitted.search, fitted.n_learning),
            fitted.search.converged,
            learning_gain(fitted.used, fitted.uniform),
            scores,
        )
        self.model_ = replace(fitted.model, slope=slope, record=record)
        return self

    def _on_scale(
        self, graphs: GraphCollection, y: Targets, covariates: Sequence[str] = ()
    ) -> Targets:
        """Return targets with the scale to learn on, where that is to be chosen."""
        return y

    def _condition(
        self,
        graphs: GraphCollection,
        known: TrainingTargets,
        exact_size: int,
        covariates: Sequence[str] = (),
        patterns_alone: bool = False,
    ) -> FittedEvidence:
        """Learn the weights on a sample, and condition on all graphs or on landmarks."""
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        n_jobs = self._n_jobs()
        rare = known.classes is not None and has_rare_class(known.groups)
        keys = draw_keys(graphs, known.given, seed, self._sees_attributes())
        sample = sample_for(known.groups, rare, self.learning_size, keys)
        landmarks = landmarks_for(known.groups, exact_size, self.n_landmarks, keys, rare)
        if self.device == "cpu":  # a GPU says for itself what does not fit
            n_landmarks = None if landmarks is None else landmarks.n_landmarks
            check_memory(len(graphs), sample.largest, n_landmarks)
        codes = None if known.classes is None else known.given
        depth = None if isinstance(self.depth, str) else self.depth
        deepest = _MAX_DEPTH if depth is None else depth
        with progress_ticks(self.progress, "Learning the weights") as tick:
            settings = ViewSettings(deepest, self.prior_strength, n_jobs)
            data = TrainingData(
                self._training_views(graphs, settings, covariates, patterns_alone),
                known.targets,
                codes,
                n_jobs,
                self.device,
                self.max_steps,
                tick,
            )
            fitted = fit_gaussian_process(
                data,
                weights=self.weights,
                depth=depth,
                sample=sample,
                groups=known.groups,
                landmarks=landmarks,
                keys=keys,
            )
        training = TrainingGraphs(
            fitted.views, known.given, limits=known.targets.limits, record=known.record
        )
        model = replace(
            fitted.model,
            classes=known.classes,
            training=training.with_identity(graphs),
            recipe=graphs.recipe,
        )
        carried = graphs.with_data(model.numbers) if model.keyed_tables else graphs
        self._fitted_graphs, self._fragments = carried, None
        return replace(fitted, model=model)

    def _training_views(
        self,
        graphs: GraphCollection,
        settings: ViewSettings,
        covariates: Sequence[str] = (),
        patterns_alone: bool = False,
    ) -> tuple[TrainingView, ...]:
        """Return the training graphs in every view; ``covariates`` are columns that they carry.

        ``patterns_alone``: where nobody lists views, Weisfeiler-Lehman patterns are the only one,
        as with blocks, whose graphs are too many to look at twice, and on a GPU.
        """
        alone, chosen = patterns_alone or self.device != "cpu", self.descriptors
        usual = isinstance(self.views, str)
        listed = check_views(self.views) if not usual else usual_views(graphs)
        listed = [WLPatterns()] if usual and alone else listed
        first, *others = (each.fit(graphs, settings) for each in listed)
        added = (replace(x, added=True) if isinstance(x, CountedView) else x for x in others)
        views: list[TrainingView] = [first, *added]
        if covariates:
            views.append(NumbersView.of_columns("covariates", graphs, covariates))
        if chosen == "auto":  # where the list of views is not said to be all
            described = DESCRIPTORS in covariates or kind_of_facts(graphs.graph_data) is PLAIN
            chosen = usual and not alone and not described
        if chosen is not False:
            views.append(descriptors_of(graphs, "compact" if chosen is True else str(chosen)))
        return tuple(views)

    @property
    def _n_learning_cells(self) -> int:
        return _CELLS_PER_GRAPH * self.learning_size

    @property
    def _n_exact_cells(self) -> int:
        return int(_EXACT_CELLS_PER_GRAPH * self.exact_size)

    def _sees_attributes(self) -> bool:
        """Whether any view looks at continuous attributes."""
        if isinstance(self.views, str):
            return True
        views = check_views(self.views)
        return any(each.sees_attributes for each in views)

    @property
    def uses_descriptors_(self) -> bool:
        """Whether descriptors of molecules are among the views."""
        return any(name.startswith(DESCRIPTOR_PREFIX) for name in self.covariates_)

    @property
    def views_(self) -> list[str]:
        """The views in use, by name."""
        return list(self._fitted_model.view_names)

    @property
    def shares_(self) -> pd.Series | pd.DataFrame:
        """How much each view explains: the variance, over training graphs, of its part of the mean.

        As shares of the sum of these variances; parts that go together or against each other make
        that sum differ from the variance of the mean. Of several endpoints a table of shares of
        their prior variances, with a column for each.
        """
        if self._is_panel:
            return self._panel_shares()
        return pd.Series(self._fitted_model.shares(self._n_jobs()), name="share")

    best_depth_: int = view("patterns.source.depth", "The depth of the patterns in use.")
    best_weights_: str = view(
        "record.learned", 'The weights in use: ``"uniform"``, ``"depths"`` or ``"branches"``.'
    )
    # Numbers are standardised; of several classes it is the mean over their columns.
    evidence_: float = view(
        "record.evidence",
        "Log of the marginal likelihood times the priors, up to a constant of the patterns.",
    )

    @property
    def history_(self) -> pd.DataFrame:
        """``stage``, ``evidence`` and more after every iteration of the search."""
        return self._fitted_model.record.history.frame()  # type: ignore[no-any-return]

    converged_: bool = view(
        "record.converged", "Whether the search for the weights converged.", True
    )
    learning_gain_: LearningGain = view(
        "record.learning_gain",
        "Weights learned on half of the graphs against uniform ones, on the other half.",
    )

    @property
    def noise_(self) -> Any:
        """The variance of the noise of a measurement of weight one, in units of the kernel.

        Of several endpoints a Series of standard deviations, on the scales that are learned.
        """
        if self._is_panel:
            return self._panel_noise()
        return self._fitted_model.noise * self._fitted_model.target_scale**2

    @property
    def domain_(self) -> Domain:
        """The domain of applicability, computed when it is first used."""
        return self._of_one_endpoint("domain_").domain(self._n_jobs())  # type: ignore[no-any-return]

    def _html_repr(self) -> str:
        """Return the HTML that a notebook shows: facts and scores of a fitted model."""
        if not hasattr(self, "model_") or self._is_panel:
            return super()._html_repr()
        from treelens.estimators.fit_report import model_html

        return model_html(self)

    def predict_table(
        self,
        X: object,
        intervals: str = "posterior",
        *,
        covariates: object = None,
        tables: object = None,
    ) -> pd.DataFrame:
        """Return predictions, their uncertainty and the domain, one row per graph.

        Parameters
        ----------
        X : graphs
        intervals : {"posterior", "scaffold"}, default="posterior"
            Of numbers, ``std`` and the 90 % interval; ``"scaffold"`` widens them for molecules of
            new scaffolds, as in :meth:`GraphRegressor.predict`.
        covariates, tables :
            As in :meth:`GraphRegressor.predict`.

        Returns
        -------
        DataFrame
            Numbers: ``prediction``, ``std``, ``lower_90``, ``upper_90``. Classes: ``class``,
            ``probability`` (of it), ``decision``, and ``probability_CLASS`` for each. Where the
            model has covariates or chose descriptors, ``from_covariates``: what they add to the
            prediction or decision. Then the columns of :meth:`domain`. Of a model that learned on
            another scale there is a ``median`` next to the prediction, which is a mean; both are in
            the units of y. Where logarithms were asked for, ``std_log10`` and other columns that
            end in ``_log10`` are on that scale. Of several endpoints the columns are those of
            :meth:`GraphPanel.predict_table`.
        """
        if self._is_panel:
            return self._panel_predictions(X, None, tables)
        graphs = self._new_graphs(self._with_numbers(X, covariates, tables))
        return prediction_table(self, graphs, intervals)

    def domain(self, X: object) -> pd.DataFrame:
        """Return whether graphs lie in the domain of applicability, and why.

        Returns
        -------
        DataFrame
            ``in_domain``: whether the expected error and the similarity to the nearest training
            graph are both such as 97.5 % of training graphs have when left out; ``expected_error``:
            the standard deviation, corrected by the leave-one-out errors of the nearest training
            graphs, on the scale that was learned, and of classes in units of the decision value,
            where the two classes are -1 and 1 (one minus ``probability`` of
            :meth:`predict_table` is the chance of being wrong); ``similarity``: the learned
            Tanimoto similarity to the nearest training graph, whose position is ``nearest`` (1: the
            same patterns, which at depth 0 are labels alone);
            ``out_of_vocabulary``: the fraction of patterns that training never saw.
        """
        self._of_one_endpoint("domain")
        table = self.predict_table(X)
        return table[[name for name in table.columns if name.startswith(DOMAIN_COLUMNS)]]

    def condition(
        self,
        X: object,
        y: object,
        sample_weight: object = None,
        *,
        covariates: object = None,
        tables: object = None,
    ) -> Self:
        """Return a new model given more data, under the same weights, scales and noise.

        Rows are added to the Cholesky factor: it is exact and takes a small part of the time of
        ``fit``. Patterns that training never saw have the weight of the pattern they refine.
        Leave-one-out scores and the calibration of probabilities are those of all graphs; limits
        among the old values keep the approximation found in ``fit``, and ``evidence_``,
        ``history_``, ``learning_gain_`` remain those of ``fit``.

        Parameters
        ----------
        X, y, covariates, tables :
            As in ``fit`` and ``predict``; no blocks.
        sample_weight : array-like, shape (n_graphs,), optional
            The noise variance of a graph is divided by its weight; 1 is the mean weight in ``fit``.

        Returns
        -------
        A fitted copy; models that predict through landmarks raise a ``ValueError``.

        Examples
        --------
        >>> import treelens as tl
        >>> graphs, y = tl.make_synthetic(n_per_substructure=5, random_state=0)
        >>> model = tl.GraphClassifier(depth=2).fit(graphs[::2], y[::2])
        >>> len(model.condition(graphs[1::2], y[1::2]).train_codes_)
        40
        """
        model, train = self._of_one_endpoint("condition"), self._fitted_graphs
        if holds_blocks(X):
            raise TypeError("condition takes graphs, no blocks: they are added all at once.")
        graphs = self._new_graphs(self._with_numbers(X, covariates, tables))
        more = Targets.of(y, len(graphs), sample_weight=sample_weight)
        if more.limits is not None or more.noise is not None:
            raise ValueError("condition takes exact values without noise: call fit with all data.")
        weights = more.sample_weight
        known = self._targets_with_more(more, np.ones(len(more)) if weights is None else weights)
        training = model.training.extended(graphs, known.given)
        extended, left_out = condition(model, graphs, training, known.targets, self._n_jobs())
        other = copy(self)
        scores, slope = self._scored(left_out, known)
        other.model_ = replace(extended, slope=slope, record=replace(model.record, left_out=scores))
        other._fitted_graphs = other._fragments = None
        if train is not None and training.smiles is None:  # SMILES are read when they are needed
            other._fitted_graphs = check_graphs([*train, *graphs])
        return other
