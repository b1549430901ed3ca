"""The archive of a model file: sizes, names, checksums and headers are checked before use."""

import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from storage.conftest import Repacked, refuse
from treelens.estimators.base import load
from treelens.storage import files as archive
from treelens.storage.files import ModelFileError


def test_what_is_not_a_model_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.treelens")
    with pytest.raises(ModelFileError, match="is a folder"):
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
    refuse(
        path,
        lambda r: r.set_array("intercepts", trap, allow_pickle=True),
        "not an array of numbers",
    )
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("version", [2, 0, "1", None, True, 1.0, -1])
def test_other_versions(path, version):
    refuse(path, lambda r: r.manifest.update(format_version=version), "format version .*this tree")


def test_members_that_should_not_be_there(path):
    def add(name: str):
        return lambda r: r.extra.append((zipfile.ZipInfo(name), b"x"))

    for name in ("../climbs", "arrays/unlisted.npy"):
        refuse(path, add(name), "was altered")
    with pytest.warns(UserWarning, match="Duplicate name"):
        refuse(path, add(archive.MODEL), "a member twice")
    refuse(path, lambda r: r.members.update({"more.txt": b"x"}), "not an array of numbers")


def test_a_zip_bomb_is_not_unpacked(path, monkeypatch):
    repacked = Repacked(path)
    repacked.members["arrays/bomb.npy"] = bytes(40 * 2**20)
    bomb = repacked.write(path.with_name("bomb"))
    monkeypatch.setattr(zipfile.ZipFile, "read", None)  # an error if anything is unpacked
    with pytest.raises(ModelFileError, match="would unpack to"):
        load(bomb)
    for name in ("MAX_UNPACKED_BYTES", "MAX_JSON_BYTES"):
        monkeypatch.setattr(archive, name, 10)
        with pytest.raises(ModelFileError, match="would unpack to"):
            load(path)
        monkeypatch.undo()


@pytest.mark.parametrize("change", ["altered", "missing"])
def test_an_altered_member_without_its_checksum(path, change):
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    name = next(name for name in members if name.endswith("weights.npy"))
    members[name] = members[name][:-1] + b"\x00"
    if change == "missing":
        del members[name]
    with zipfile.ZipFile(path, "w") as file:
        for member, content in members.items():
            file.writestr(member, content)
    with pytest.raises(ModelFileError, match="checksum differs" if change == "altered" else "sha"):
        load(path)


def header(descr: str, shape: str) -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize(
    "content",
    [header("'<f8'", "(1000000000000,)"), header("'<f8'", "(-1,)"), header("'<f8'", "(-1, -1)"),
     header("'<f8'", "(1, 1, 1)"), header("'<f8'", "(0, 10000000000000000000000000000)"),
     header("'<f8'", "(1,)" + " " * 2000) + bytes(8), header("'<U100000000000'", "(1,)"),
     header("'<f8'", "(True,)") + bytes(8), header("'<f8'", "__import__('os').getcwd()"),
     header("[('a', '<f8')]", "(1,)") + bytes(8), header("'>f8'", "(1,)") + bytes(8),
     header("'<f8'", "(2,)") + bytes(8), header("'<f8'", "((("), header("'<f8", "(1,)"),
     b"\x93NUMPY\x01\x00", b"\x93NUMPY\x03\x00" + bytes(20), b""],
)  # fmt: skip
def test_damaged_arrays(path, content):
    message = "not an array of numbers"
    refuse(path, lambda r: r.members.update({r.member("intercepts"): content}), message)


@pytest.mark.parametrize(
    ("text", "message"),
    [(b"{", "not valid JSON"), (b"[" * 100_000, "not valid JSON"), (b"\xff", "not valid JSON"),
     (b'{"a": NaN}', "not valid JSON"), (b"[]", "must be a JSON object, not a list"),
     (b'{"model": ' + b"[" * 900 + b"]" * 900 + b"}", "altered")],
)  # fmt: skip
def test_damaged_json(path, text, message):
    refuse(path, lambda r: r.members.update({archive.MODEL: text}), message)
