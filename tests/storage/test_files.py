"""Files written whole or not at all, never over an input; harmless CSV; the archive of a model."""

import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from storage.conftest import Repacked, refuse
from treelens.estimators.model_files import load
from treelens.storage import files as archive
from treelens.storage.files import ModelFileError, checked_target, csv_text, harmless, whole_file


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, SystemExit])
def test_an_exception_removes_the_temporary_file_and_leaves_the_old_one(tmp_path, error):
    target = tmp_path / "model"
    target.write_bytes(b"before")
    with pytest.raises(error), whole_file(target) as file:  # noqa: PT012
        file.write(b"half of it")
        assert len(list(tmp_path.iterdir())) == 2
        raise error
    assert list(tmp_path.iterdir()) == [target]
    assert target.read_bytes() == b"before"


@pytest.mark.parametrize("name", ["fsync", "replace"])
def test_so_does_a_failure_at_the_end(tmp_path, monkeypatch, name):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(f"treelens.storage.files.os.{name}", full)
    with pytest.raises(OSError, match="No space"), whole_file(tmp_path / "model") as file:
        file.write(b"all of it")
    assert not list(tmp_path.iterdir())


def test_two_that_write_the_same_file_at_once(tmp_path):
    target = tmp_path / "model"
    with whole_file(target) as one, whole_file(target) as other:
        one.write(b"one")
        other.write(b"two")
    assert target.read_bytes() in (b"one", b"two")
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("name", ["ü" * 120, "x" * 250, "a[b]*?"])
def test_any_name_that_the_system_allows(tmp_path, name):
    for content in (b"one", b"two"):
        with whole_file(tmp_path / name) as file:
            file.write(content)
    assert (tmp_path / name).read_bytes() == b"two"


def test_places_that_cannot_be_written(tmp_path):
    with pytest.raises(IsADirectoryError, match="is a folder"):
        checked_target(tmp_path)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        checked_target(tmp_path / "no" / "model.treelens")
    with pytest.raises(OSError, match="is a device"):
        checked_target("/dev/null")
    if os.geteuid() != 0:  # the superuser may write anywhere
        tmp_path.chmod(0o500)
        with pytest.raises(PermissionError, match="no permission to write"):
            checked_target(tmp_path / "model.treelens")


def test_a_link_is_written_through_and_modes_follow_the_umask(tmp_path):
    target, link, ordinary = (tmp_path / name for name in ("model", "link", "ordinary"))
    target.touch()
    ordinary.touch()
    link.symlink_to(target)
    with whole_file(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert target.stat().st_mode == ordinary.stat().st_mode


@pytest.mark.parametrize("link", ["itself", "symlink", "hardlink", "roundabout"])
def test_an_input_is_not_written_over(tmp_path, link):
    source, target = tmp_path / "data.csv", tmp_path / "out.csv"
    source.write_text("data")
    if link in ("symlink", "hardlink"):
        getattr(target, f"{link}_to")(source)
    else:
        target = source if link == "itself" else tmp_path / ".." / tmp_path.name / "data.csv"
    with pytest.raises(ValueError, match=r"the same file as .*data\.csv"):
        checked_target(target, reads=["MUTAG", source])
    assert checked_target(tmp_path / "new.csv", reads=[source, tmp_path / "gone"]).name == "new.csv"


FORMULAS = [
    "=1+1",
    "+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "  =1",
    "\u00a0@a",
    "-",
    "+",
    "-1e5x",
    "--1",
    "+-1",
]


@pytest.mark.parametrize("text", FORMULAS)
def test_text_that_begins_like_a_formula_is_marked(text):
    assert harmless(text) == "'" + text


@pytest.mark.parametrize(
    "text",
    [
        "CCO",
        "[Na+].[Cl-]",
        "C=C",
        "-1",
        "+1",
        "-0.5",
        "+1.5e-3",
        ".5",
        "",
        "a-b",
        "'quoted",
        " C=C",
        "\u200b",
        "ü=1",
        -1.5,
        None,
        3,
    ],
)
def test_numbers_smiles_and_other_text_stay(text):
    assert harmless(text) is text


def test_columns_and_lone_surrogates():
    texts = np.array(["a\udc80"], dtype=object)  # PyArrow, where it is installed, has no such text
    table = pd.DataFrame({"=1": pd.Series(texts, ["@x"], object)})
    table.index.name = "id"
    assert csv_text(table, index=True) == "id,'=1\n'@x,a\\udc80\n"


# --- the archive: sizes, names, checksums and headers are checked before use ---------------------


def test_what_is_not_a_model_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.treelens")
    with pytest.raises(
        ModelFileError, match="is a folder: give the path of one that 'treelens fit'"
    ):
        load(tmp_path)
    for content in (b"", b"hello", b"PK\x03\x04", pickle.dumps({"a": 1})):
        (tmp_path / "x").write_bytes(content)
        found = "cannot be read as a model file" if content else "x is empty"
        with pytest.raises(
            ModelFileError, match=f"{found}: it is cut off, damaged, or not written"
        ):
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


@pytest.mark.parametrize("version", [1, 3, 0, "2", None, True, 1.0, -1])
def test_other_versions(path, version):
    refuse(path, lambda r: r.manifest.update(format_version=version), "format version .*this tree")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_damage_in_what_another_method_has_packed(path, method):
    """A model file is packed by one method, and a forged one may be packed by any."""
    forged = path.with_name("bad.treelens")
    with zipfile.ZipFile(path) as file, zipfile.ZipFile(forged, "w", method) as other:
        for name in file.namelist():
            other.writestr(name, file.read(name))
    data = forged.read_bytes()
    load(forged)
    for place in range(60, 110):  # in the first member
        forged.write_bytes(data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :])
        with pytest.raises(ModelFileError, match="cannot be read as a model file"):
            load(forged)


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
    [
        header("'<f8'", "(1000000000000,)"),
        header("'<f8'", "(-1,)"),
        header("'<f8'", "(-1, -1)"),
        header("'<f8'", "(1, 1, 1)"),
        header("'<f8'", "(0, 10000000000000000000000000000)"),
        header("'<f8'", "(1,)" + " " * 2000) + bytes(8),
        header("'<U100000000000'", "(1,)"),
        header("'<f8'", "(True,)") + bytes(8),
        header("'<f8'", "__import__('os').getcwd()"),
        header("[('a', '<f8')]", "(1,)") + bytes(8),
        header("'>f8'", "(1,)") + bytes(8),
        header("'<f8'", "(2,)") + bytes(8),
        header("'<f8'", "((("),
        header("'<f8", "(1,)"),
        b"\x93NUMPY\x01\x00",
        b"\x93NUMPY\x03\x00" + bytes(20),
        b"",
    ],
)
def test_damaged_arrays(path, content):
    message = "not an array of numbers"
    refuse(path, lambda r: r.members.update({r.member("intercepts"): content}), message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"{", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b"\xff", "not valid JSON"),
        (b'{"a": NaN}', "not valid JSON"),
        (b"[]", "must be a JSON object, not a list"),
        (b'{"model": ' + b"[" * 900 + b"]" * 900 + b"}", "altered"),
    ],
)
def test_damaged_json(path, text, message):
    refuse(path, lambda r: r.members.update({archive.MODEL: text}), message)
