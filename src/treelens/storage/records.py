"""What a model file holds: the name of an estimator, its parameters and its fitted model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from treelens.storage.classes import ModelClasses
from treelens.storage.files import Contents, ModelFileError
from treelens.storage.state import StateError, from_state

_MODELS = {
    "GraphClassifier": ("FittedGP", "FittedPanel"),
    "GraphPanel": ("FittedPanel",),
    "GraphRegressor": ("FittedGP", "FittedPanel"),
    "GraphSVC": ("FittedSVM",),
}
_OF_CLASSES = ("GraphClassifier", "GraphSVC")


class EstimatorRecord(NamedTuple):
    """An estimator as a file has it; ``parameters`` are not checked."""

    estimator: str
    parameters: Any
    model: Any


def estimator_record(
    contents: Contents, place: str, classes: Iterable[type] = ()
) -> EstimatorRecord:
    """Return what the contents of a model file say; ``place`` is for messages."""
    known = ModelClasses(classes)
    try:
        record = from_state(*contents, known)
        name, model = record.get("estimator"), record.get("model")
        if not _fits(name, model):
            raise StateError(f"'estimator' is {name!r:.60}, which has no model like this")
    except (StateError, RecursionError) as error:
        raise altered(place, error) from error
    return EstimatorRecord(name, record.get("parameters"), model)


def _fits(estimator: object, model: Any) -> bool:
    """Whether a fitted model is one of an estimator: of its kind, of classes or of numbers."""
    kind = type(model).__name__
    if not isinstance(estimator, str) or kind not in _MODELS.get(estimator, ()):
        return False
    has_classes = estimator in _OF_CLASSES
    if kind == "FittedPanel":
        own = {each.classes is not None for each in model.endpoints}
        return estimator == "GraphPanel" or own == {has_classes}
    return bool((model.classes is not None) == has_classes)


def altered(place: str, error: Exception) -> ModelFileError:
    """Return the error about a file that says what no model has."""
    return ModelFileError(
        f"{place}: {error}. The file was altered, or written by another program; save the "
        "model again."
    )
