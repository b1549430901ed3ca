"""Estimators in model files: parameters and the fitted model, written and read without pickle."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

import treelens
from treelens.estimators.evidence import GraphClassifier, GraphRegressor
from treelens.estimators.streaming import StreamingGraphClassifier, StreamingGraphRegressor
from treelens.estimators.svc import GraphSVC
from treelens.estimators.weights import PairwiseWeights
from treelens.gp.model import FittedGP
from treelens.pairwise.settings import LearnerSettings
from treelens.storage.archive import (
    Contents,
    ModelFileError,
    ModelFileNotFoundError,
    read_archive,
    write_archive,
)
from treelens.storage.model_classes import MODEL_CLASSES
from treelens.storage.state import StateError, UnstorableError, fits, from_state, to_state
from treelens.svm.model import FittedSVM

__all__ = ["ModelFileError", "ModelFileNotFoundError", "load"]

AnyModel = GraphSVC | GraphClassifier | GraphRegressor
_ESTIMATORS: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        GraphClassifier, GraphRegressor, GraphSVC,
        StreamingGraphClassifier, StreamingGraphRegressor,
    )
}  # fmt: skip
_MAX_THREADS = 4096


def save_model(estimator: Any, path: str | Path) -> None:
    """Write a fitted estimator to a file; see :meth:`GraphRegressor.save`.

    Raises
    ------
    TypeError
        If a label, a class or the learner is of a type that a model file cannot have.
    """
    check_is_fitted(estimator)
    kept, not_kept = {}, {}
    for name, value in estimator.get_params(deep=False).items():
        if isinstance(value, PairwiseWeights):
            value = {"PairwiseWeights": value.flat_parameters()}
        try:
            to_state(value)
            kept[name] = value
        except UnstorableError:  # a splitter, a random generator: matter for fitting again only
            not_kept[name] = repr(value)[:200]
    for learner in (getattr(estimator, name, None) for name in ("learner", "learner_")):
        if learner is not None and type(learner) is not PairwiseWeights:
            raise UnstorableError(
                f"The model cannot be saved: its learner is a {type(learner).__name__}; only "
                "PairwiseWeights can be saved."
            )
    record = {
        "estimator": type(estimator).__name__,
        "parameters": kept,
        "parameters_not_kept": not_kept,
        "model": estimator.model_,
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

    Raises
    ------
    ModelFileError
        A ``ValueError`` that says what is wrong: a file that is truncated, altered, of another
        version, or no model at all.

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
        return _restored(from_state(*contents, MODEL_CLASSES))
    except (StateError, RecursionError) as error:
        raise ModelFileError(
            f"{place}: {error}. The file was altered, or written by another program; save the "
            "model again."
        ) from error


def _restored(record: Any) -> Any:
    expected = {"estimator": str, "parameters": dict, "parameters_not_kept": dict[str, str],
                "model": FittedSVM | FittedGP}  # fmt: skip
    for name, hint in expected.items():
        if not fits(record.get(name), hint):
            raise StateError(f"{name!r} is missing, or not of its type")
    kind, model = _ESTIMATORS.get(record["estimator"]), record["model"]
    if kind is None or isinstance(model, FittedSVM) != (kind is GraphSVC):
        raise StateError(f"{record['estimator'][:40]!r} is no estimator of such a model")
    if isinstance(model, FittedGP) and (model.classes is None) != issubclass(kind, GraphRegressor):
        raise StateError(f"{record['estimator']!r} does not predict such targets")
    parameters = dict(record["parameters"])
    if isinstance(parameters.get("learner"), dict):
        parameters["learner"] = _learner(parameters["learner"].get("PairwiseWeights"))
    estimator = _made(kind, parameters)
    estimator.model_ = model
    if isinstance(model, FittedSVM):
        learned = model.choice.learned
        learner = _learner(model.choice.learner)
        estimator.learner_ = None if learned is None else learner
        if learned is not None:
            learner._keep(learned)
    return estimator


def _learner(flat: Any) -> PairwiseWeights:
    """Return the learner with these parameters, those of its solver among them."""
    try:
        LearnerSettings(**{**flat, "n_jobs": 1}).check()
        learner = PairwiseWeights.from_flat(flat)
        return _made(PairwiseWeights, learner.get_params(deep=False))
    except (TypeError, ValueError) as error:
        raise StateError(f"the parameters of the learner: {str(error)[:300]}") from error


def _made(kind: type, parameters: dict[str, Any]) -> Any:
    """Return an estimator with these parameters, which must be such as ``fit`` takes."""
    unknown = set(parameters) - set(inspect.signature(kind).parameters)
    if unknown:
        raise StateError(f"{kind.__name__} has no parameter {str(min(unknown))[:40]!r}")
    made = kind(**parameters)
    try:
        made._validate_params()
    except ValueError as error:
        raise StateError(f"'parameters': {str(error)[:300]}") from error
    n_jobs = made.n_jobs
    if n_jobs is not None and not (fits(n_jobs, int) and 0 < abs(n_jobs) <= _MAX_THREADS):
        raise StateError(f"'n_jobs' must be from -{_MAX_THREADS} to {_MAX_THREADS}, and not 0")
    return made
