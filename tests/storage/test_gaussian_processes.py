"""Model files of Gaussian processes: what was saved comes back, to the last bit."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import treelens as tl
from storage.conftest import refuse
from strategies import random_collection
from treelens.gp.posterior import ExactPosterior, MeanPosterior
from treelens.storage.files import read_archive

RNG = np.random.default_rng(0)
GRAPHS = random_collection(RNG, 60)
VALUES = RNG.normal(size=60)
TWO, THREE = (np.array(["a", "b", "c"])[np.arange(60) % n] for n in (2, 3))
TRUST = RNG.uniform(0.5, 2.0, 40)
NEW = GRAPHS[40:]
pytestmark = pytest.mark.filterwarnings("ignore:The model puts every graph:UserWarning")


def fitted(kind: Any, y: np.ndarray, sample_weight: Any = None, **settings: Any) -> Any:
    model = kind(depth=2, random_state=0, progress=False, **settings)
    return model.fit(GRAPHS[:40], y[:40], sample_weight)


MAKERS = {
    "numbers": lambda: fitted(tl.GraphRegressor, VALUES),
    "weighted numbers": lambda: fitted(tl.GraphRegressor, VALUES, TRUST),
    "numbers on landmarks": lambda: fitted(
        tl.GraphRegressor, VALUES, learning_size=30, exact_size=30, n_landmarks=20
    ),
    "depths of one tree": lambda: tl.GraphRegressor(
        2, "depths", views=[tl.WLPatterns(trees=("labels",))]
    ).fit(GRAPHS[:40], VALUES[:40]),
    "two classes": lambda: fitted(tl.GraphClassifier, TWO, class_weight={"a": 1.0, "b": 3.0}),
    "a rare class": lambda: fitted(tl.GraphClassifier, np.arange(60) % 8 == 0, threshold=0.2),
    "three classes": lambda: fitted(tl.GraphClassifier, THREE, TRUST, class_weight="balanced"),
    "classes on landmarks": lambda: fitted(
        tl.GraphClassifier, THREE, exact_size=30, n_landmarks=20
    ),
}


@pytest.fixture(scope="module", params=MAKERS)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A model, and what its file gives back."""
    path = tmp_path_factory.mktemp("model") / "model.treelens"
    model = MAKERS[request.param]()
    model.save(path)
    return model, tl.load(path)


def test_predictions_are_those_of_the_saved_model(pair: Any) -> None:
    model, loaded = pair
    assert type(loaded) is type(model)
    if isinstance(model, tl.GraphRegressor):
        mean, std = model.predict(NEW, return_std=True)
        assert (loaded.predict(NEW) == mean).all()
        np.testing.assert_allclose(loaded.predict(NEW, return_std=True)[1], std, rtol=1e-10)
    else:
        assert (loaded.classes_ == model.classes_).all()
        for name in ("predict", "decision_function", "predict_proba"):
            assert (getattr(loaded, name)(NEW) == getattr(model, name)(NEW)).all()
    assert (loaded.out_of_vocabulary(NEW) == model.out_of_vocabulary(NEW)).all()


def test_so_is_everything_else_that_a_fit_leaves(pair: Any, tmp_path: Path) -> None:
    model, loaded = pair
    pd.testing.assert_frame_equal(loaded.patterns_, model.patterns_, check_exact=True)
    pd.testing.assert_frame_equal(loaded.history_, model.history_, check_exact=True)
    for name in ("evidence_", "converged_", "learning_gain_", "recipe_"):
        assert getattr(loaded, name) == getattr(model, name), name
    assert loaded.get_params() == model.get_params()
    for name, value in vars(model.loo_).items():
        np.testing.assert_array_equal(getattr(loaded.loo_, name), value, err_msg=name)
    ours, theirs = model.explain(NEW[3]), loaded.explain(NEW[3])
    assert (theirs.node_contributions == ours.node_contributions).all()
    pd.testing.assert_frame_equal(theirs.pattern_contributions, ours.pattern_contributions)
    for name, one in zip("ab", pair, strict=True):
        one.save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_the_factor_is_left_out_and_computed_when_it_is_needed(tmp_path: Path) -> None:
    fitted(tl.GraphRegressor, VALUES).save(tmp_path / "m")
    assert (40, 40) not in {x.shape for x in read_archive(tmp_path / "m").arrays.values()}
    loaded = tl.load(tmp_path / "m")
    loaded.predict(NEW)
    assert isinstance(loaded.model_.posterior, MeanPosterior)
    first = loaded.predict(NEW, return_std=True)[1]
    assert isinstance(loaded.model_.full_posterior(), ExactPosterior)
    again = pickle.loads(pickle.dumps(loaded)).predict(NEW, return_std=True)[1]
    assert (first == again).all()


@pytest.fixture(scope="module")
def on_two_trees(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("model") / "m"
    fitted(tl.GraphRegressor, VALUES, views=[tl.WLPatterns(trees=("structure", "labels"))]).save(
        path
    )
    return path


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("log_weights", lambda x: x + 500, "log_weights must be"),
        ("roots.1", lambda x: x + 1000, "roots of"),
        ("roots.1", lambda x: -1 - x, "roots of"),
        ("sample_weights", lambda x: 0 * x, "weights must be"),
        ("coefficients", lambda x: x[1:], "coefficients must have the shape"),
        ("target_offset", lambda x: np.r_[x, x], "target_offset must have the shape"),
        ("basis_indices", lambda x: x[1:], "coefficients must have"),
        ("left_out.std", lambda x: -x, "std must be"),
    ],
)
def test_arrays_that_do_not_fit_together(on_two_trees, name, change, message) -> None:
    refuse(on_two_trees, lambda r: r.set_array(name, change(r.array(name))), message)
