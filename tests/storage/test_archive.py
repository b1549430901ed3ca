"""The archive of a model file: what is no archive of ours is refused unread."""

from __future__ import annotations

import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from storage.conftest import (
    refuse,
)
from treelens.estimators.files import (
    ModelFileError,
    ModelFileNotFoundError,
    load,
)
from treelens.storage import archive


def test_what_is_not_a_model_file(tmp_path):
    with pytest.raises(ModelFileNotFoundError, match="not a model file that exists"):
        load(tmp_path / "none.treelens")
    with pytest.raises(FileNotFoundError):
        load(tmp_path)
    for content in (b"", b"hello", b"PK\x03\x04", pickle.dumps({"a": 1})):
        (tmp_path / "x").write_bytes(content)
        with pytest.raises(ModelFileError, match="cannot be read as a model file"):
            load(tmp_path / "x")


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


def test_texts_that_are_no_json(path):
    def with_text(text: bytes):
        def change(repacked):
            repacked.data, repacked.members[archive.MODEL] = None, text

        return change

    for text in (b"{", b"[" * 100_000, b"\xff"):
        refuse(path, with_text(text), "not valid JSON")
    refuse(path, with_text(b"[]"), "must be a JSON object, not a list")
