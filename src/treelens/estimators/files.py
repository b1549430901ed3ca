"""Models in files: parameters and the fitted model to a file and back, without pickle."""

from __future__ import annotations

import inspect
from dataclasses import fields
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

import treelens
from treelens.estimators.evidence import GraphClassifier, GraphRegressor
from treelens.estimators.process import GaussianProcessOnGraphs
from treelens.estimators.svc import GraphSVC
from treelens.estimators.weights import PairwiseWeights
from treelens.pairwise.settings import LearnerSettings
from treelens.storage.archive import (
    Contents,
    ModelFileError,
    ModelFileNotFoundError,
    read_archive,
    write_archive,
)
from treelens.storage.older import without_preset
from treelens.storage.plain_data import UnknownKindError
from treelens.storage.stored import Stored
from treelens.storage.stored_classifier import get_classifier, put_classifier
from treelens.storage.stored_evidence import get_process, put_process, task_of
from treelens.storage.stored_patterns import plain_parameters

__all__ = ["ModelFileError", "ModelFileNotFoundError", "load"]

AnyModel = GraphSVC | GraphClassifier | GraphRegressor
_MOST_THREADS = 4096
_PROCESSES: dict[str, type[GraphClassifier | GraphRegressor]] = {
    "classification": GraphClassifier,
    "regression": GraphRegressor,
}


# --- saving -----------------------------------------------------------------------------------


def save_svc(model: GraphSVC, path: str | Path) -> None:
    """See :meth:`GraphSVC.save`.

    Raises
    ------
    TypeError
        If a label, a class or the learner is of a kind that a model file cannot keep.
    """
    into = _begun(model)
    learners = [x for x in (model.learner, model.learner_) if x is not None]
    for learner in learners:
        if type(learner) is not PairwiseWeights:
            raise UnknownKindError(
                f"The model cannot be saved: its learner is a {type(learner).__name__}; only "
                "PairwiseWeights can be kept in a file."
            )
    given = None if model.learner is None else plain_parameters(model.learner)[0]
    into.data["learner_parameters"] = given
    put_classifier(model.model_, into)
    write_archive(path, into, treelens.__version__)


def save_process(model: GaussianProcessOnGraphs, path: str | Path) -> None:
    """See :meth:`GraphRegressor.save`."""
    into = _begun(model, "gaussian-process")
    put_process(model.model_, into)
    write_archive(path, into, treelens.__version__)


def _begun(model: Any, kind: str | None = None) -> Contents:
    """What a file of a fitted model begins with: its kind, if that has a name, and parameters."""
    check_is_fitted(model)
    kept, not_kept = plain_parameters(model)
    data = {} if kind is None else {"model": kind}
    return Contents({**data, "parameters": kept, "parameters_not_kept": not_kept}, {})


# --- loading ----------------------------------------------------------------------------------


def load(path: str | Path) -> AnyModel:
    """Load a model that ``model.save(path)`` wrote.

    Loading runs no code from the file: it holds numbers and plain labels only. Predictions are
    those of the saved model to the last bit, on the same machine.

    Parameters
    ----------
    path : str or Path

    Raises
    ------
    ModelFileError
        A ``ValueError`` that says what is wrong: a file that is cut off, altered, of a version
        that this treelens does not know, or no model at all.

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
    return model_of(Stored(read_archive(path), str(path)))


def model_of(stored: Stored) -> AnyModel:
    """The model in what was read from a file; the first kind there was has no name in its files."""
    kind: str = stored.value("model", str) if stored.has_value("model") else "svc"
    if kind not in ("svc", "gaussian-process"):
        raise stored.error(f"'model' names a kind, {kind[:40]!r}, that this treelens does not know")
    return _svc(stored) if kind == "svc" else _process(stored)


def _svc(stored: Stored) -> GraphSVC:
    model: GraphSVC = _checked_estimator(stored, "parameters", GraphSVC)
    flat: dict[str, Any] = {}
    if stored.value("learner_parameters", dict, type(None)) is not None:
        model.learner, flat = _checked_learner(stored, "learner_parameters")
    model.learner_ = None
    if stored.value("learner", dict, type(None)) is not None:
        model.learner_, flat = _checked_learner(stored, "learner")
    model.model_ = get_classifier(stored, flat or PairwiseWeights().flat_parameters())
    choice = model.model_.choice
    if model.learner_ is not None and choice.learned is not None:
        model.learner_._keep(choice.learned)
    return model


def _checked_learner(stored: Stored, name: str) -> tuple[PairwiseWeights, dict[str, Any]]:
    """A learner, and all that it was asked for: files of before may have settings of studies."""
    given = without_preset(stored.value(name, dict))
    known = {field.name for field in fields(LearnerSettings)}
    flat = {key: value for key, value in given.items() if key in known}
    learner = _checked(stored, name, PairwiseWeights.from_flat(flat))
    try:
        LearnerSettings(**{**flat, "n_jobs": 1}).check()
    except (TypeError, ValueError) as error:
        raise stored.error(f"{name!r}: {str(error)[:300]}") from error
    return learner, flat


def _process(stored: Stored) -> GraphClassifier | GraphRegressor:
    model: Any = _checked_estimator(stored, "parameters", _PROCESSES[task_of(stored)])
    model.model_ = get_process(stored, model.weights)
    return model


def _checked_estimator(stored: Stored, name: str, estimator: type) -> Any:
    """An estimator with the parameters under a name, which must be such as ``fit`` takes.

    Those that this version does not know are left out: a later one may have more.
    """
    parameters = stored.value(name, dict)
    known = inspect.signature(estimator).parameters
    made = estimator(**{key: value for key, value in parameters.items() if key in known})
    return _checked(stored, name, made)


def _checked(stored: Stored, name: str, made: Any) -> Any:
    try:
        made._validate_params()
    except ValueError as error:
        raise stored.error(f"{name!r}: {str(error)[:300]}") from error
    if made.n_jobs is not None:
        stored.whole(made.n_jobs, f"'n_jobs' in {name!r}", -_MOST_THREADS, _MOST_THREADS + 1)
        if made.n_jobs == 0:
            raise stored.error(f"'n_jobs' in {name!r} should not be 0")
    return made
