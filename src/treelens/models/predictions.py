"""What all fitted models have in common: training graphs, targets, predictions, probabilities.

The sign of a decision value is the likelier class, so probabilities need a slope and nothing else:
``softmax(slope * decisions)``, fitted to held-out predictions. A class of 3 % is hardly ever the
likelier one, however well a model ranks. So with two classes, one of them rare, the threshold on
its probability is chosen on held-out predictions.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy
from scipy import sparse

from treelens.errors import GraphDataError
from treelens.evaluation.metrics import rarer_code
from treelens.graphs.collection import GraphCollection
from treelens.graphs.convert import check_graphs
from treelens.graphs.kinds import DESCRIPTOR_PREFIX, GraphRecipe, kind_of_facts
from treelens.patterns.forest import PatternForest, SeenGraphs
from treelens.patterns.histograms import GraphViews, PatternHistograms, graph_keys
from treelens.patterns.source import PatternSource
from treelens.targets import TargetRecord, Targets

if TYPE_CHECKING:
    from treelens.gp.views import CovariateTable
    from treelens.kernels.base import Term
    from treelens.models.fitted import FittedModel

# Thresholds whose Matthews correlation is nearly the best are as good; the lowest finds most.
_SLOPES = (1e-2, 1e3)  # that probabilities may rise with
_NEARLY = 0.99


@dataclass(frozen=True, eq=False)
class TrainingGraphs:
    """Counts and targets of the training graphs."""

    # What each view keeps of them: counts of patterns of the depths in use, or numbers.
    views: tuple[PatternHistograms | np.ndarray, ...]
    # (n_graphs,) class codes, or values; of several endpoints (n_graphs, n_endpoints), NaN in gaps
    targets: np.ndarray = field(metadata={"nan": True})
    n_in_all: int | None = None  # that the model was fitted to, where these are a sample
    # Empty where a graph has none; None where none has any, or where they were left out on purpose.
    names: tuple[str, ...] | None = None
    smiles: tuple[str, ...] | None = None
    limits: np.ndarray | None = None  # (n_graphs,) 1: a lower limit, -1: an upper one, 0: exact
    record: TargetRecord = field(
        default_factory=TargetRecord
    )  # name, unit and transform of the targets

    @property
    def histograms(self) -> PatternHistograms:
        """Counts of the Weisfeiler-Lehman patterns, the first view."""
        return self.views[0]  # type: ignore[return-value]

    def validate(self) -> None:
        for what in (self.names, self.smiles):
            if what is not None and len(what) != len(self.targets):
                raise ValueError("names and SMILES must be one per training graph")

    def endpoint(self, column: int) -> Targets:
        """Return values and limits of one of several endpoints, on the scale that is learned."""
        limits = None if self.limits is None else self.limits[:, column]
        return Targets(self.targets[:, column], limits=limits, transform="none")

    def with_identity(self, graphs: GraphCollection) -> TrainingGraphs:
        """Return the same with the names and SMILES of the graphs."""
        return replace(self, names=names_of(graphs), smiles=smiles_of(graphs))

    def without_identity(self) -> TrainingGraphs:
        """Return the same without names and SMILES: counts and targets, which models need."""
        return replace(self, names=None, smiles=None)

    def called(self, index: int) -> str | None:
        """Return the name of a training graph, else its SMILES, else None."""
        known = (texts[index] for texts in (self.names, self.smiles) if texts is not None)
        return next(filter(None, known), None)

    def restored(self, recipe: GraphRecipe | None) -> GraphCollection | None:
        """Return the training molecules, read again; None where the model does not keep them."""
        if self.smiles is None or recipe is None or not all(self.smiles):
            return None
        try:
            graphs = check_graphs(list(self.smiles), recipe)
        except (GraphDataError, ImportError):  # made by a function of the user's, or no RDKit
            return None
        if not np.array_equal(graphs.sizes, self.histograms.n_nodes):
            return None
        return graphs if self.names is None else graphs.with_names(self.names)

    def extended(self, graphs: GraphCollection, targets: np.ndarray) -> TrainingGraphs:
        """Return targets, names and SMILES with those of more graphs; ``targets`` are of all."""
        n, names, smiles, limits = len(graphs), self.names, self.smiles, self.limits
        return replace(
            self,
            targets=targets,
            names=names and names + (names_of(graphs) or ("",) * n),
            smiles=smiles and smiles + (smiles_of(graphs) or ("",) * n),
            limits=None if limits is None else np.append(limits, [0] * n),
        )

    @property
    def reported(self) -> np.ndarray:
        """Values as results show them, (n_graphs,); of classes their codes."""
        scale = self.record.hidden
        return self.targets if scale is None else scale.inverse(self.targets)

    @property
    def exact(self) -> np.ndarray | slice:
        """Which values are measured, not limits: the graphs that scores are about."""
        return slice(None) if self.limits is None else self.limits == 0

    def sign(self, index: int) -> str:
        """``">"`` or ``"<"`` where the value of a graph is a limit, else empty."""
        return "" if self.limits is None else ("", ">", "<")[self.limits[index]]

    @cached_property
    def usual_out_of_vocabulary(self) -> float:
        """The out-of-vocabulary fraction that a graph like these rarely exceeds."""
        return self.histograms.usual_out_of_vocabulary()


def names_of(graphs: GraphCollection) -> tuple[str, ...] | None:
    """Names of graphs as texts; None where they have none."""
    if graphs.names is None:
        return None
    return tuple("" if name is None else str(name) for name in graphs.names.tolist())


def smiles_of(graphs: GraphCollection) -> tuple[str, ...] | None:
    """Graphs as text, such as the SMILES of molecules as they were read; None without any."""
    return kind_of_facts(graphs.graph_data).texts(graphs)


def known_graphs(
    model: FittedModel, graphs: GraphCollection, seen: SeenGraphs
) -> tuple[np.ndarray, np.ndarray]:
    """Whether each graph is in the training data, and whether it repeats an earlier one.

    Graphs that no pattern distinguishes are compared by their canonical SMILES, where these are
    known of all of them; patterns that training never saw distinguish other graphs.
    """
    training, own = model.training, smiles_of(graphs)
    assert training is not None
    unseen = seen.patterns.histograms.unseen.sum(axis=1).tolist()
    same: dict[Any, list[int]] = {}  # training graphs count from -1 downwards
    described = all(name.startswith(DESCRIPTOR_PREFIX) for name in model.covariate_names)
    n_views = 1 if described else None  # graphs alone decide where there are no covariates
    for side, views in ((-1, model.training_graphs), (1, seen.features)):
        for k, key in enumerate(graph_keys(views[:n_views])):
            apart = 0 if side < 0 else unseen[k] if own else unseen[k] and k + 1
            same.setdefault((key, apart), []).append(k if side > 0 else -1 - k)
    written = kind_of_facts(graphs.graph_data).writer_of_same(graphs)

    def as_read(k: int) -> str:
        return own[k] if k >= 0 else training.smiles[-1 - k]  # type: ignore[index]

    measured, repeated = np.zeros((2, len(graphs)), dtype=bool)
    for members in same.values():
        known = bool(own and (members[0] >= 0 or training.smiles))
        by_smiles = known and len(set(map(as_read, members))) > 1  # else all are equal
        trained, taken = set(), set()
        for k in members if members[-1] >= 0 else ():
            text = written(as_read(k)) if by_smiles else ""
            if k < 0:
                trained.add(text)
            else:
                measured[k], repeated[k] = text in trained, text in taken
                taken.add(text)
    return measured, repeated


@dataclass(frozen=True, eq=False)
class CountedPart:
    """The part of a kernel that compares counts of the patterns of one view."""

    view: int  # its position among the views of the model
    source: PatternSource
    first_level: int  # of the source that the kernel uses; its first pattern is number 0 here
    kernel: Any  # WeightedKernel, or a Term
    weights: np.ndarray  # (n_patterns,) of the patterns from first_level on

    @property
    def first_pattern(self) -> int:
        """Id in the source of the first pattern in use."""
        return int(self.source.level_offsets[self.first_level])


@dataclass(frozen=True, eq=False)
class NumbersPart:
    """The part of a kernel that compares a table of numbers."""

    view: int  # its position among the views of the model
    kernel: Term
    table: CovariateTable

    @cached_property
    def start(self) -> np.ndarray:
        """The numbers that explanations begin with, shape (n_numbers,)."""
        return self.table.start()


@dataclass(frozen=True, eq=False)
class SharedCells:
    """Coefficients of measured cells, and what they are of graphs, view by view.

    Where a process has several endpoints, each cell (a graph and an endpoint) has a coefficient.
    """

    graphs: np.ndarray  # (n_cells,) the basis graph of each cell
    sizes: np.ndarray  # (n_views, n_cells) what a unit of a coefficient adds to that of its graph
    n_graphs: int

    @cached_property
    def _of_cells(self) -> sparse.csr_array:
        n = len(self.graphs)
        return sparse.csr_array((np.ones(n), self.graphs, np.arange(n + 1)), (n, self.n_graphs))

    def of_graphs(self, view: int, coefficients: np.ndarray) -> np.ndarray:
        """Return coefficients of graphs (m, n_graphs) from those of cells (m, n_cells)."""
        return self.sums(coefficients * self.sizes[view])

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Return sums over the cells of each graph: (m, n_graphs) from (m, n_cells)."""
        return np.asarray(values @ self._of_cells)

    def of_cells(self, view: int, added: np.ndarray) -> np.ndarray:
        """Return what a unit of each cell adds (m, n_cells), from units of graphs."""
        found: np.ndarray = added[:, self.graphs] * self.sizes[view]
        return found

    def members(self, graphs: tuple[int, ...]) -> list[int]:
        """Return the cells of some graphs."""
        return np.flatnonzero(np.isin(self.graphs, graphs)).tolist()


def _as_they_are(seen: SeenGraphs) -> SeenGraphs:
    return seen


@dataclass(frozen=True, eq=False)
class KernelExpansion:
    """Outputs that are linear in kernel values: ``intercepts + coefficients @ k(graph, basis)``.

    Two classes share one output, positive for the second; more have one output each. Several
    expansions over the same views add up where a model is a sum of processes.
    """

    parts: tuple[CountedPart, ...]  # terms of views that count patterns, the forest first
    basis: GraphViews  # the n training graphs that have a coefficient
    # (n,) their positions in the training set, -1 of graphs outside it
    basis_indices: np.ndarray
    coefficients: np.ndarray  # (n_outputs, n), or of cells (n_outputs, n_cells)
    intercepts: np.ndarray  # (n_outputs,)
    classes: np.ndarray | None  # None for regression
    refine: Callable[..., SeenGraphs]  # from graphs and n_jobs
    # Of n_jobs: the upper Cholesky factor of the covariance of the targets; None where predictions
    # without a training graph have no closed form.
    factor: Callable[[int], np.ndarray | None] = lambda n_jobs: None
    numbers: tuple[NumbersPart, ...] = ()  # terms of views that are tables
    cells: SharedCells | None = None  # None: each basis graph has one coefficient for all views
    # How refined graphs look to this expansion, whose weights may be others.
    shown: Callable[[SeenGraphs], SeenGraphs] = _as_they_are
    added: tuple[KernelExpansion, ...] = ()  # others, over the same views in the same order

    @property
    def terms(self) -> tuple[KernelExpansion, ...]:
        """This expansion and those that are added to it."""
        return (self, *self.added)

    def of_graphs(self, view: int, coefficients: np.ndarray) -> np.ndarray:
        """Return coefficients of basis graphs in a view, (m, n), from (m, n or n_cells)."""
        return coefficients if self.cells is None else self.cells.of_graphs(view, coefficients)

    def of_cells(self, view: int, added: np.ndarray) -> np.ndarray:
        """Return what a unit of each coefficient adds, from units of graphs in a view, (m, n)."""
        return added if self.cells is None else self.cells.of_cells(view, added)

    def members(self, graphs: tuple[int, ...]) -> list[int]:
        """Return the coefficients of some basis graphs."""
        return list(graphs) if self.cells is None else self.cells.members(graphs)

    def by_basis_graph(self, seen: SeenGraphs, output: int) -> np.ndarray:
        """Return what each basis graph adds to an output of one graph, shape (n,)."""
        total = np.zeros(len(self.basis_indices))
        for term in self.terms:
            features = term.shown(seen).features
            alpha = term.coefficients[[output]]
            for part in term.all_parts:
                row = part.kernel.matrix(features[part.view], term.basis[part.view])[0]
                total += term.of_graphs(part.view, alpha)[0] * row
        return total

    @property
    def all_parts(self) -> tuple[CountedPart | NumbersPart, ...]:
        return (*self.parts, *self.numbers)

    @property
    def source(self) -> PatternSource:
        """The patterns of the first view."""
        return self.parts[0].source

    @property
    def forest(self) -> PatternForest | None:
        """The Weisfeiler-Lehman patterns; None where the first view has others."""
        return self.source if isinstance(self.source, PatternForest) else None

    @property
    def weights(self) -> np.ndarray:
        """One per pattern of the first view in use."""
        return self.parts[0].weights

    @property
    def first_level(self) -> int:
        return self.parts[0].first_level

    @property
    def first_pattern(self) -> int:
        """Id in the source of the first pattern in use."""
        return self.parts[0].first_pattern


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions of new graphs, shape (n_graphs, ...) each."""

    decisions: np.ndarray  # (.., n_columns) decision values, one column for two classes; or numbers
    out_of_vocabulary: np.ndarray  # (..,) fraction of patterns that training never saw
    graphs: SeenGraphs  # as the model sees them, for contributions on demand
    # What is linear in the kernel: ``decisions``, but of an SVM with several classes, whose
    # decision values count votes, the mean margin of every class.
    margins: np.ndarray  # (.., n_columns)
    probabilities: np.ndarray | None = None  # (.., n_classes)
    variance: np.ndarray | None = None  # (..,) of a new target, noise included, if asked for
    threshold: Threshold | None = None  # None: the class of the largest decision value is named
    from_covariates: np.ndarray | None = None  # (.., n_columns) what covariates add to decisions

    @property
    def mean(self) -> np.ndarray:
        """The decision values by the name they have of a Gaussian process: posterior means."""
        return self.decisions

    @property
    def predicted_codes(self) -> np.ndarray:
        """Classes as positions in the model's list of them, shape (n_graphs,)."""
        if self.threshold is None:
            return predicted_codes(self.decisions)
        assert self.probabilities is not None
        return self.threshold.name(self.probabilities)

    def checked(self) -> Predictions:
        """Return these predictions, or raise an error where one is not finite."""
        for values in (self.decisions, self.margins, self.probabilities, self.variance):
            if values is not None and not np.isfinite(values).all():
                row = int(np.argwhere(~np.isfinite(values))[0, 0])
                raise ValueError(
                    f"The decision value of graph {row} is not a finite number: weights, gamma or "
                    "coefficients of the model are out of any sensible range. Fit it again."
                )
        return self


def predicted_codes(decisions: np.ndarray) -> np.ndarray:
    """Class codes from decision values, shape (n,)."""
    if decisions.shape[1] == 1:
        return (decisions[:, 0] > 0).astype(int)
    codes: np.ndarray = decisions.argmax(axis=1)
    return codes


def fit_slope(decisions: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> float:
    """Return the slope that makes held-out classes (n,) most probable, given (n, n_outputs)."""
    n_classes = max(2, decisions.shape[1])
    # As Platt (1999): where the classes separate, no finite slope would be the best. A class of n
    # graphs is certain to (n + 1) / (n + 2) only.
    certain = 1.0 - 1.0 / (np.bincount(codes, minlength=n_classes) + 2.0)[codes]  # (n,)
    wanted = np.tile(((1.0 - certain) / (n_classes - 1))[:, None], n_classes)
    wanted[np.arange(len(codes)), codes] = certain

    def log_loss(log_slope: float) -> float:
        probability = calibrated(decisions, float(np.exp(log_slope)))
        missed = -(wanted * np.log(np.maximum(probability, 1e-300))).sum(axis=1)
        return float(np.average(missed, weights=weights))

    return float(np.exp(scipy.optimize.minimize_scalar(log_loss, bounds=np.log(_SLOPES)).x))


def warn_if_slope_at_bound(slope: float) -> None:
    """Warn where no slope within bounds makes good probabilities of decision values."""
    low, high = _SLOPES
    if 1.01 * low < slope < high / 1.01:
        return
    found = "differ by almost nothing between classes: probabilities jump from 0 to 1"
    if slope <= 1.01 * low:
        found = "do not tell the classes apart: all probabilities are close to even"
    message = f"The decision values of held-out graphs {found} (slope {slope:.3g})."
    warnings.warn(message, UserWarning, stacklevel=4)


def calibrated(decisions: np.ndarray, slope: float) -> np.ndarray:
    """Return class probabilities, shape (n, n_classes)."""
    if decisions.shape[1] == 1:
        decisions = np.hstack([-0.5 * decisions, 0.5 * decisions])
    chances: np.ndarray = scipy.special.softmax(slope * decisions, axis=1)
    return chances


class Threshold(NamedTuple):
    """Name the class ``code`` where its probability is at least ``value``."""

    value: float
    code: int

    def validate(self) -> None:
        if not 0.0 < self.value <= 1.0 or self.code not in (0, 1):
            raise ValueError("a threshold is above 0 and at most 1, of the class 0 or 1")

    def name(self, probabilities: np.ndarray) -> np.ndarray:
        """Classes 0 and 1 from probabilities (n, 2): shape (n,)."""
        named = probabilities[:, self.code] >= self.value
        return np.where(named, self.code, 1 - self.code)


def has_rare_class(codes: np.ndarray) -> bool:
    """Whether some class has less than half of an even share: of two classes, below 25 %."""
    counts = np.bincount(codes)
    return bool(counts.min() < 0.5 * len(codes) / len(counts))


def choose_threshold(
    asked: str | float, probabilities: np.ndarray, codes: np.ndarray
) -> Threshold | None:
    """Return the threshold that was asked for, from held-out probabilities.

    Parameters
    ----------
    asked : float or str
        ``"auto"``: where one of two classes is rare (below 25 %) the one with the largest Matthews
        correlation, else None. A number between 0 and 1: that. ``"recall=0.9"``: the highest that
        finds nine tenths of the rarer class. ``"precision=0.8"``: the lowest with eight of ten
        named rightly. ``"cost=10"``: the cheapest if missing one costs as much as ten false alarms.
    probabilities, codes : ndarray, shape (n, n_classes) and (n,)

    Returns
    -------
    Threshold or None
        On the probability of the rarer class; None: the most probable class is named.

    Examples
    --------
    >>> chances = np.array([[0.9, 0.1], [0.7, 0.3], [0.95, 0.05], [0.8, 0.2]])
    >>> choose_threshold("recall=1", chances, np.array([0, 1, 0, 1])).value
    0.2
    """
    kind, number = parse_threshold(asked)
    if probabilities.shape[1] != 2:
        if kind not in ("auto", "number") or (kind == "number" and number != 0.5):
            raise ValueError(
                f"threshold={asked!r} is for two classes, and there are {probabilities.shape[1]}: "
                "leave it out, or learn one class against the others."
            )
        return None
    if kind == "auto" and not has_rare_class(codes):
        return None
    code = rarer_code(codes)
    if kind == "number":
        return None if number == 0.5 else Threshold(number, code)
    value = _best(kind, number, probabilities[:, code], codes == code)
    return None if value is None else Threshold(value, code)


def parse_threshold(asked: str | float) -> tuple[str, float]:
    """Return what a threshold asks for: ``("recall", 0.9)``, ``("number", 0.5)``, ..."""
    if isinstance(asked, str) and asked == "auto":
        return "auto", 0.0
    kind, _, text = asked.rpartition("=") if isinstance(asked, str) else ("", "", asked)
    try:
        number = float(text)
    except (TypeError, ValueError):
        number = -1.0
    most = np.finfo(float).max if kind == "cost" else 1.0
    if kind not in ("", "recall", "precision", "cost") or not 0.0 < number <= most:
        raise ValueError(
            f"threshold must be 'auto', a number between 0 and 1, 'recall=0.9', 'precision=0.8' or "
            f"'cost=10'; got {asked!r}."
        )
    return kind or "number", number


def _best(kind: str, number: float, chance: np.ndarray, true: np.ndarray) -> float | None:
    """The threshold among the probabilities said; None where nothing can be told apart."""
    order = np.argsort(-chance, kind="stable")
    # A threshold names all graphs of its probability, so only the last of equals counts.
    ends = np.append(np.flatnonzero(np.diff(chance[order])), len(order) - 1)
    hits = np.cumsum(true[order])[ends].astype(float)
    named = ends + 1.0
    n, n_true, values = float(len(true)), float(true.sum()), chance[order][ends]
    if not 0 < n_true < n:
        return None
    if kind == "recall":
        return float(values[np.argmax(hits >= number * n_true)])
    if kind == "precision":
        enough = np.flatnonzero(hits >= number * named)
        return float(values[enough[-1] if len(enough) else 0])
    if kind == "cost":
        return float(values[np.argmin(number * (n_true - hits) + (named - hits))])
    # Matthews correlations; where all graphs are named, the numerator is zero, too.
    spread = np.sqrt(np.maximum(named * (n - named), 1.0) * n_true * (n - n_true))
    correlation = (n * hits - named * n_true) / spread
    best = float(correlation.max())
    return float(values[np.flatnonzero(correlation >= _NEARLY * best)[-1]]) if best > 0 else None


def class_weights(class_weight: object, classes: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """One weight per training graph from ``None``, ``"balanced"`` or a dict by class."""
    if isinstance(class_weight, dict) and set(class_weight) - set(classes.tolist()):
        raise ValueError(f"class_weight names classes that are not in y: {class_weight!r}.")
    from sklearn.utils.class_weight import compute_class_weight  # predictions need not wait for it

    weights = compute_class_weight(class_weight, classes=classes, y=classes[codes])
    if not ((weights > 0) & np.isfinite(weights)).all():
        raise ValueError(f"class_weight must be finite numbers above 0, got {class_weight!r}.")
    by_graph: np.ndarray = weights[codes]
    return by_graph


def warn_if_one_class(held_out: np.ndarray, classes: np.ndarray) -> None:
    """Warn where one class was predicted for all held-out graphs; ``held_out`` are codes."""
    if len(np.unique(held_out)) == 1:
        warnings.warn(
            f"The model predicts the class {classes.tolist()[held_out[0]]!r} for every held-out "
            "graph. Its decision values may still rank graphs (see the ROC AUC); "
            "class_weight='balanced' weights rare classes up.",
            UserWarning,
            stacklevel=4,
        )
