"""A run that is killed goes on where it was, and ends with the rows of one that was not."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from experiments import tiny
from treelens.experiments import protocol, table2
from treelens.experiments.rows import RowFile, read_rows

SCRIPT = Path(tiny.__file__)


def without_times(path: Path) -> list[dict]:
    """Rows in a fixed order, less what differs between two runs of the same thing."""
    rows = [{k: v for k, v in row.items() if k != "seconds"} for row in read_rows(path)]
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))


@pytest.fixture(scope="module", autouse=True)
def restored():
    """``tiny.run`` changes the protocol to a small one; change it back afterwards."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table2, "load_protocol_data", table2.load_protocol_data)
        for name in ("DEPTHS", "GAMMAS", "CS", "radii_for"):
            patch.setattr(protocol, name, getattr(protocol, name))
        yield


@pytest.fixture(scope="module")
def whole(restored, tmp_path_factory) -> Path:
    """The rows of a run that nothing interrupted."""
    return tiny.run(tmp_path_factory.mktemp("whole"))


def kill_after(out: Path, n_rows: int) -> int:
    """Start the run in a process of its own and kill it once it has written so many rows."""
    process = subprocess.Popen([sys.executable, str(SCRIPT), str(out)], stderr=subprocess.DEVNULL)
    path = out / "table2.jsonl"
    try:
        while process.poll() is None:
            if path.exists() and path.read_bytes().count(b"\n") >= n_rows:
                break
            time.sleep(0.005)
    finally:
        process.kill()
        process.wait()
    return path.read_bytes().count(b"\n")


def test_killed_and_resumed_equals_uninterrupted(tmp_path, whole):
    killed = tmp_path / "killed"
    n_kept = kill_after(killed, n_rows=7)
    assert 7 <= n_kept < tiny.N_ROWS, "the run must be killed half-way for this test to say much"
    kept = read_rows(killed / "table2.jsonl")
    with (killed / "table2.jsonl").open("ab") as handle:  # as a power cut would leave it
        handle.write(b'{"accuracy": 0.99, "dataset": "ti')
    resumed = tiny.run(killed)
    assert read_rows(resumed)[: len(kept)] == kept  # what was there was not made again
    assert len(read_rows(resumed)) == tiny.N_ROWS
    assert without_times(resumed) == without_times(whole)


def test_a_finished_run_makes_nothing(whole, monkeypatch):
    before = whole.read_bytes()
    monkeypatch.setattr(tiny, "tiny_data", None)  # not even the data are loaded
    assert tiny.run(whole.parent).read_bytes() == before


def test_a_row_cut_short_is_taken_off(tmp_path):
    path = tmp_path / "rows.jsonl"
    file = RowFile(path, ("key",))
    file.append({"key": 1, "value": 0.5})
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"key": 2, "val')
    again = RowFile(path, ("key",))
    assert again.rows == [{"key": 1, "value": 0.5}]
    assert {"key": 2} not in again
    again.append({"key": 2, "value": 0.25})
    assert [row["key"] for row in read_rows(path)] == [1, 2]


def test_a_file_with_nothing_whole_in_it(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"key"')
    assert read_rows(path) == []
    assert path.read_bytes() == b'{"key"', "a reader may look while a row is being written"
    assert RowFile(path, ("key",)).rows == []
    assert path.read_bytes() == b""


def test_a_method_that_chooses_takes_the_row_with_the_best_inner_score(tmp_path):
    """Per fold, the first on a tie; a fold where a member is missing gets no row."""
    members = ("wwl", "wl_oa", "learned_wwl", "learned_wl_oa")
    scores = {0: (0.7, 0.9, 0.8, 0.9), 1: (0.6, 0.6, 0.6, 0.6), 2: (0.5, 0.9, 0.9)}
    file = RowFile(tmp_path / "table2.jsonl", table2.KEY)
    for fold, inner in scores.items():
        for place, (method, score) in enumerate(zip(members, inner, strict=False)):
            file.append(
                {"dataset": "made", "method": method, "repetition": 0, "fold": fold, "seed": 0,
                 "inner_score": score, "accuracy": place / 10, "choice": {"C": place}}
            )  # fmt: skip
    for _ in range(2):  # the second time adds nothing
        table2.run_table2(tmp_path, datasets=[], methods=["best_of_all"])
    added = [r for r in read_rows(file.path) if r["method"] == "best_of_all"]
    assert [(r["fold"], r["chosen_method"], r["accuracy"]) for r in added] == [
        (0, "wl_oa", 0.1),
        (1, "wwl", 0.0),
    ]
