"""A fitted model of a file that predicts without the estimator that learned it.

An estimator needs all that ``fit`` needs, and scikit-learn: to import these takes longer than to
predict a few molecules.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from treelens.graphs.collection import GraphCollection
from treelens.graphs.kinds import GraphRecipe
from treelens.models.fitted import FittedModel, HasModel
from treelens.models.predictions import Predictions
from treelens.parallel import thread_count
from treelens.storage.files import read_archive
from treelens.storage.records import estimator_record


class TablePredictor(HasModel, Protocol):
    """What a table of predictions asks of an estimator, or of what stands for one."""

    def _n_jobs(self) -> int: ...

    def _decide(self, graphs: GraphCollection, /, *, variance: bool) -> Predictions: ...


@dataclass(frozen=True)
class Predictor:
    """What a table of predictions asks of an estimator with one endpoint."""

    model_: FittedModel
    n_jobs: int

    @property
    def recipe_(self) -> GraphRecipe | None:
        """How the training graphs were read, if known."""
        return self.model_.recipe

    def _n_jobs(self) -> int:
        return thread_count(self.n_jobs)

    def _decide(self, graphs: GraphCollection, variance: bool) -> Predictions:
        return self.model_.decide(graphs, variance=variance, n_jobs=self._n_jobs())


def load_predictor(path: Path, n_jobs: int) -> Any:
    """Return the model of a file: a :class:`Predictor`, or of several endpoints the estimator."""
    record = estimator_record(read_archive(path), str(path))
    if not record.model.endpoint_names:
        return Predictor(record.model, n_jobs)
    from treelens.estimators.model_files import estimator_with

    made = estimator_with(record, str(path))
    made.n_jobs = n_jobs
    return made
