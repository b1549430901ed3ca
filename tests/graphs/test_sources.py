"""Where TU files come from: a folder or a zip, which may be no good."""

from __future__ import annotations

import stat
import zipfile

import pytest

from graphs.test_tudataset import assert_is_good, write_set, zip_of
from treelens import read_tudataset
from treelens.graphs import opening
from treelens.graphs.errors import GraphDataError

# Graph 1: a labelled path of three; graph 2: no nodes; graph 3: two nodes, no edge.


def test_folder_zip_parent_and_edge_file(tmp_path) -> None:
    folder = write_set(tmp_path / "outer" / "TINY")
    archive = zip_of(folder, tmp_path / "TINY.zip")
    flat = zip_of(folder, tmp_path / "flat.zip", prefix="")
    for path in (folder, str(folder), folder.parent, folder / "TINY_A.txt", archive, flat):
        assert_is_good(*read_tudataset(path))


def test_zip_leaves_nothing_on_disk(tmp_path) -> None:
    archive = zip_of(write_set(tmp_path / "x"), tmp_path / "TINY.zip")
    before = sorted(tmp_path.rglob("*"))
    read_tudataset(archive)
    assert sorted(tmp_path.rglob("*")) == before


def test_other_files_and_mac_leftovers_are_passed_over(tmp_path) -> None:
    folder = write_set(tmp_path / "TINY")
    (folder / "README.txt").write_text("about")
    archive = zip_of(folder, tmp_path / "TINY.zip")
    with zipfile.ZipFile(archive, "a") as more:
        more.writestr("__MACOSX/TINY/._TINY_A.txt", b"\0\1")
        more.writestr("TINY/._TINY_A.txt", b"\0\1")
    assert_is_good(*read_tudataset(archive))


def test_several_sets_in_one_folder(tmp_path) -> None:
    write_set(tmp_path / "both" / "ONE", "ONE")
    write_set(tmp_path / "both" / "TWO", "TWO")
    with pytest.raises(GraphDataError, match=r"several data sets \(ONE/ONE_A.txt, TWO/TWO_A.txt\)"):
        read_tudataset(tmp_path / "both")
    write_set(tmp_path / "ONE", "ONE")
    write_set(tmp_path / "ONE", "TWO", graph_labels="")
    assert_is_good(*read_tudataset(tmp_path / "ONE"))  # the one that is named as the folder


def test_nothing_there(tmp_path) -> None:
    with pytest.raises(FileNotFoundError, match=r"gone does not exist"):
        read_tudataset(tmp_path / "gone")
    with pytest.raises(GraphDataError, match="holds no TU data set"):
        read_tudataset(tmp_path)
    for part in ("graph_indicator", "graph_labels"):
        folder = write_set(tmp_path / part, **{part: None})
        with pytest.raises(FileNotFoundError, match=f"TINY_{part}.txt is missing"):
            read_tudataset(folder)


@pytest.mark.parametrize(
    ("member", "words"),
    [
        ("../TINY_A.txt", "climbs out"),
        ("TINY/../../evil.txt", "climbs out"),
        ("..\\evil.txt", "climbs out"),
        ("/etc/evil.txt", "absolute path"),
        ("C:\\evil.txt", "absolute path"),
    ],
)
def test_paths_that_leave_the_archive(tmp_path, member, words) -> None:
    archive = zip_of(write_set(tmp_path / "TINY"), tmp_path / "TINY.zip")
    with zipfile.ZipFile(archive, "a") as more:
        more.writestr(zipfile.ZipInfo(member), "1, 2\n")
    with pytest.raises(GraphDataError, match=f"refused, nothing of it was read.*{words}"):
        read_tudataset(archive)


def test_links_doubles_and_encryption(tmp_path) -> None:
    folder = write_set(tmp_path / "TINY")
    link = zipfile.ZipInfo("TINY/TINY_more.txt")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    archive = zip_of(folder, tmp_path / "link.zip")
    with zipfile.ZipFile(archive, "a") as more:
        more.writestr(link, "/etc/passwd")
    with pytest.raises(GraphDataError, match="symbolic link"):
        read_tudataset(archive)

    archive = zip_of(folder, tmp_path / "double.zip")
    with (
        pytest.warns(UserWarning, match="Duplicate name"),
        zipfile.ZipFile(archive, "a") as more,
    ):
        more.writestr("TINY/TINY_A.txt", "1, 2\n")
    with pytest.raises(GraphDataError, match="is there twice"):
        read_tudataset(archive)

    locked = bytearray(zip_of(folder, tmp_path / "locked.zip").read_bytes())
    for signature, flag_at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        locked[locked.index(signature) + flag_at] |= 1
    (tmp_path / "locked.zip").write_bytes(locked)
    with pytest.raises(GraphDataError, match="is encrypted"):
        read_tudataset(tmp_path / "locked.zip")


def test_an_archive_that_swells_is_refused_unread(tmp_path, monkeypatch) -> None:
    archive = zip_of(write_set(tmp_path / "TINY"), tmp_path / "TINY.zip")
    with zipfile.ZipFile(archive, "a", zipfile.ZIP_DEFLATED) as more:
        more.writestr("TINY/TINY_node_attributes.txt", b"0\n" * (8 * 2**20))
    monkeypatch.setattr(zipfile.ZipFile, "read", lambda *_: pytest.fail("a member was unpacked"))
    with pytest.raises(GraphDataError, match=r"would unpack to 16,\d+,\d+"):
        read_tudataset(archive)


def test_an_archive_over_the_total_limit_is_refused(tmp_path, monkeypatch) -> None:
    archive = zip_of(write_set(tmp_path / "TINY"), tmp_path / "TINY.zip")
    monkeypatch.setattr(opening, "MAX_UNPACKED_BYTES", 20)
    with pytest.raises(GraphDataError, match="far more than files of graphs"):
        read_tudataset(archive)


def test_damaged_archives(tmp_path) -> None:
    folder = write_set(tmp_path / "TINY", A="1, 2\n2, 3\n" * 50, edge_labels=None)
    whole = zip_of(folder, tmp_path / "TINY.zip").read_bytes()
    damaged = tmp_path / "damaged.zip"
    flipped = bytearray(whole)
    flipped[whole.index(b"TINY_A.txt") + 14] ^= 0xFF
    for data in (b"", b"not a zip", whole[: len(whole) // 2], bytes(flipped)):
        damaged.write_bytes(data)
        with pytest.raises(GraphDataError, match="cannot be read as a zip"):
            read_tudataset(damaged)
