"""A run that is killed goes on where it was, and ends with the rows of one that was not."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from reproduction.data import StudyOptions
from reproduction.rows import RowFile, RowFileError, read_rows

import tiny_studies as tiny
from reproduction import protocol, table2

SCRIPT = Path(tiny.__file__)
ROOT = str(SCRIPT.parents[1])  # where the studies are


def without_times(path: Path) -> list[dict]:
    """Rows in a fixed order, less what differs between two runs of the same thing."""
    rows = [
        {k: v for k, v in row.items() if k not in ("seconds", "versions")}
        for row in read_rows(path)
    ]
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
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), str(out)],
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": ROOT},
    )
    path = out / "rows" / "table2.jsonl"
    try:
        while process.poll() is None:
            if path.exists() and path.read_bytes().count(b"\n") >= n_rows:
                break
            time.sleep(0.005)
    finally:
        process.kill()
        process.wait()
    return path.read_bytes().count(b"\n")


def test_killed_and_resumed_equals_uninterrupted(tmp_path, whole, monkeypatch):
    killed = tmp_path / "killed"
    n_kept = kill_after(killed, n_rows=7)
    assert 7 <= n_kept < tiny.N_ROWS, "the run must be killed half-way for this test to say much"
    kept = read_rows(killed / "rows" / "table2.jsonl")
    with (killed / "rows" / "table2.jsonl").open("ab") as handle:  # as a power cut would leave it
        handle.write(b'{"accuracy": 0.99, "dataset": "ti')
    resumed = tiny.run(killed)
    assert read_rows(resumed)[: len(kept)] == kept  # what was there was not made again
    assert len(read_rows(resumed)) == tiny.N_ROWS
    assert without_times(resumed) == without_times(whole)
    before = whole.read_bytes()
    monkeypatch.setattr(tiny, "tiny_data", None)  # of a finished run not even the data are loaded
    assert tiny.run(whole.parents[1]).read_bytes() == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"key": 1}\n{"key": 2}{"key": 3}\n{"key": 4}\n', r"rows.jsonl, line 2 is damaged"),
        ('{"key": 1}\n\n[1]\n', r"rows.jsonl, line 3 is not"),
        ('{"key": 1}\n{"other": 2}\n', r"rows.jsonl, row 2 has no 'key'"),
    ],
)
def test_damage_is_named(tmp_path, text, message):
    path = tmp_path / "rows.jsonl"
    path.write_text(text)
    with pytest.raises(RowFileError, match=message):
        RowFile(path, ("key",))
    assert path.read_text() == text


# --- two runs ---------------------------------------------------------------------------------

HOLDING = """
import sys
from reproduction.rows import RowFile
file = RowFile(sys.argv[1], ("key",))
file.append({"key": "first run"})
print("ready", flush=True)
sys.stdin.read()
"""


def test_a_second_run_into_the_same_file_is_refused(tmp_path):
    path = tmp_path / "rows" / "table2.jsonl"
    path.parent.mkdir()
    holding = [sys.executable, "-c", HOLDING, str(path)]
    words = [sys.executable, "-m", "reproduction", "table2", "--out", str(tmp_path), "--quick"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(holding, **pipes) as first:
        try:
            assert first.stdout.readline() == "ready\n"
            with pytest.raises(RowFileError, match=r"table2\.jsonl is in use"):
                RowFile(path, ("key",))
            second = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
        finally:
            first.kill()  # outright: nothing may stay behind
            first.wait()
    assert second.returncode == 1
    assert "is in use" in second.stderr
    assert "Traceback" not in second.stderr
    with RowFile(path, ("key",)) as file:
        assert file.rows == [{"key": "first run"}]
        file.append({"key": "second run"})
    assert [p.name for p in path.parent.iterdir()] == ["table2.jsonl"]


# --- choosing ---------------------------------------------------------------------------------


def test_a_method_that_chooses_takes_the_row_with_the_best_inner_score(tmp_path):
    """Per fold, the first on a tie; a fold where a member is missing gets no row."""
    members = ("wwl", "wl_oa", "learned_wwl", "learned_wl_oa")
    scores = {0: (0.7, 0.9, 0.8, 0.9), 1: (0.6, 0.6, 0.6, 0.6), 2: (0.5, 0.9, 0.9)}
    path = tmp_path / "rows" / "table2.jsonl"
    with RowFile(path, table2.KEY) as file:
        for fold, inner in scores.items():
            for place, (method, score) in enumerate(zip(members, inner, strict=False)):
                file.append(
                    {"dataset": "tiny", "method": method, "repetition": 0, "fold": fold, "seed": 0,
                     "inner_score": score, "accuracy": place / 10, "choice": {"C": place}}
                )  # fmt: skip
    for _ in range(2):  # the second time adds nothing
        table2.run(StudyOptions(tmp_path, ["tiny"], ["best_of_all"], repeats=1))
    added = [r for r in read_rows(path) if r["method"] == "best_of_all"]
    assert [(r["fold"], r["chosen_method"], r["accuracy"]) for r in added] == [
        (0, "wl_oa", 0.1),
        (1, "wwl", 0.0),
    ]
