"""Model files: exact, whole or absent, and harmless whatever they hold."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import StratifiedKFold

import treelens as tl
from treelens.estimators.files import (
    ModelFileError,
    ModelFileNotFoundError,
    load,
)
from treelens.graphs.collection import Graph
from treelens.kernels.table import KERNELS
from treelens.storage import archive

GRAPHS, Y = tl.make_synthetic(n_per_substructure=5, random_state=0)
OTHERS, _ = tl.make_synthetic(n_per_substructure=2, noise_nodes=(6, 9), random_state=1)
THREE = np.array(["a", "b", "c"])[np.arange(len(Y)) % 3]


def fitted(kernel="wwl", weight_radius=2.0, y=Y, graphs=GRAPHS, **more):
    settings = {"depth": 2, "gamma": 1.0, "C": 10.0, "cv": 2, "random_state": 0, **more}
    settings.setdefault("learner", tl.PairwiseWeights(solver=tl.QuasiNewton(tol=0.05)))
    return tl.GraphSVC(kernel, weight_radius=weight_radius, **settings).fit(graphs, y)


@pytest.fixture(scope="module")
def model():
    return fitted(weight_radius=[0.0, 2.0])


@pytest.fixture
def path(model, tmp_path):
    model.save(tmp_path / "model.treelens")
    return tmp_path / "model.treelens"


def assert_same_predictions(first, second, graphs=OTHERS):
    for method in ("decision_function", "predict_proba", "predict", "out_of_vocabulary"):
        left, right = getattr(first, method)(graphs), getattr(second, method)(graphs)
        assert left.dtype == right.dtype
        assert left.tobytes() == right.tobytes(), method


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


def test_parameters_without_a_plain_form_come_back_as_defaults(tmp_path):
    model = fitted(weight_radius=0.0, cv=StratifiedKFold(2), random_state=np.random.RandomState(0))
    loaded = saved_and_loaded(model, tmp_path)
    assert (loaded.cv, loaded.random_state) == (5, None)
    assert_same_predictions(model, loaded)


def test_edge_labels_and_leaving_out_depth_zero(mutag, tmp_path):
    graphs, y = mutag
    model = fitted("tanimoto", 0.0, y[:60], graphs[:60], include_depth_zero=False)
    loaded = saved_and_loaded(model, tmp_path)
    assert loaded.vocabulary_.uses_edge_labels
    assert loaded.train_histograms_.first_depth == 1
    assert_same_predictions(model, loaded, graphs[60:])
    assert model.patterns_.equals(loaded.patterns_)


def relabelled(labels):
    """The same graphs with other node labels, of which there are four."""
    return tl.as_graph_collection(
        [Graph(tuple(labels[x] for x in g.node_labels), g.edges) for g in GRAPHS]
    )


@pytest.mark.parametrize(
    "labels",
    [
        ["C", "Br", "ü\ud800", ""],
        [0, -5, 2**70, 7],
        [0.5, -0.0, 1e-300, float("inf")],
        [True, False, 2, 3],
        [("C", 1), ("C", 2, (0.5,)), (), ("C", True)],
        [np.int64(3), np.float32(0.1), np.str_("x"), np.bool_(True)],
        ["C", 1, 0.5, ("N", 1)],
    ],
    ids=["text", "integers", "floats", "booleans", "tuples", "numpy", "mixed"],
)
def test_labels_keep_value_and_kind(labels, tmp_path):
    graphs = relabelled(labels)
    model = fitted("wwl-linear", 0.0, graphs=graphs)
    loaded = saved_and_loaded(model, tmp_path)
    ours, theirs = model.vocabulary_.node_alphabet, loaded.vocabulary_.node_alphabet
    assert ours == theirs
    assert [type(x) for x in ours] == [type(x) for x in theirs]
    assert_same_predictions(model, loaded, graphs)


@pytest.mark.parametrize("label", [frozenset("C"), b"C", 1j, Path("C")])
def test_labels_of_other_kinds_are_an_error_that_names_them(label, tmp_path):
    model = fitted("wwl-linear", 0.0, graphs=relabelled(["N", "O", label, "S"]))
    with pytest.raises(TypeError, match=r"node label .* cannot be kept in a file.*expected int"):
        model.save(tmp_path / "x.treelens")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "classes",
    [np.array([3, 9], np.int8), np.array([1.0, 2.0]), np.array([False, True]),
     np.array(["no", "yes, sure"]), np.array(["no", "yes"], dtype=object)],
    ids=lambda x: str(x.dtype),
)  # fmt: skip
def test_classes_keep_their_type(classes, tmp_path):
    model = fitted("wwl-linear", 0.0, classes[(Y > 0).astype(int)])
    loaded = saved_and_loaded(model, tmp_path)
    assert loaded.classes_.dtype == model.classes_.dtype
    assert loaded.predict(GRAPHS).tolist() == model.predict(GRAPHS).tolist()


def test_a_foreign_learner_is_an_error(tmp_path):
    class Own(tl.PairwiseWeights):
        pass

    with pytest.raises(TypeError, match="its learner is a Own"):
        fitted(learner=Own()).save(tmp_path / "x.treelens")


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


def test_what_is_not_a_model_file(tmp_path):
    with pytest.raises(ModelFileNotFoundError, match="not a model file that exists"):
        load(tmp_path / "none.treelens")
    with pytest.raises(FileNotFoundError):
        load(tmp_path)
    for content in (b"", b"hello", b"PK\x03\x04", pickle.dumps({"a": 1})):
        (tmp_path / "x").write_bytes(content)
        with pytest.raises(ModelFileError, match="cannot be read as a model file"):
            load(tmp_path / "x")


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


class Repacked:
    """A model file taken apart, changed by a test, and packed with checksums that fit."""

    def __init__(self, path: Path) -> None:
        with zipfile.ZipFile(path) as file:
            self.members = {name: file.read(name) for name in file.namelist()}
        self.manifest = json.loads(self.members.pop(archive.MANIFEST))
        self.data = json.loads(self.members.pop(archive.MODEL))
        self.extra: list[tuple[zipfile.ZipInfo, bytes]] = []

    def array(self, name: str) -> np.ndarray:
        return np.load(io.BytesIO(self.members[f"arrays/{name}.npy"]))

    def set_array(self, name: str, array: np.ndarray, allow_pickle: bool = False) -> None:
        file = io.BytesIO()
        np.save(file, array, allow_pickle=allow_pickle)
        self.members[f"arrays/{name}.npy"] = file.getvalue()

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


class Trap:
    """Unpickling this makes a folder, which a test can see."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_an_object_array_is_refused_and_not_unpickled(path, tmp_path):
    trap = np.array([Trap(tmp_path / "sprung")], dtype=object)
    refuse(path, lambda r: r.set_array("intercepts", trap, allow_pickle=True), "'|O'.*only numbers")
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    ("version", "message"),
    [(4, "format version 4, written by treelens .*Upgrade"), (0, "no valid format version"),
     ("1", "no valid format version"), (None, "no valid"), (True, "no valid"), (1.0, "no valid")],
)  # fmt: skip
def test_versions_that_are_not_known(path, version, message):
    refuse(path, lambda r: r.manifest.update(format_version=version), message)


def named(name: str, **more) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    for key, value in more.items():
        setattr(info, key, value)
    return info


@pytest.mark.parametrize(
    ("info", "message"),
    [(named("../climbs"), "leads out"), (named("/absolute"), "leads out"),
     (named("C:\\disk"), "leads out"), (named("a/../../b"), "leads out"),
     (named("arrays/unlisted.npy"), "does not list: it was altered"),
     (named("x", compress_type=zipfile.ZIP_BZIP2), "compressed in a way")],
)  # fmt: skip
def test_members_that_should_not_be_there(path, info, message):
    refuse(path, lambda r: r.extra.append((info, b"x")), message)


def test_a_member_twice(path):
    with pytest.warns(UserWarning, match="Duplicate name"):
        refuse(path, lambda r: r.extra.append((named(archive.MODEL), b"{}")), "is there twice")


def test_a_bomb_is_not_unpacked(path, monkeypatch):
    def bomb(repacked):
        repacked.members["arrays/bomb.npy"] = bytes(40 * 2**20)

    refuse(path, bomb, "would unpack to an absurd")
    monkeypatch.setattr(archive, "MAX_UNPACKED_BYTES", 1000)
    with pytest.raises(ModelFileError, match="would unpack to an absurd"):
        load(path)
    monkeypatch.setattr(archive, "MAX_MEMBERS", 3)
    with pytest.raises(ModelFileError, match="members, a model at most 3"):
        load(path)


def test_an_altered_member_without_its_checksum(path):
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    members["arrays/weights.npy"] = members["arrays/weights.npy"][:-1] + b"\x00"
    bad = path.with_name("bad")
    with zipfile.ZipFile(bad, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)
    with pytest.raises(ModelFileError, match=r"arrays/weights.npy: the checksum differs"):
        load(bad)
    del members["arrays/weights.npy"]
    with zipfile.ZipFile(bad, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)
    with pytest.raises(ModelFileError, match=r"lacks its member 'arrays/weights.npy'"):
        load(bad)


def header(descr: str, shape: str) -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize(
    ("content", "message"),
    [(header("'<f8'", "(1000000000000,)"), r"claims the shape \(1000000000000,\)"),
     (header("'<f8'", "(-1,)"), "no array of a model has"),
     (header("'<f8'", "(1, 1, 1)"), "no array of a model has"),
     (header("'<f8'", "(0, 10000000000000000000000000000)"), "no array of a model has"),
     (header("'<f8'", "(1,)" + " " * 2000) + bytes(8), "no array of a model has"),
     (header("'<U100000000000'", "(1,)"), "only numbers"),
     (header("'<f8'", "__import__('os').getcwd()"), "cannot be read"),
     (header("[('a', '<f8')]", "(1,)") + bytes(8), "only numbers"),
     (header("'>f8'", "(1,)") + bytes(8), "only numbers"),
     (header("'<f8'", "(2,)") + bytes(8), "claims the shape"),
     (b"\x93NUMPY\x01\x00", "not an array in the .npy format"),
     (b"\x93NUMPY\x03\x00" + bytes(20), "not an array in the .npy format"),
     (b"", "not an array in the .npy format")],
)  # fmt: skip
def test_arrays_that_lie_about_themselves(path, content, message):
    refuse(path, lambda r: r.members.update({"arrays/intercepts.npy": content}), message)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [("weights", lambda x: x[:-1], "should have shape"),
     ("weights", lambda x: x.astype(np.int64), "should be of type float64, not int64"),
     ("weights", lambda x: np.where(x == x[0], np.nan, x), "infinities or NaN"),
     ("coefficients", lambda x: x.T.copy(), "should have shape"),
     ("coefficients", lambda x: x * np.inf, "infinities or NaN"),
     ("level_1_own", lambda x: x + 100, "'level_1_own' should hold numbers from 0 to 3"),
     ("level_2_child_keys", lambda x: x - 1, "'level_2_child_keys' should hold numbers"),
     ("level_1_child_offsets", lambda x: x[::-1].copy(), "should ascend from 0"),
     ("level_1_child_offsets", lambda x: x + 1, "should ascend from 0"),
     ("level_1_child_offsets", lambda x: np.r_[0, 2**63 - 1, -(2**63), x[3:]], "ascend from 0"),
     ("train_graphs", lambda x: x + 1, "'train_graphs' should hold numbers from 0 to 39"),
     ("train_graphs", lambda x: x[::-1].copy(), "should ascend within a pattern"),
     ("train_offsets", lambda x: x[:-1], "should have shape"),
     ("train_counts", lambda x: x - 1, "'train_counts' should hold numbers from 1"),
     ("train_counts", lambda x: x + 1, "'train_counts' should add up to 'train_n_nodes'"),
     ("train_unseen", lambda x: x + 1, "'train_counts' should add up to 'train_n_nodes'"),
     ("train_n_nodes", lambda x: x[:-1], "train_graphs"),
     ("weights", lambda x: x - 10, "should hold numbers from 0 to 1e"),
     ("weights", lambda x: x * 1e300, "should hold numbers from 0 to 1e"),
     ("support_diagonal", lambda x: x * 0.5, "'support_diagonal' is below what the patterns"),
     ("calibration_intercepts", lambda x: x * np.nan, "infinities or NaN"),
     ("train_codes", lambda x: x + 1, "should hold numbers from 0 to 1"),
     ("support", lambda x: x + 1000, "should hold numbers"),
     ("support", lambda x: x[::-1].copy(), "should ascend"),
     ("search_scores", lambda x: x[1:], "should have shape")],
)  # fmt: skip
def test_arrays_that_do_not_fit_together(path, name, change, message):
    refuse(path, lambda r: r.set_array(name, change(r.array(name))), message)


def test_patterns_that_are_all_alike(path):
    """A table of ten thousand equal patterns would be searched from end to end."""

    def alike(repacked):
        repacked.set_array("level_1_own", np.zeros(10_000, dtype=np.int32))
        repacked.set_array("level_1_child_offsets", np.zeros(10_001, dtype=np.int64))
        repacked.set_array("level_1_child_keys", np.zeros(0, dtype=np.int64))

    refuse(path, alike, "the patterns of 'level_1' should differ from each other")


@pytest.mark.parametrize("kernel", ["wl-oa", "wl-subtree"])
def test_cuts_of_unary_features_that_no_loop_could_follow(tmp_path, kernel):
    model = fitted(kernel, 0.0, approximation="unary", learner=None)
    path = tmp_path / "unary.treelens"
    model.save(path)

    def turned(repacked):
        repacked.set_array("thresholds", repacked.array("thresholds")[::-1].copy())

    def bunched(repacked):
        offsets = repacked.array("threshold_offsets")
        offsets[1:-1] = 0
        repacked.set_array("threshold_offsets", offsets)

    if kernel == "wl-oa":
        refuse(path, turned, "'thresholds' should ascend within a pattern")
        refuse(path, bunched, "'thresholds' should ascend within a pattern")
    else:
        refuse(path, bunched, "'threshold_offsets' should give every pattern one entry")
    refuse(path, within("choice", kernel="wwl", gamma=1.0), "no features for the kernel")


def test_a_path_of_too_many_steps_is_not_walked(tmp_path):
    """At such a gamma, random bins change ten billion times on the way to one decision."""
    path = tmp_path / "bins.treelens"
    fitted("laplacian", 0.0, approximation="random-binning", n_components=16, learner=None).save(
        path
    )
    repacked = Repacked(path)
    repacked.data["choice"]["gamma"] = 1e13
    steep = load(repacked.write(path.with_name("steep.treelens")))
    assert np.isfinite(steep.decision_function(OTHERS)).all()
    with pytest.raises(ValueError, match=r"cannot be explained: at gamma=1e\+13 its path"):
        steep.explain(OTHERS[0])


def test_decisions_that_are_no_numbers_are_an_error(model):
    broken = copy.deepcopy(model)
    broken.weights_[:] = broken.learner_.weights_[:] = 1e90
    broken.best_params_["gamma"] = 1e90
    with (
        np.errstate(all="ignore"),
        pytest.raises(ValueError, match="decision value of graph 0 is not a finite number"),
    ):
        broken.predict(OTHERS)


def put(**entries):
    return lambda r: r.data.update(entries)


def within(name, **entries):
    return lambda r: r.data[name].update(entries)


@pytest.mark.parametrize(
    ("change", "message"),
    [(lambda r: r.members.pop("arrays/support.npy"), "the array 'support' is missing"),
     (lambda r: r.data.pop("classes"), "'classes' is missing"),
     (put(classes=[1, 2]), "'classes' should be ndarray, not list"),
     (put(classes={"$array": ["int64", [1]]}), "should hold two or more"),
     (put(classes={"$array": ["O", [1, 2]]}), "cannot be read"),
     (put(classes={"$array": ["object", 5]}), "cannot be read"),
     (put(classes={"$pickle": "x"}), "has no meaning"),
     (put(depth="2"), "'depth' should be int, not str"),
     (put(depth=5), "'level_3_own' is missing"),
     (put(first_depth=9), "'first_depth' should be 0 to 2"),
     (put(node_alphabet=[{"a": 1}, 1, 2, 3]), "which no label can be"),
     (put(choice={}), "names the kernel 'None'"),
     (put(choice={"kernel": "wwl-linear", "depth": 1}), "a depth that is not"),
     (put(choice={"kernel": "wwl", "depth": 2, "weight_radius": 0, "C": 1}),
      "'gamma' in 'choice' should be a number"),
     (put(offset="1"), "'offset' should be float"),
     (put(learning_result={}), "'learning_result' is not complete"),
     (put(search={"candidates": [[1]]}), "'search' is not complete"),
     (put(parameters=[]), "'parameters' should be dict"),
     (put(classes={"$array": ["str", ["", "x" * 10**6, *("y" for _ in range(10**5))]]}),
      "100002 texts of up to 1000000 letters are too many"),
     (put(classes={"$array": ["int64", [2, 1]]}), "'classes' should ascend"),
     (put(classes={"$array": ["float64", [1.0, {"$float": "nan"}]]}), "'classes' should ascend"),
     (put(node_alphabet=[0, 1, 2, 2]), "'node_alphabet' should hold different labels"),
     (put(offset={"$float": "nan"}), "'offset' should be a number"),
     (put(recipe={"reader": 3}), "'recipe': 'reader' should be a text"),
     (put(recipe={"hydrogens": "yes"}), "'recipe': 'hydrogens' should be true, false or null"),
     (within("parameters", n_jobs=100_000), "'n_jobs' in 'parameters' should be a whole number"),
     (within("parameters", n_jobs=0), "'n_jobs' in 'parameters' should not be 0"),
     (within("parameters", scoring="luck"), "'parameters': The 'scoring' parameter of GraphSVC"),
     (within("search", n_splits={"$float": "inf"}), "'n_splits' in 'search' should be a whole"),
     (within("search", n_scores=[2**63 - 1, 2**63 - 1]), "'n_scores' in 'search' should be"),
     (within("choice", gamma={"$float": "nan"}), "'gamma' in 'choice' should be a number above 0"),
     (lambda r: r.manifest.update(format="other"), "is no treelens model")],
)  # fmt: skip
def test_entries_that_are_missing_or_wrong(path, change, message):
    refuse(path, change, message)


def test_texts_that_are_no_json(path):
    def with_text(text: bytes):
        def change(repacked):
            repacked.data, repacked.members[archive.MODEL] = None, text

        return change

    for text in (b"{", b"[" * 100_000, b"\xff"):
        refuse(path, with_text(text), "not valid JSON")
    refuse(path, with_text(b"[]"), "must be a JSON object, not a list")


# --- files of earlier versions --------------------------------------------------------------

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize(
    "name", [*(f"model-v{n}" for n in range(1, archive.FORMAT_VERSION + 1)), "one-against-rest-v1"]
)
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
