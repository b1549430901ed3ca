"""Files of estimators with their fitted models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from treelens import __version__
from treelens.estimators.base import GraphEstimator
from treelens.estimators.evidence import GraphClassifier, GraphRegressor
from treelens.estimators.panel import GraphPanel
from treelens.estimators.svc import GraphSVC
from treelens.pairwise.learn import PairwiseWeights
from treelens.patterns.own_patterns import PatternFinder
from treelens.storage.classes import ModelClasses
from treelens.storage.files import Contents, read_archive, write_archive
from treelens.storage.records import EstimatorRecord, altered, estimator_record
from treelens.storage.state import StateError, UnstorableError, to_state

if TYPE_CHECKING:
    from treelens.models.fitted import FittedModel

AnyModel: TypeAlias = GraphSVC | GraphClassifier | GraphPanel | GraphRegressor

_MAX_THREADS = 4096  # that the file of a model may ask for


def write_model(estimator: GraphEstimator, model: FittedModel, path: str | Path) -> None:
    """Write an estimator with its fitted model to a file."""
    learners = {type(getattr(estimator, name, None)) for name in ("learner", "learner_")}
    if not learners <= {PairwiseWeights, type(None)}:
        raise UnstorableError("It cannot be saved: its learner is not a PairwiseWeights.")
    kept, not_kept = {}, {}
    views = getattr(estimator, "views", "auto")
    listed = () if isinstance(views, str) else views
    own = [type(each) for each in listed if isinstance(each, PatternFinder)]
    own += [each.kernel for each in listed if hasattr(each, "kernel")]
    classes = ModelClasses(own)
    for name, value in estimator.get_params(deep=False).items():
        given = value.flat_parameters() if type(value) is PairwiseWeights else value
        try:
            to_state(given, classes)
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
        contents = Contents(*to_state(record, classes))
    except UnstorableError as error:
        raise UnstorableError(f"The model cannot be saved: {error}") from None
    write_archive(path, contents, __version__)


def load(path: str | Path, classes: Sequence[type] = ()) -> AnyModel:
    """Load a model that ``model.save(path)`` wrote.

    Loading runs no code from the file, which has numbers and plain labels only. Predictions are
    those of the saved model to the last bit, on the same machine.

    Parameters
    ----------
    path : str or Path
        A file that is truncated, altered, of another version or no model at all raises a
        ``ModelFileError``, a ``ValueError``.
    classes : sequence of type, optional
        Classes of your own among the views of the model (:class:`treelens.PatternView`) and among
        the kernels of its tables (:class:`treelens.Kernel`).

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
    return estimator_of(read_archive(path), str(path), classes)


def estimator_of(contents: Contents, place: str, classes: Sequence[type] = ()) -> AnyModel:
    """Return the estimator in the contents of a model file; ``place`` is for messages."""
    return estimator_with(estimator_record(contents, place, classes), place)


def estimator_with(record: EstimatorRecord, place: str) -> AnyModel:
    """Return the estimator of a record; ``place`` is for messages."""
    kinds: tuple[Any, ...] = (GraphClassifier, GraphPanel, GraphRegressor, GraphSVC)
    (kind,) = (each for each in kinds if each.__name__ == record.estimator)
    try:
        made: AnyModel = _made(kind, record.parameters, record.model)
    except (TypeError, ValueError) as error:
        raise altered(place, StateError(f"'parameters': {str(error)[:300]}")) from error
    return made


def _made(kind: Any, parameters: Any, model: Any) -> Any:
    """Return an estimator with parameters such as ``fit`` takes, and its fitted model."""
    made = kind(**parameters)
    learners = []
    if hasattr(model, "choice"):  # of an SVM
        if made.learner is not None:
            made.learner = PairwiseWeights.from_flat(made.learner)
        made.learner_ = None
        if model.choice.learned is not None:
            made.learner_ = PairwiseWeights.from_flat(model.choice.learner)
            made.learner_._keep(model.choice.learned)
        learners = [each for each in (made.learner, made.learner_) if each is not None]
    for each in (made, *learners):
        each._validate_params()
        if each.n_jobs is not None and not 0 < abs(each.n_jobs) <= _MAX_THREADS:
            raise ValueError(f"n_jobs must be from -{_MAX_THREADS} to {_MAX_THREADS}, and not 0")
    made.model_ = model
    return made
