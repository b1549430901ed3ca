"""The one door to all experiments."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tiny_studies as tiny
from reproduction import __main__ as command_line
from reproduction import paper as door
from reproduction import table2


def test_an_unknown_target_is_named_with_those_there_are(tmp_path):
    with pytest.raises(ValueError, match=r"no experiment 'table9'.*table2"):
        door.reproduce("table9", tmp_path)


def test_every_target_has_a_runner():
    for name in door._RUNNERS:
        assert callable(door._runner(name)), name
    assert {*door._ALL, "molecules", "claims"} == {*door._RUNNERS, "table2"}
    assert {*door._RUNNERS, "table2"} < set(door.TARGETS)


def test_figures_come_back_as_plain_names(tmp_path):
    written = door.reproduce("figures", tmp_path)
    assert all(Path(name).is_file() for name in written)
    json.dumps(written)


def test_all_runs_every_target_once(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(door, "_runner", lambda name: lambda out, quick: calls.append(name) or [])
    monkeypatch.setattr(
        door, "_table2", lambda options: lambda out, quick: calls.append("table2") or []
    )
    door.reproduce("all", tmp_path, quick=True)
    assert sorted(calls) == sorted(door._ALL)


def test_table3_is_the_running_times(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(door, "_runner", lambda name: lambda out, quick: calls.append(name) or [])
    door.reproduce("table3", tmp_path)
    assert calls == ["runtime"]


def test_command_line_makes_rows_and_tables(tmp_path, monkeypatch):
    monkeypatch.setattr(table2, "load_protocol_data", tiny.tiny_data)
    options = ["table2", "--out", str(tmp_path), "--datasets", "tiny", "--methods", "shortest_path"]
    command_line.main([*options, "--repetitions", "1"])
    data = json.loads((tmp_path / "table2.json").read_text())
    assert data["tiny"]["shortest_path"]["n_folds"] == 10
    (tmp_path / "table2.json").unlink()
    rows = (tmp_path / "table2.jsonl").read_bytes()
    command_line.main(["table2", "--tables-only", "--out", str(tmp_path)])
    assert json.loads((tmp_path / "table2.json").read_text()) == data
    assert (tmp_path / "table2.jsonl").read_bytes() == rows


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        (
            "synthetic",
            {"datasets": ["MUTAG"]},
            "has no option 'datasets'; it takes none",
        ),
        ("table2", {"methods": ["nope"]}, "no method 'nope': choose among random_walk"),
        ("table2", {"repetitions": 0}, "repetitions must be at least 1, got 0"),
        ("molecules", {"methods": ["wwl"]}, "it takes datasets, n_jobs, seed"),
    ],
)
def test_options_that_would_be_passed_over_are_refused(tmp_path, target, options, message):
    with pytest.raises(ValueError, match=message):
        door.reproduce(target, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_made_is_noticed_before_any_work(tmp_path, capsys):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(SystemExit) as ended:
        command_line.main(["table1", "--out", str(tmp_path / "file" / "out")])
    assert ended.value.code == 1
    assert "error: " in capsys.readouterr().err
