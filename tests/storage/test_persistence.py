"""Model files: exact, whole or absent, and harmless whatever they hold."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import treelens as tl
from storage.conftest import (
    GRAPHS,
    THREE,
    Repacked,
    Y,
    assert_same_predictions,
    fitted,
)
from treelens.estimators.files import (
    ModelFileError,
    load,
)
from treelens.graphs.collection import Graph
from treelens.kernels.table import KERNELS
from treelens.storage import archive


def saved_and_loaded(model, folder: Path):
    model.save(folder / "x.treelens")
    return load(folder / "x.treelens")


# --- what comes back ------------------------------------------------------------------------


@pytest.mark.parametrize("y", [Y, THREE], ids=["two", "three"])
@pytest.mark.parametrize("weight_radius", [0.0, 2.0], ids=["uniform", "learned"])
@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_predictions_are_the_same_to_the_last_bit(kernel, weight_radius, y, tmp_path):
    model = fitted(kernel, weight_radius, y)
    loaded = saved_and_loaded(model, tmp_path)
    assert_same_predictions(model, loaded)
    assert model.patterns_.equals(loaded.patterns_)


def test_all_that_was_found_in_fitting_comes_back(model, path):
    loaded = tl.load(path)
    assert loaded.best_params_ == model.best_params_
    assert loaded.learning_gain_ == model.learning_gain_
    assert loaded.offset_ == model.offset_
    assert loaded.cv_results_.scores == model.cv_results_.scores
    assert loaded.cv_results_.losses == model.cv_results_.losses
    assert loaded.cv_results_.best() == model.cv_results_.best()
    best = model.cv_results_.best()
    np.testing.assert_array_equal(
        loaded.cv_results_.decisions[best], model.cv_results_.decisions[best]
    )
    np.testing.assert_array_equal(loaded.train_codes_, model.train_codes_)
    np.testing.assert_array_equal(loaded.support_vectors_, model.support_vectors_)
    for name in ("offsets", "graphs", "counts", "level_offsets", "n_nodes", "unseen"):
        ours, theirs = (getattr(m.train_histograms_, name) for m in (model, loaded))
        np.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype


def test_the_learner_comes_back_with_its_record(tmp_path):
    solver = tl.ProjectedGradient(max_iter=50, tol=1.0)
    learner = tl.PairwiseWeights(solver=solver, margins=(0.6, 0.4))
    model = fitted(weight_radius=2.0, learner=learner)
    loaded = saved_and_loaded(model, tmp_path)
    assert repr(loaded.learner) == repr(learner)
    assert repr(loaded.learner_) == repr(model.learner_)
    assert loaded.learner_.solver.get_params() == solver.get_params()
    ours, theirs = model.learner_.result_, loaded.learner_.result_
    np.testing.assert_array_equal(ours.history, theirs.history)
    np.testing.assert_array_equal(ours.gaps, theirs.gaps)
    np.testing.assert_array_equal(loaded.learner_.history_, theirs.history)
    assert (ours.margins, ours.converged, ours.n_iter, ours.solver) == (
        theirs.margins, theirs.converged, theirs.n_iter, theirs.solver,
    )  # fmt: skip
    assert loaded.learner_.weights_ is loaded.weights_


@pytest.mark.parametrize(
    "learner",
    [{"solver": tl.StochasticGradient(n_checks=0, n_steps=500)},
     {"solver": "batch"}, {"min_support": 1000}],
    ids=["no checks", "a name", "nothing to learn"],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_whatever_a_solver_records_can_be_loaded(learner, tmp_path):
    model = fitted(learner=tl.PairwiseWeights(**learner), include_depth_zero=np.bool_(False))
    assert_same_predictions(model, saved_and_loaded(model, tmp_path))


def test_parameters_come_back_and_the_model_can_be_fitted_again(tmp_path):
    model = fitted(weight_radius=0.0, class_weight={1: 2.0, -1: 1.0},
                   kernel=("tanimoto", "wwl-linear"),
                   depth=np.array([1, 2]), scoring="balanced_accuracy", learner=None)  # fmt: skip
    loaded = saved_and_loaded(model, tmp_path)
    ours, theirs = model.get_params(deep=False), loaded.get_params(deep=False)
    np.testing.assert_array_equal(ours.pop("depth"), theirs.pop("depth"))
    assert ours == theirs
    assert_same_predictions(loaded.fit(GRAPHS, Y), model)


def test_settings_of_studies_in_files_of_before_are_not_forgotten(path, tmp_path):
    """A learner had more parameters: what a bound says still depends on them."""
    repacked = Repacked(path)
    repacked.data["learner"] |= {"constraint": "box", "preset": None, "n_epochs": None}
    box = load(repacked.write(tmp_path / "box.treelens"))
    assert box.model_.choice.learner["constraint"] == "box"
    assert box.generalization_bound()["gap"] is None
    assert load(path).generalization_bound()["gap"] is not None
    repacked.data["learner"] |= {"preset": "paper"}
    paper = load(repacked.write(tmp_path / "paper.treelens")).model_.choice.learner
    assert (paper["solver"], paper["step_size"], paper["constraint"]) == (
        "stochastic",
        1e-4,
        "ball",
    )
    repacked.data["learner"] |= {"constraint": "cone", "preset": None}
    with pytest.raises(ModelFileError, match="'learner': constraint must be one of"):
        load(repacked.write(tmp_path / "cone.treelens"))


def test_an_unfitted_model_cannot_be_saved(tmp_path):
    with pytest.raises(NotFittedError):
        tl.GraphSVC().save(tmp_path / "x.treelens")


# --- whole or not at all --------------------------------------------------------------------


def test_the_same_model_gives_the_same_bytes(model, path, tmp_path):
    load(path).save(tmp_path / "again.treelens")
    assert (tmp_path / "again.treelens").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError("No space left on device")])
def test_an_interrupted_save_leaves_the_old_file_and_nothing_else(
    model, path, tmp_path, monkeypatch, error
):
    before = path.read_bytes()
    real, calls = zipfile.ZipFile.writestr, []

    def breaks_off(*args, **kwargs):
        calls.append(args)
        if len(calls) == 4:
            raise error
        return real(*args, **kwargs)

    monkeypatch.setattr(zipfile.ZipFile, "writestr", breaks_off)
    with pytest.raises((KeyboardInterrupt, OSError)):
        model.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_places_that_cannot_be_written(model, tmp_path):
    with pytest.raises(IsADirectoryError, match="is a folder"):
        model.save(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"does not exist. Create it"):
        model.save(tmp_path / "no" / "model.treelens")
    with pytest.raises(OSError, match="is a device"):
        model.save("/dev/null")


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_folder_without_permission(model, tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError, match="no permission to write"):
        model.save(tmp_path / "model.treelens")


def test_a_link_is_written_through_and_modes_follow_the_umask(model, path, tmp_path):
    link = tmp_path / "link.treelens"
    link.symlink_to(path)
    model.save(link)
    assert link.is_symlink()
    (tmp_path / "ordinary").write_bytes(b"")
    assert path.stat().st_mode == (tmp_path / "ordinary").stat().st_mode


# --- files that are not right ---------------------------------------------------------------


def test_a_file_cut_off_anywhere(path, tmp_path):
    whole = path.read_bytes()
    for end in np.linspace(0, len(whole) - 1, 60).astype(int):
        (tmp_path / "cut").write_bytes(whole[:end])
        with pytest.raises(ModelFileError, match="cannot be read as a model file"):
            load(tmp_path / "cut")


def test_a_flipped_bit_anywhere_is_noticed_or_harmless(model, path, tmp_path):
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    n_noticed = 0
    for position in rng.integers(len(whole), size=300):
        damaged = bytearray(whole)
        damaged[position] ^= 1 << rng.integers(8)
        (tmp_path / "flipped").write_bytes(damaged)
        try:
            loaded = load(tmp_path / "flipped")
        except ModelFileError:
            n_noticed += 1
        else:  # a date, a mode: what no reader looks at
            assert_same_predictions(model, loaded)
    assert n_noticed > 250


def test_repacking_without_a_change_is_fine(model, path):
    assert_same_predictions(load(Repacked(path).write(path.with_name("same"))), model)


def test_later_versions_may_add_things(model, path):
    repacked = Repacked(path)
    repacked.manifest["more"] = 1
    repacked.data["more"] = {"$tuple": []}
    repacked.data["parameters"]["more"] = 1
    repacked.set_array("more", np.zeros(3))
    repacked.members["notes/more.txt"] = b"hello"
    assert_same_predictions(load(repacked.write(path.with_name("later"))), model)


# --- files of earlier versions --------------------------------------------------------------

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("name", [f"model-v{n}" for n in range(1, archive.FORMAT_VERSION + 1)])
def test_files_of_every_version_can_be_read(name):
    """The golden files were written once, by ``write_golden.py`` in their folder, and stay.

    In version 1 several classes were told one from the rest, which is what the last file holds.
    """
    model = load(GOLDEN / f"{name}.zip")
    known = json.loads((GOLDEN / f"{name}.json").read_text())
    graphs = tl.as_graph_collection(
        [Graph(tuple(g["labels"]), tuple(map(tuple, g["edges"]))) for g in known["graphs"]]
    )
    assert model.predict(graphs).tolist() == known["classes"]
    np.testing.assert_allclose(model.decision_function(graphs), known["decisions"], rtol=1e-9)
    np.testing.assert_allclose(model.predict_proba(graphs), known["probabilities"], rtol=1e-9)
    assert model.patterns_["pattern"].head(3).tolist() == known["patterns"]
    explained = [model.explain(graph) for graph in graphs]
    assert [e.predicted_class for e in explained] == known["classes"]
    margins = model.mean_margins(graphs)
    for explanation, row in zip(explained, margins, strict=True):
        column = model.classes_.tolist().index(explanation.class_label)
        assert explanation.decision == pytest.approx(row[column])
