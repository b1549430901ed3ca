"""Every entry of a model file made wrong in every way: refused in words, or harmless."""

import copy
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treelens as tl
from treelens.estimators.model_files import estimator_of
from treelens.storage.files import Contents, read_archive

GRAPHS, Y = tl.make_synthetic(n_per_substructure=4, random_state=0)
GRAPHS = GRAPHS.with_data({"t": np.arange(len(Y)) * 1.0, "assay": np.array(["x", "y"])[Y]})
THREE_CLASSES = np.array(["a", "b", "c"])[np.arange(len(Y)) % 3]
NUMBERS = np.random.default_rng(0).normal(size=len(Y))
pytestmark = [
    pytest.mark.filterwarnings("ignore:Training never saw:UserWarning"),
    pytest.mark.filterwarnings("ignore:The search for weights stopped"),
]


def svc() -> Any:
    learner = tl.PairwiseWeights(solver=tl.QuasiNewton(tol=0.05))
    settings = {"depth": 1, "C": 1.0, "cv": 2, "random_state": 0, "learner": learner}
    return tl.GraphSVC("wwl", weight_radius=2.0, gamma=1.0, **settings).fit(GRAPHS, THREE_CLASSES)


def gaussian_process(kind: Any, y: Any, covariates: Any = None, **more: Any) -> Any:
    """On two trees, one of which hangs on the other."""
    model = kind(
        depth=1,
        views=[tl.WLPatterns(trees=("structure", "labels"))],
        max_steps=10,
        random_state=0,
        **more,
    )
    return model.fit(GRAPHS, y, covariates=covariates)


MAKERS = {
    "support vectors": svc,
    "regressor": lambda: gaussian_process(tl.GraphRegressor, NUMBERS, ["t", "assay"]),
    "threshold": lambda: gaussian_process(tl.GraphClassifier, Y, threshold=0.3),
    "landmarks": lambda: gaussian_process(
        tl.GraphClassifier, THREE_CLASSES, exact_size=8, n_landmarks=6
    ),
}


@pytest.fixture(scope="module", params=MAKERS)
def contents(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Contents:
    path = tmp_path_factory.mktemp("model") / "model.treelens"
    MAKERS[request.param]().save(path)
    return read_archive(path)


def used(data: dict[str, Any], arrays: dict[str, np.ndarray], explain: bool) -> list[np.ndarray]:
    """What a model says about a few graphs."""
    model = estimator_of(Contents(data, arrays), "altered.treelens")
    if isinstance(model, tl.GraphRegressor):
        results = list(model.predict(GRAPHS[:3], return_std=True))
    else:
        results = [model.decision_function(GRAPHS[:3])]
        model.predict(GRAPHS[:3])
    if hasattr(model, "predict_proba"):
        results.append(model.predict_proba(GRAPHS[:3]))
    if explain:
        results.append(model.explain(GRAPHS[0]).node_contributions)
    return results


def is_refused(
    data: dict[str, Any], arrays: dict[str, np.ndarray], what: str, explain: bool = True
) -> bool:
    """Whether an error of ours refuses the model; if not, what it says must be finite."""
    raised: ValueError | None = None
    with np.errstate(all="ignore"):
        try:
            results = used(data, arrays, explain)
        except ValueError as error:
            raised = error
    if raised is None:
        assert all(np.isfinite(result).all() for result in results), what
        return False
    last = traceback.extract_tb(raised.__traceback__)[-1].filename
    assert Path(last).is_relative_to(Path(tl.__file__).parent), (what, raised)
    return True


def test_the_model_as_it_is_works(contents: Contents) -> None:
    assert not is_refused(contents.data, dict(contents.arrays), "nothing")


def with_first(value: Any, last: bool = False) -> Any:
    def change(array: np.ndarray) -> np.ndarray:
        changed = array.copy()
        if changed.size:
            info = np.iinfo(array.dtype) if array.dtype.kind == "i" else None
            fits = info is None or (np.isfinite(value) and info.min <= value <= info.max)
            changed.flat[-1 if last else 0] = value if fits else (info.max if info else value)
        return changed

    return change


ARRAY_CHANGES = {
    "nan": with_first(np.nan),
    "infinite": with_first(np.inf),
    "negative": with_first(-1),
    "negative at the end": with_first(-1, last=True),
    "huge": with_first(1e308),
    "rather large": with_first(1e90),
    "smallest": lambda x: with_first(np.iinfo(x.dtype).min if x.dtype.kind == "i" else -1e308)(x),
    "zero": np.zeros_like,
    "all huge": lambda x: np.full_like(x, np.iinfo(x.dtype).max if x.dtype.kind == "i" else 1e308),
    "other type": lambda x: x.astype(np.float64 if x.dtype.kind == "i" else np.int64),
    "shorter": lambda x: x[:-1],
    "empty": lambda x: x[:0],
    "another axis": lambda x: x[..., None],
    "reversed": lambda x: np.ascontiguousarray(x[::-1]),
    "shuffled": lambda x: np.random.default_rng(0).permutation(x),
}


@pytest.mark.parametrize("change", ARRAY_CHANGES)
def test_every_array_made_wrong(contents: Contents, change: str) -> None:
    n_refused = 0
    for name, array in contents.arrays.items():
        with np.errstate(all="ignore"):
            arrays = {**contents.arrays, name: ARRAY_CHANGES[change](array)}
        n_refused += is_refused(contents.data, arrays, f"{name}: {change}")
    assert n_refused, "nothing of this kind was ever refused"


WRONG_VALUES = {
    "nan": {"$float": "nan"},
    "infinite": {"$float": "inf"},
    "negative": -1,
    "zero": 0,
    "beyond 64 bits": 2**64,
    "many digits": 10**400,
    "huge": 1e308,
    "rather large": 1e90,
    "a text": "text",
    "null": None,
    "a list": [],
    "true": True,
}
# Entries that an explanation reads and a decision may not.
EXPLAINED = {"kernel", "patterns", "scales", "trees", "target_scale", "degree_labels"}


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where JSON data has entries; of a list, the first and the last."""
    inner: list[Any] = []
    if isinstance(value, dict):
        inner = list(value)
    elif isinstance(value, list):
        inner = sorted({0, len(value) - 1}) if value else []
    found = [place for key in inner for place in places(value[key], (*path, key))]
    return [path, *found] if path else found


def replaced(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    """The data with another value at a place; the rest is shared."""
    if not path:
        return value
    changed = copy.copy(data)
    changed[path[0]] = replaced(data[path[0]], path[1:], value)
    return changed


@pytest.mark.parametrize("value", WRONG_VALUES)
def test_every_entry_made_wrong(contents: Contents, value: str) -> None:
    n_refused = 0
    for path in places(contents.data):
        changed = replaced(contents.data, path, WRONG_VALUES[value])
        n_refused += is_refused(
            changed, dict(contents.arrays), f"{path}: {value}", explain=bool(EXPLAINED & set(path))
        )
    assert n_refused, "nothing of this kind was ever refused"
