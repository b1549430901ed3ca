"""Model files of Gaussian processes: what was saved comes back, to the last bit."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import treelens as tl
from strategies import random_collection
from treelens.estimators.files import ModelFileError
from treelens.gp.posterior import ExactPosterior, MeanPosterior
from treelens.graphs.collection import Graph
from treelens.storage import files
from treelens.storage.archive import read_archive

RNG = np.random.default_rng(0)
GRAPHS = random_collection(RNG, 60)
VALUES = RNG.normal(size=60)
TWO, THREE = (np.array(["a", "b", "c"])[np.arange(60) % n] for n in (2, 3))
TRUST = RNG.uniform(0.5, 2.0, 40)
NEW = GRAPHS[40:]


def fitted(kind: Any, y: np.ndarray, sample_weight: Any = None, **settings: Any) -> Any:
    model = kind(depth=2, random_state=0, progress=False, **settings)
    return model.fit(GRAPHS[:40], y[:40], sample_weight)


MAKERS = {
    "numbers": lambda: fitted(tl.GraphRegressor, VALUES),
    "weighted numbers": lambda: fitted(tl.GraphRegressor, VALUES, TRUST),
    "numbers on landmarks": lambda: fitted(
        tl.GraphRegressor, VALUES, learning_size=30, exact_size=30, n_landmarks=20
    ),
    "depths of one tree": lambda: tl.GraphRegressor(2, "depths", trees=("labels",)).fit(
        GRAPHS[:40], VALUES[:40]
    ),
    "two classes": lambda: fitted(tl.GraphClassifier, TWO, class_weight={"a": 1.0, "b": 3.0}),
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


def test_so_is_everything_else_that_a_fit_leaves(pair: Any) -> None:
    model, loaded = pair
    pd.testing.assert_frame_equal(loaded.patterns_, model.patterns_, check_exact=True)
    pd.testing.assert_frame_equal(loaded.history_, model.history_, check_exact=True)
    for name in ("evidence_", "converged_", "learning_gain_", "recipe_"):
        assert getattr(loaded, name) == getattr(model, name), name
    assert (loaded.weights_ == model.weights_).all()
    assert loaded.get_params() == model.get_params()
    for name, value in vars(model.loo_).items():
        np.testing.assert_array_equal(getattr(loaded.loo_, name), value, err_msg=name)
    assert (loaded.model_.basis_indices == model.model_.basis_indices).all()
    assert (loaded.model_.weighted.forest.parents == model.model_.weighted.forest.parents).all()


def test_explanations_too(pair: Any) -> None:
    model, loaded = pair
    ours, theirs = model.explain(NEW[3]), loaded.explain(NEW[3])
    assert theirs.decision == ours.decision
    assert (theirs.node_contributions == ours.node_contributions).all()
    pd.testing.assert_frame_equal(theirs.pattern_contributions, ours.pattern_contributions)


def test_a_loaded_model_saved_again_gives_the_same_bytes(pair: Any, tmp_path: Path) -> None:
    model, loaded = pair
    for name, one in (("a", model), ("b", loaded)):
        one.save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_the_factor_is_left_out_and_computed_when_it_is_needed(tmp_path: Path) -> None:
    fitted(tl.GraphRegressor, VALUES).save(tmp_path / "m")
    shapes = {x.shape for x in read_archive(tmp_path / "m").arrays.values()}
    assert not {(40, 40), (40 * 41 // 2,)} & shapes
    loaded = tl.load(tmp_path / "m")
    loaded.predict(NEW)
    assert isinstance(loaded.model_.posterior, MeanPosterior)
    first = loaded.predict(NEW, return_std=True)[1]
    assert isinstance(loaded.model_.posterior, ExactPosterior)
    again = pickle.loads(pickle.dumps(loaded)).predict(NEW, return_std=True)[1]
    assert (first == again).all()


def test_molecules_are_read_as_those_of_training_were(tmp_path: Path) -> None:
    pytest.importorskip("rdkit")
    from treelens.graphs.molecules import smiles_to_collection

    texts = [f"{'C' * n}{end}" for n in range(1, 9) for end in ("O", "N", "[NH3+]")]
    graphs = smiles_to_collection(texts, atom_label="element+charge")
    model = tl.GraphRegressor(depth=1, trees=("labels", "fine")).fit(graphs, np.arange(24.0))
    model.save(tmp_path / "m")
    loaded = tl.load(tmp_path / "m")
    assert loaded.model_.weighted.forest.trees == ("labels", "fine")
    assert (loaded.predict(["CC[NH3+]", "CCCCO"]) == model.predict(["CC[NH3+]", "CCCCO"])).all()


def test_what_a_failed_save_finds_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = fitted(tl.GraphClassifier, TWO)
    model.save(tmp_path / "m")
    before = (tmp_path / "m").read_bytes()

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        model.save(tmp_path / "m")
    assert (tmp_path / "m").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def test_an_unfitted_model_cannot_be_saved(tmp_path: Path) -> None:
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        tl.GraphRegressor().save(tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_a_kind_of_a_later_version_is_told(tmp_path: Path) -> None:
    from treelens.storage.archive import write_archive

    fitted(tl.GraphClassifier, TWO).save(tmp_path / "m")
    contents = read_archive(tmp_path / "m")
    contents.data["model"] = "oracle"
    write_archive(tmp_path / "m", contents, tl.__version__)
    with pytest.raises(ModelFileError, match="'oracle'"):
        tl.load(tmp_path / "m")


# --- files of earlier versions --------------------------------------------------------------

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("kind", ["regressor", "classifier"])
def test_files_that_were_written_before_can_be_read(kind: str) -> None:
    """Written once, by ``write_golden.py`` in their folder; they stay."""
    model: Any = tl.load(GOLDEN / f"{kind}-v2.zip")
    known = json.loads((GOLDEN / f"{kind}-v2.json").read_text())
    graphs = tl.as_graph_collection(
        [Graph(tuple(g["labels"]), tuple(map(tuple, g["edges"]))) for g in known["graphs"]]
    )
    if kind == "regressor":
        mean, std = model.predict(graphs, return_std=True)
        np.testing.assert_allclose(mean, known["predictions"], rtol=1e-9)
        np.testing.assert_allclose(std, known["std"], rtol=1e-9)
    else:
        assert model.predict(graphs).tolist() == known["predictions"]
        np.testing.assert_allclose(model.predict_proba(graphs), known["probabilities"], rtol=1e-9)
    assert model.patterns_["pattern"].head(3).tolist() == known["patterns"]
    assert model.learning_gain_.sentence == known["gain"]
