"""The fitted model: all that explanations, reports, files and commands know of one.

``FittedGP``, ``FittedPanel`` and ``FittedSVM`` implement :class:`FittedModel`. What one kind of
model lacks, such as variances or a domain of applicability, is declared by the base and not found
out by its class.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from treelens.errors import first_few
from treelens.graphs.collection import GraphCollection
from treelens.graphs.kinds import GraphRecipe
from treelens.models.domain import Domain
from treelens.models.predictions import (
    KernelExpansion,
    Predictions,
    Threshold,
    TrainingGraphs,
)
from treelens.patterns.forest import PatternForest, SeenGraphs
from treelens.patterns.histograms import GraphViews
from treelens.targets import Targets


class HeldOut(NamedTuple):
    """Predictions of the training graphs, each without itself, on the learned scale."""

    method: str  # "leave-one-out" or "cross-validation"
    known: np.ndarray  # (n_graphs,) which graphs were held out: a splitter need not cover all
    # (n_graphs,) numbers with their standard deviations, or class codes; of classes also
    # probabilities (n_graphs, n_classes), where these are known, and decision values.
    predicted: np.ndarray
    std: np.ndarray | None = None
    probabilities: np.ndarray | None = None
    decisions: np.ndarray | None = None


class ComparedWeights(NamedTuple):
    """One kind of weights, and its score on graphs that it was not learned from."""

    weights: str
    score: float
    used: bool


class Learning(NamedTuple):
    """Which weights a model uses, and how they compare with others."""

    used: str  # "uniform", "depths", "branches" or "learned"
    sentence: str
    measure: str  # what scores are
    compared: tuple[ComparedWeights, ...]
    levels: dict[str, float]  # the weight of each level of patterns, where they differ

    @property
    def learned(self) -> bool:
        """Whether any pattern has another weight than the others."""
        return self.used != "uniform"


class SearchEnd(NamedTuple):
    """How the search for weights ended."""

    converged: bool
    n_steps: int
    complete: bool  # whether it made all the steps that it was meant to make
    setting: str  # the parameter that allows more


class FittedModel(ABC):
    """A model after training: it predicts, and says what it is.

    Subclasses are frozen dataclasses with the fields ``classes`` (None where numbers are
    predicted), ``recipe`` and ``training``.
    """

    method: ClassVar[str]  # "gp" or "svc"
    has_variance: ClassVar[bool] = False  # whether predictions have one
    has_joint: ClassVar[bool] = False  # whether predictions of several graphs have a covariance

    classes: np.ndarray | None
    recipe: GraphRecipe | None  # how the training graphs were made
    training: TrainingGraphs  # counts and targets of the training graphs

    @property
    def endpoint_names(self) -> tuple[str, ...]:
        """Names of the endpoints, where the model has several."""
        return ()

    # --- predictions ----------------------------------------------------------------------------

    @abstractmethod
    def refine(self, graphs: GraphCollection, n_jobs: int = 1) -> SeenGraphs:
        """Return graphs as the model sees them."""

    @abstractmethod
    def decide(
        self,
        graphs: GraphCollection,
        *,
        variance: bool = False,
        n_jobs: int = 1,
        device: str = "cpu",
    ) -> Predictions:
        """Return the predictions of graphs, each of which is refined once."""

    @property
    def threshold(self) -> Threshold | None:
        """What a rare class is predicted by; None: the most probable class is predicted."""
        return None

    def domain(self, n_jobs: int = 1) -> Domain | None:
        """Return where the model may be believed; None where it cannot say."""
        return None

    def endpoint(self, which: object = None) -> FittedModel:
        """Return the model of one endpoint, by its name or position.

        A model of one endpoint is its own, and the name may be left out.
        """
        name = self.training.record.name
        if which not in (None, 0, name):
            raise ValueError(
                f"endpoint={which!r}, but this model has one endpoint"
                f"{'' if name is None else f', {name!r}'}: leave it out."
            )
        return self

    # --- what explanations divide ---------------------------------------------------------------

    @property
    def training_positions(self) -> np.ndarray:
        """Positions of the training graphs in the collection that the model was fitted to."""
        return np.arange(len(self.training.targets))

    @property
    def training_terms(self) -> tuple[GraphViews, ...]:
        """All training graphs as each term of ``expansion`` compares them."""
        return (self.training_graphs,)

    @property
    @abstractmethod
    def training_graphs(self) -> GraphViews:
        """All training graphs, in every view."""

    @property
    @abstractmethod
    def weights(self) -> np.ndarray:
        """One weight per pattern of the first view in use, shape (n_patterns,)."""

    @property
    @abstractmethod
    def expansion(self) -> KernelExpansion:
        """The outputs as sums over training graphs, which explanations divide among patterns."""

    @property
    def forest(self) -> PatternForest | None:
        """The Weisfeiler-Lehman patterns that are compared, if any."""
        return self.expansion.forest

    @property
    def covariate_names(self) -> list[str]:
        """Columns of numbers that graphs come with, descriptors among them."""
        return []

    @property
    def given_columns(self) -> list[str]:
        """The columns among them that ``fit`` was given as covariates."""
        return []

    @property
    def keyed_tables(self) -> list[tuple[str, str]]:
        """Name and column of ids of each table (:class:`treelens.Table`) among the views."""
        return []

    @property
    def view_names(self) -> list[str]:
        """The views in use, by different names."""
        return [part.source.name for part in self.expansion.parts]

    def shares(self, n_jobs: int = 1) -> dict[str, float]:
        """Return the share of each view in the variance that they explain together, by name."""
        return dict.fromkeys(self.view_names, 1.0)

    def spreads_of_parts(
        self, n_jobs: int = 1, descriptors: bool = True
    ) -> tuple[float, float] | None:
        """Return the standard deviations of what structure and numbers add; None without any.

        Without ``descriptors``, views of descriptors belong to structure.
        """
        return None

    # --- how it was fitted ----------------------------------------------------------------------

    @property
    @abstractmethod
    def held_out(self) -> HeldOut | None:
        """Predictions of the training graphs, each without itself; None where none were kept."""

    @property
    @abstractmethod
    def learning(self) -> Learning:
        """Which weights are used, and how they compare with others."""

    @property
    @abstractmethod
    def search_end(self) -> SearchEnd | None:
        """How the search for weights ended; None where there was none."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Return the kernel and what it was chosen by, as plain data."""

    # --- files ----------------------------------------------------------------------------------

    def with_rounded_factor(self, n_jobs: int = 1) -> FittedModel:
        """Return the model with what variances need, rounded, for its file."""
        return self


class HasModel(Protocol):
    """An estimator after ``fit``, or what predicts in its place."""

    @property
    def model_(self) -> FittedModel:
        """The fitted model."""

    @property
    def recipe_(self) -> GraphRecipe | None:
        """How the training graphs were read, if known."""


def not_of_panels(what: str, names: Sequence[str]) -> ValueError:
    """Return the error about something that models of several endpoints do not have."""
    return ValueError(
        f"{what} is for models of one endpoint, and this one has {len(names)} "
        f"({first_few(names)}): fit one by itself, such as GraphRegressor().fit(graphs, "
        f"Y[{names[0]!r}])."
    )


def check_one_endpoint(model: FittedModel, what: str) -> None:
    """Raise where a model has several endpoints, and ``what`` is only there for one."""
    if model.endpoint_names:
        raise not_of_panels(what, model.endpoint_names)


def reported_values(model: FittedModel, y: Targets) -> np.ndarray:
    """Return targets of new graphs as the model reports its own: numbers, or codes of classes."""
    if model.classes is not None:
        return y.codes_among(model.classes)
    return y.numbers_on(model.training.record.reported)
