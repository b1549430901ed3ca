"""What all fitted models have in common: the graphs they were fitted to, and their predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, Protocol

import numpy as np

from treelens.graphs.chem import parsed_smiles, rdkit
from treelens.graphs.collection import GraphCollection
from treelens.graphs.convert import check_graphs
from treelens.graphs.descriptors import PREFIX
from treelens.graphs.duplicates import stereo_matters
from treelens.graphs.errors import GraphDataError
from treelens.graphs.recipe import GraphRecipe
from treelens.models.thresholds import Threshold
from treelens.patterns.forest import PatternForest, RefinedGraphs
from treelens.patterns.histograms import Features, PatternHistograms, graph_keys


@dataclass(frozen=True, eq=False)
class TrainingGraphs:
    """Counts and targets of the training graphs."""

    histograms: PatternHistograms  # of the depths in use
    targets: np.ndarray  # (n_graphs,) class codes, or values
    n_in_all: int | None = None  # that the model was fitted to, where these are a sample
    # Of the training graphs, empty where one has none; None where none has any, or where they were
    # left out on purpose.
    names: tuple[str, ...] | None = None
    smiles: tuple[str, ...] | None = None
    limits: np.ndarray | None = None  # (n_graphs,) 1: a lower limit, -1: an upper one, 0: exact

    def validate(self) -> None:
        for what in (self.names, self.smiles):
            if what is not None and len(what) != len(self.targets):
                raise ValueError("names and SMILES must be one per training graph")

    def with_identity(self, graphs: GraphCollection) -> TrainingGraphs:
        """Return the same with the names and SMILES of the graphs."""
        return replace(self, names=names_of(graphs), smiles=smiles_of(graphs))

    def without_identity(self) -> TrainingGraphs:
        """Return the same without names and SMILES: counts and targets, which models need."""
        return replace(self, names=None, smiles=None)

    def called(self, index: int) -> str | None:
        """Return the name of a training graph, else its SMILES, else None."""
        for texts in (self.names, self.smiles):
            if texts is not None and texts[index]:
                return texts[index]
        return None

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
        none = ("",) * len(graphs)
        names, smiles = self.names, self.smiles
        return replace(
            self,
            targets=targets,
            names=None if names is None else names + (names_of(graphs) or none),
            smiles=None if smiles is None else smiles + (smiles_of(graphs) or none),
            limits=None if self.limits is None else np.append(self.limits, [0] * len(graphs)),
        )

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
    """SMILES of molecules as they were read; None where graphs are no molecules."""
    if "smiles" in graphs.graph_data:
        return tuple(str(text or "") for text in graphs.graph_data["smiles"].tolist())
    if "mol" not in graphs.graph_data:
        return None
    from rdkit import Chem

    return tuple(Chem.MolToSmiles(molecule) for molecule in graphs.graph_data["mol"].tolist())


def known_graphs(
    model: Any, graphs: GraphCollection, seen: RefinedGraphs
) -> tuple[np.ndarray, np.ndarray]:
    """Whether each graph is in the training data, and whether it repeats an earlier one.

    Graphs that no pattern distinguishes are compared by their canonical SMILES, where these are
    known of all of them; patterns that training never saw distinguish other graphs.
    """
    training, own = model.training, smiles_of(graphs)
    unseen = seen.histograms.unseen.sum(axis=1).tolist()
    covariates = getattr(model, "covariates", None)
    names = [] if covariates is None else covariates.table.names
    plain = all(name.startswith(PREFIX) for name in names)  # nothing but descriptors
    same: dict[Any, list[int]] = {}  # training graphs count from -1 downwards
    for side, features in ((-1, model.training_graphs), (1, seen.features)):
        features = features._replace(covariates=None) if plain else features
        for k, key in enumerate(graph_keys(features)):
            apart = 0 if side < 0 else unseen[k] if own else unseen[k] and k + 1
            same.setdefault((key, apart), []).append(k if side > 0 else -1 - k)
    stereo = stereo_matters(graphs)

    def as_read(k: int) -> str:
        return own[k] if k >= 0 else training.smiles[-1 - k]  # type: ignore[index]

    @cache
    def written(text: str) -> str:
        molecule = parsed_smiles([text])[0]
        return rdkit().MolToSmiles(molecule, isomericSmiles=stereo) if molecule else ""

    measured, repeated = np.zeros((2, len(graphs)), dtype=bool)
    for members in same.values():
        by_smiles = own and (members[0] >= 0 or training.smiles)
        by_smiles = by_smiles and len(set(map(as_read, members))) > 1  # else all are equal
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
class KernelExpansion:
    """Outputs that are linear in kernel values: ``intercepts + coefficients @ k(graph, basis)``.

    Two classes share one output, positive for the second; more have one output each.
    """

    forest: PatternForest
    first_level: int  # of the forest that the kernel uses; its first pattern is number 0 here
    kernel: Any  # WeightedKernel or MixtureKernel
    weights: np.ndarray  # (n_patterns,) of the patterns from first_level on
    basis: Features  # of the n training graphs that have a coefficient
    basis_indices: np.ndarray  # (n,) their positions in the training set
    coefficients: np.ndarray  # (n_outputs, n)
    intercepts: np.ndarray  # (n_outputs,)
    classes: np.ndarray | None  # None for regression
    refine: Callable[..., RefinedGraphs]  # from graphs and n_jobs
    # Of n_jobs: the upper Cholesky factor of the covariance of the targets; None where predictions
    # without a training graph have no closed form.
    factor: Callable[[int], np.ndarray | None] = lambda n_jobs: None

    @property
    def first_pattern(self) -> int:
        """Id in the forest of the first pattern in use."""
        return int(self.forest.level_offsets[self.first_level])


class FittedModel(Protocol):
    """A fitted SVM or Gaussian process, as predictions, explanations, reports and files see it."""

    @property
    def classes(self) -> np.ndarray | None: ...  # None where numbers are predicted
    @property
    def recipe(self) -> GraphRecipe | None: ...  # how the training graphs were made
    @property
    def training(self) -> TrainingGraphs | None: ...  # their counts and targets
    @property
    def training_graphs(self) -> Features: ...  # of all of them
    @property
    def weights(self) -> np.ndarray: ...  # (n_patterns,) one per pattern in use
    @property
    def expansion(self) -> KernelExpansion: ...  # sums that explanations divide among patterns
    def decide(self, graphs: GraphCollection, *, n_jobs: int = 1) -> Predictions:
        """Return the predictions of graphs, each refined once."""


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions of new graphs, shape (n_graphs, ...) each."""

    decisions: np.ndarray  # (.., n_columns) decision values, one column for two classes; or numbers
    out_of_vocabulary: np.ndarray  # (..,) fraction of patterns that training never saw
    graphs: RefinedGraphs  # as the model sees them, for contributions on demand
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
                    f"The decision value of graph {row} is not a finite number: the model's "
                    "weights, gamma or coefficients are out of any sensible range. Fit the model "
                    "again, with a smaller gamma; if it came from a file, get the file from a "
                    "source you trust."
                )
        return self


def predicted_codes(decisions: np.ndarray) -> np.ndarray:
    """Class codes from decision values, shape (n,)."""
    if decisions.shape[1] == 1:
        return (decisions[:, 0] > 0).astype(int)
    return decisions.argmax(axis=1)
