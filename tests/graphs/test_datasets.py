"""load_dataset: where it looks, what it checks, how it downloads, and its errors."""

import functools
import gzip
import hashlib
import http.server
import threading
import zipfile
from pathlib import Path

import pytest

from treelens import load_dataset
from treelens.errors import GraphDataError, InvalidMoleculesWarning
from treelens.graphs import datasets
from treelens.graphs.datasets import DATASETS

FILES = {
    "MINI_A.txt": b"1, 2\n",
    "MINI_graph_indicator.txt": b"1\n1\n2\n",
    "MINI_graph_labels.txt": b"1\n2\n",
    "MINI_node_labels.txt": b"0\n1\n0\n",
}
SMILES = b"smiles,label\nCCO,1\nC1CC,0\nO,0\n"


@pytest.fixture(autouse=True)
def mini_world(monkeypatch, tmp_path):
    """A registry of two tiny sets, an empty cache, no data folder, and nothing to download."""
    for name, data in (FILES | {"MOLS.csv": SMILES}).items():
        monkeypatch.setitem(datasets._SHA256, name, hashlib.sha256(data).hexdigest())
    tu = datasets.DatasetInfo("MINI", 2, 1, "tiny", downloadable=True)
    smiles = datasets.DatasetInfo("MOLS", 3, None, "tiny")
    monkeypatch.setattr(datasets, "DATASETS", datasets.DATASETS | {"MINI": tu, "MOLS": smiles})
    monkeypatch.setattr(datasets, "OFFICIAL_ARCHIVES", "http://127.0.0.1:9")
    monkeypatch.delenv("TREELENS_DATA", raising=False)
    monkeypatch.setenv("TREELENS_CACHE", str(tmp_path / "cache"))


def write_zip(path: Path, files: dict[str, bytes] = FILES) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(f"MINI/{name}", data)
    return path


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A server of archives; what lies in the folder it returns can be downloaded."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        monkeypatch.setattr(
            datasets, "OFFICIAL_ARCHIVES", f"http://127.0.0.1:{running.server_port}"
        )
        yield folder
        running.shutdown()
        thread.join()


def assert_is_mini(graphs, y) -> None:
    assert [graph.edges for graph in graphs] == [((0, 1),), ()]
    assert y.tolist() == [1, 2]


@pytest.mark.filterwarnings("ignore::treelens.errors.IgnoredDataWarning")
@pytest.mark.parametrize("place", ["tu/MINI", "MINI", ".", "tu/MINI.zip", "MINI.zip"])
def test_folders_and_zips(tmp_path, monkeypatch, place) -> None:
    data = tmp_path / "data"
    if place.endswith(".zip"):
        beside = {"MINI_graph_attributes.txt": b"0.5\n", "README.txt": b"about"}  # not read
        write_zip(data / place, FILES | beside)
    else:
        (data / place).mkdir(parents=True)
        for name, content in FILES.items():
            (data / place / name).write_bytes(content)
    assert_is_mini(*load_dataset("MINI", folder=data))
    monkeypatch.setenv("TREELENS_DATA", str(data))
    assert_is_mini(*load_dataset("MINI"))


def test_cache_comes_last_and_folder_first(tmp_path, monkeypatch) -> None:
    places = [tmp_path / "cache", tmp_path / "data", tmp_path / "folder"]
    for place in places:
        write_zip(place / "MINI.zip")
    info = datasets.dataset_info("MINI")
    assert datasets._locate(info, None) == places[0] / "MINI.zip"
    monkeypatch.setenv("TREELENS_DATA", str(places[1]))
    assert datasets._locate(info, None) == places[1] / "MINI.zip"
    assert datasets._locate(info, places[2]) == places[2] / "MINI.zip"
    monkeypatch.delenv("TREELENS_CACHE")
    assert "treelens" in str(datasets.cache_folder())


@pytest.mark.parametrize("name", ["smiles/MOLS.csv.gz", "MOLS.csv"])
def test_molecules(tmp_path, name) -> None:
    pytest.importorskip("rdkit", reason="needs RDKit")
    path = tmp_path / "data" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.compress(SMILES) if name.endswith(".gz") else SMILES)
    with pytest.warns(InvalidMoleculesWarning, match=r"row 2 \(line 3\)"):
        graphs, y = load_dataset("MOLS", folder=tmp_path / "data")
    assert y.tolist() == [1, 0]
    assert graphs.graph_data["row"].tolist() == [0, 2]


def test_what_is_not_found_says_what_was_tried_and_what_to_do(tmp_path) -> None:
    with pytest.raises(FileNotFoundError, match=str(tmp_path / "cache")):
        load_dataset("MINI")
    assert list((tmp_path / "cache").iterdir()) == []
    with pytest.raises(GraphDataError, match="download=False"):
        load_dataset("MINI", download=False)
    with pytest.raises(GraphDataError, match=r"no official archive.*MOLS\.csv\.gz"):
        load_dataset("MOLS")
    with pytest.raises(FileNotFoundError, match=r"folder=.*typo.* is not a folder"):
        load_dataset("MINI", folder=tmp_path / "typo")


def test_a_file_that_is_changed_missing_or_added_is_named(tmp_path) -> None:
    fewer = {name: data for name, data in FILES.items() if "node_labels" not in name}
    for files, words in (
        (FILES | {"MINI_node_labels.txt": b"0\n1\n1\n"}, "MINI_node_labels.txt.*expected SHA-256"),
        (fewer, "MINI_node_labels.txt.*no such file"),
        # Labels that somebody added would change the graphs of a set that is known by its name.
        (FILES | {"MINI_edge_labels.txt": b"5\n"}, "MINI_edge_labels.txt in .* is not a file"),
    ):
        write_zip(tmp_path / "data" / "MINI.zip", files)
        with pytest.raises(GraphDataError, match=words):
            load_dataset("MINI", folder=tmp_path / "data")


def test_the_edges_of_an_unpinned_file_are_counted(tmp_path, monkeypatch) -> None:
    monkeypatch.delitem(datasets._SHA256, "MINI_A.txt")
    write_zip(tmp_path / "good" / "MINI.zip", FILES | {"MINI_A.txt": b"2,1\n1,2\n"})
    assert_is_mini(*load_dataset("MINI", folder=tmp_path / "good"))
    write_zip(tmp_path / "bad" / "MINI.zip", FILES | {"MINI_A.txt": b"1, 2\n1, 1\n"})
    with pytest.raises(GraphDataError, match=r"MINI_A.txt has 2 edges; MINI has 1"):
        load_dataset("MINI", folder=tmp_path / "bad")


def test_download_once_then_from_the_cache(server, tmp_path) -> None:
    archive = write_zip(server / "MINI.zip")
    assert_is_mini(*load_dataset("MINI"))
    assert [file.name for file in (tmp_path / "cache").iterdir()] == ["MINI.zip"]
    archive.unlink()
    assert_is_mini(*load_dataset("MINI"))


@pytest.mark.parametrize(
    ("served", "words"),
    [
        (None, "404"),
        (b"<html>please log in</html>", "was not kept.*read as a zip"),
        (FILES | {"MINI_A.txt": b"1, 3\n"}, "was not kept: MINI_A.txt.*expected SHA-256"),
        (FILES | {"MINI_edge_labels.txt": b"5\n"}, "was not kept: MINI_edge_labels.txt"),
    ],
    ids=["missing", "not a zip", "other content", "added file"],
)
def test_bad_downloads_leave_nothing_behind(server, tmp_path, monkeypatch, served, words) -> None:
    if isinstance(served, bytes):
        (server / "MINI.zip").write_bytes(served)
    elif served is not None:
        write_zip(server / "MINI.zip", served)
    with pytest.raises(GraphDataError, match=words):
        load_dataset("MINI")
    assert list((tmp_path / "cache").iterdir()) == []

    def breaks_off(self, url, output_file, pooch, check_only=False):
        Path(output_file).write_bytes(b"PK half of it")
        raise KeyboardInterrupt

    monkeypatch.setattr("pooch.HTTPDownloader.__call__", breaks_off)
    with pytest.raises(KeyboardInterrupt):
        load_dataset("MINI")
    assert list((tmp_path / "cache").iterdir()) == []


def test_verify_tells_the_state_of_every_file(tmp_path) -> None:
    files = FILES | {"MINI_graph_labels.txt": b"1\n1\n", "MINI_edge_labels.txt": b"0\n"}
    write_zip(tmp_path / "data" / "MINI.zip", files)
    rows = datasets.verify_dataset("MINI", folder=tmp_path / "data")
    states = {row["file"]: row["status"] for row in rows if row["status"] != "ok"}
    assert states == {"MINI_edge_labels.txt": "unpinned", "MINI_graph_labels.txt": "mismatch"}
    with pytest.raises(FileNotFoundError, match="was not found in"):
        datasets.verify_dataset("MINI")
    listed = {row["name"]: row for row in datasets.list_datasets(tmp_path / "data")}
    assert listed["MINI"]["path"] == tmp_path / "data" / "MINI.zip"
    assert (listed["NCI1"]["n_graphs"], listed["MOLS"]["path"]) == (4110, None)


@pytest.mark.filterwarnings("ignore::treelens.errors.IgnoredDataWarning")
@pytest.mark.parametrize("name", list(datasets.DATASETS))
def test_the_pins_fit_the_real_files(data_folder, name) -> None:
    rows = datasets.verify_dataset(name, folder=data_folder)
    assert {row["status"] for row in rows} == ({"ok", "unpinned"} if name == "DD" else {"ok"})
    if DATASETS[name].kind == "tu" and name != "DD":
        graphs, y = load_dataset(name, folder=data_folder)
        assert len(graphs) == len(y) == DATASETS[name].n_graphs


def test_a_name_that_is_not_known() -> None:
    for name, hint in (("mutagg", "mean 'MUTAG'"), ("PROTEIN", "'PROTEINS'"), ("../z", "")):
        with pytest.raises(GraphDataError, match=rf"named '{name}'.*{hint}.* Known are"):
            load_dataset(name)
