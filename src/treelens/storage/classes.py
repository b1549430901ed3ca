"""The classes that a model file may have objects of, imported when one is met."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from importlib import import_module
from itertools import chain

from treelens.graphs.kinds import registered_kinds

_OURS = {
    "gp.fitting": "LearningGain",
    "gp.landmarks": "LandmarkPosterior",
    "gp.model": "EvidenceRecord FittedGP",
    "gp.panel_model": "FittedPanel LeftOutPanel PanelEndpoint PanelProcess PanelRecord",
    "gp.panel_spread": "LocalSpread",
    "gp.posterior": "LeftOutClasses LeftOutNumbers MeanPosterior",
    "gp.views": "CovariateColumn CovariateTable NumbersTable WeightedPatterns",
    "graphs.kinds": "GraphRecipe TableRecord",
    "kernels.base": "SumKernel Term",
    "kernels.mixture": "TanimotoL1",
    "kernels.rbf": "Rbf",
    "kernels.weighted": "WeightedKernel",
    "maps": "Logarithm Logit NormalScores SmoothScores",
    "models.predictions": "Threshold TrainingGraphs",
    "pairwise.learn": "LearnedWeights",
    "pairwise.objective": "Margins",
    "patterns.cell_patterns": "CellPatterns",
    "patterns.cells": "AttributeCells",
    "patterns.forest": "PatternExtractor PatternForest",
    "patterns.histograms": "PatternHistograms",
    "patterns.own_patterns": "OwnPatterns",
    "patterns.path_patterns": "PathPatterns",
    "patterns.vocabulary": "PatternLevel PatternVocabulary",
    "svm.model": "Choice FittedSVM LinearOnKernel",
    "svm.search": "Candidate SearchResult",
    "svm.solver": "SVM",
    "targets": "TargetRecord",
    "views": "Paths WLPatterns Walks",
}


class ModelClasses(Mapping[str, type]):
    """Classes by their names: those of treelens, and those of a user.

    A module is imported when one of its classes is asked for, so that a model is read without the
    modules of others.
    """

    def __init__(self, own: Iterable[type] = ()) -> None:
        kinds = [kind.stored_classes() for kind in registered_kinds()]
        listed = chain(_OURS.items(), *(kind.items() for kind in kinds))
        self._modules = {name: module for module, names in listed for name in names.split()}
        self._own: dict[str, type] = {}
        for kind in dict.fromkeys(own):
            name = kind.__name__
            if name in self._modules and self[name] is kind:
                continue
            if not is_dataclass(kind):
                raise TypeError(f"{name} is no dataclass: add @dataclass(frozen=True) to it.")
            if name in self:
                raise ValueError(f"There are two classes called {name}: rename yours.")
            self._own[name] = kind

    def __getitem__(self, name: str) -> type:
        if name in self._own:
            return self._own[name]
        kind: type = getattr(import_module(f"treelens.{self._modules[name]}"), name)
        return kind

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._modules

    def __iter__(self) -> Iterator[str]:
        return chain(self._modules, self._own)

    def __len__(self) -> int:
        return len(self._modules) + len(self._own)
