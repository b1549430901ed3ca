"""Estimators in model files: parameters and the fitted model, written and read without pickle."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

import treelens
from treelens.estimators.evidence import GraphClassifier, GraphRegressor
from treelens.estimators.svc import GraphSVC, PairwiseWeights
from treelens.gp.model import FittedGP
from treelens.storage.files import (
    Contents,
    ModelFileError,
    ModelFileNotFoundError,
    read_archive,
    write_archive,
)
from treelens.storage.state import MODEL_CLASSES, StateError, UnstorableError, from_state, to_state
from treelens.svm.model import FittedSVM

__all__ = ["ModelFileError", "ModelFileNotFoundError", "load"]

AnyModel = GraphSVC | GraphClassifier | GraphRegressor
_ESTIMATORS: dict[str, Any] = {
    kind.__name__: kind for kind in (GraphClassifier, GraphRegressor, GraphSVC)
}
_MAX_THREADS = 4096


def save_model(estimator: Any, path: str | Path, training_data: bool = True) -> None:
    """Write a fitted estimator; a ``TypeError`` if a label, class or learner cannot be stored."""
    check_is_fitted(estimator)
    model = estimator.model_
    if not training_data:
        model = replace(model, training=model.training.without_identity())
    learners = {type(getattr(estimator, name, None)) for name in ("learner", "learner_")}
    if not learners <= {PairwiseWeights, type(None)}:
        raise UnstorableError("The model cannot be saved: its learner is not a PairwiseWeights.")
    kept, not_kept = {}, {}
    for name, value in estimator.get_params(deep=False).items():
        given = value.flat_parameters() if type(value) is PairwiseWeights else value
        try:
            to_state(given)
            kept[name] = given
        except UnstorableError:  # a splitter, a random generator: for fitting again only
            not_kept[name] = repr(value)[:200]
    record = {
        "estimator": type(estimator).__name__,
        "parameters": kept,
        "parameters_not_kept": not_kept,
        "model": model,
    }
    try:
        contents = Contents(*to_state(record, MODEL_CLASSES))
    except UnstorableError as error:
        raise UnstorableError(f"The model cannot be saved: {error}") from None
    write_archive(path, contents, treelens.__version__)


def load(path: str | Path) -> AnyModel:
    """Load a model that ``model.save(path)`` wrote.

    Loading runs no code from the file, which has numbers and plain labels only. Predictions are
    those of the saved model to the last bit, on the same machine.

    Parameters
    ----------
    path : str or Path
        A file that is truncated, altered, of another version or no model at all raises a
        ``ModelFileError``, a ``ValueError``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import treelens as tl
    >>> graphs, y = tl.make_synthetic(n_per_substructure=5, random_state=0)
    >>> model = tl.GraphClassifier(depth=2).fit(graphs, y)
    >>> path = pathlib.Path(tempfile.mkdtemp(), "model.treelens")
    >>> model.save(path)
    >>> bool((tl.load(path).decision_function(graphs) == model.decision_function(graphs)).all())
    True
    """
    return estimator_of(read_archive(path), str(path))


def estimator_of(contents: Contents, place: str) -> AnyModel:
    """Return the estimator in the contents of a model file; ``place`` is for messages."""
    try:
        record = from_state(*contents, MODEL_CLASSES)
        name, model = record.get("estimator"), record.get("model")
        kind = _ESTIMATORS.get(name) if isinstance(name, str) else None
        expected = FittedSVM if kind is GraphSVC else FittedGP
        has_classes = getattr(model, "classes", None) is not None
        if not isinstance(model, expected) or has_classes == (kind is GraphRegressor):
            raise StateError(f"'estimator' is {name!r:.60}, which has no model like this")
        try:
            return _made(kind, record.get("parameters"), model)
        except (TypeError, ValueError) as error:
            raise StateError(f"'parameters': {str(error)[:300]}") from error
    except (StateError, RecursionError) as error:
        raise ModelFileError(
            f"{place}: {error}. The file was altered, or written by another program; save the "
            "model again."
        ) from error


def _made(kind: Any, parameters: Any, model: Any) -> Any:
    """Return an estimator with parameters such as ``fit`` takes, and its fitted model."""
    made = kind(**parameters)
    if isinstance(made, GraphSVC):
        if made.learner is not None:
            made.learner = _learner(made.learner)
        made.learner_ = None
        if model.choice.learned is not None:
            made.learner_ = _learner(model.choice.learner)
            made.learner_._keep(model.choice.learned)
    _check_parameters(made)
    made.model_ = model
    return made


def _learner(flat: Any) -> PairwiseWeights:
    """Return the learner with these parameters, those of its solver among them."""
    learner = PairwiseWeights.from_flat(flat)
    _check_parameters(learner)
    return learner


def _check_parameters(estimator: Any) -> None:
    estimator._validate_params()
    if estimator.n_jobs is not None and not 0 < abs(estimator.n_jobs) <= _MAX_THREADS:
        raise ValueError(f"n_jobs must be from -{_MAX_THREADS} to {_MAX_THREADS}, and not 0")
