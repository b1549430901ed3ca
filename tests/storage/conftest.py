"""A small model in a file, and helpers to change such files."""

import hashlib
import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

import treelens as tl
from treelens.estimators.model_files import load
from treelens.storage import files as archive
from treelens.storage.files import ModelFileError

GRAPHS, Y = tl.make_synthetic(n_per_substructure=5, random_state=0)
OTHERS, _ = tl.make_synthetic(n_per_substructure=2, noise_nodes=(6, 9), random_state=1)
THREE = np.array(["a", "b", "c"])[np.arange(len(Y)) % 3]


def fitted(kernel="wwl", weight_radius=2.0, y=Y, graphs=GRAPHS, **more):
    settings = {"depth": 2, "gamma": 1.0, "C": 10.0, "cv": 2, "random_state": 0, **more}
    settings.setdefault("learner", tl.PairwiseWeights(solver=tl.QuasiNewton(tol=0.05)))
    return tl.GraphSVC(kernel, weight_radius=weight_radius, **settings).fit(graphs, y)


@pytest.fixture(scope="session")
def model():
    return fitted(weight_radius=[0.0, 2.0])


@pytest.fixture
def path(model, tmp_path):
    model.save(tmp_path / "model.treelens")
    return tmp_path / "model.treelens"


def reloaded(model, folder: Path):
    model.save(folder / "x.treelens")
    return load(folder / "x.treelens")


def assert_same_predictions(first, second, graphs=OTHERS):
    for method in ("decision_function", "predict_proba", "predict", "out_of_vocabulary"):
        left, right = getattr(first, method)(graphs), getattr(second, method)(graphs)
        assert left.dtype == right.dtype
        assert left.tobytes() == right.tobytes(), method


class Repacked:
    """A model file taken apart, changed by a test, and packed with checksums that fit."""

    def __init__(self, path: Path) -> None:
        with zipfile.ZipFile(path) as file:
            self.members = {name: file.read(name) for name in file.namelist()}
        self.manifest = json.loads(self.members.pop(archive.MANIFEST))
        self.data = json.loads(self.members.pop(archive.MODEL))
        self.extra: list[tuple[zipfile.ZipInfo, bytes]] = []

    def member(self, ending: str) -> str:
        """The first array whose name ends so."""
        return next(name for name in self.members if name.endswith(f"{ending}.npy"))

    def array(self, ending: str) -> np.ndarray:
        return np.load(io.BytesIO(self.members[self.member(ending)]))

    def set_array(self, ending: str, array: np.ndarray, allow_pickle: bool = False) -> None:
        file = io.BytesIO()
        np.save(file, array, allow_pickle=allow_pickle)
        self.members[self.member(ending)] = file.getvalue()

    def write(self, path: Path) -> Path:
        members = {archive.MODEL: json.dumps(self.data).encode(), **self.members}
        self.manifest["sha256"] = {k: hashlib.sha256(x).hexdigest() for k, x in members.items()}
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr(archive.MANIFEST, json.dumps(self.manifest))
            for name, content in members.items():
                file.writestr(name, content)
            for info, content in self.extra:
                file.writestr(info, content)
        return path


def refuse(path: Path, change, message: str) -> None:
    repacked = Repacked(path)
    change(repacked)
    bad = repacked.write(path.with_name("bad.treelens"))
    with pytest.raises(ModelFileError, match=message) as caught:
        load(bad)
    assert str(bad) in str(caught.value)
