"""The command line of the experiments; a run that was stopped goes on where it was."""

import json
from pathlib import Path

import pytest

pytest.importorskip("rdkit")

from reproduction.data import StudyOptions
from reproduction.protocol import DataSet
from reproduction.rows import RowFile, RowFileError, read_rows

from reproduction import __main__ as command_line
from reproduction import protocol, table2
from treelens import make_synthetic

METHODS = ("wwl", "shortest_path")


def tiny_data(name: str) -> DataSet:
    """Forty graphs, five of each substructure."""
    graphs, y = make_synthetic(5, noise_nodes=(2, 3), random_state=0)
    return DataSet.from_graphs(name, graphs, y)


@pytest.fixture
def tiny(monkeypatch):
    """A small data set, with little to choose from."""
    monkeypatch.setattr(table2, "load_protocol_data", tiny_data)
    few = {"DEPTHS": (1,), "GAMMAS": (1.0,), "CS": (1.0, 10.0), "radii_for": lambda n: (1.0,)}
    for name, value in few.items():
        monkeypatch.setattr(protocol, name, value)


def test_every_experiment_has_its_function_and_a_page():
    pages = Path(__file__).parents[2] / "docs" / "results"
    for name, experiment in command_line.EXPERIMENTS.items():
        module = command_line._module(experiment.module)
        assert callable(getattr(module, experiment.function)), name
        assert (pages / f"{experiment.page}.md").exists(), name


def test_rows_and_tables_are_made_once(tiny, tmp_path, monkeypatch):
    options = ["table2", "--out", str(tmp_path), "--datasets", "tiny", "--jobs", "1"]
    command_line.main([*options, "--methods", "shortest_path", "--repetitions", "1"])
    rows = (tmp_path / "rows" / "table2.jsonl").read_bytes()
    assert rows.count(b"\n") == 10
    page = tmp_path / "tables.md"
    assert "| Shortest path |" in page.read_text()
    page.unlink()
    monkeypatch.setattr(table2, "run", None)
    command_line.main([*options, "--page-only"])
    assert "| Shortest path |" in page.read_text()
    assert (tmp_path / "rows" / "table2.jsonl").read_bytes() == rows


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["table2", "--out", "out", "--methods", "nope"],
            "no method 'nope': choose among random_w",
        ),
        (["table2", "--out", "out", "--repeats", "0"], "--repeats must be at least 1"),
        (["table1", "--out", "file/out"], "error: "),
    ],  # a folder that cannot be made
)
def test_what_cannot_be_done_is_noticed_before_any_work(
    tmp_path, capsys, monkeypatch, arguments, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(SystemExit) as ended:
        command_line.main(arguments)
    assert ended.value.code == 1
    assert message in capsys.readouterr().err


# --- rows -------------------------------------------------------------------------------------


def without_times(path: Path) -> list[str]:
    """Rows in a fixed order, less what differs between two runs of the same thing."""
    kept = (
        {k: v for k, v in row.items() if k not in ("seconds", "versions")}
        for row in read_rows(path)
    )
    return sorted(json.dumps(row, sort_keys=True) for row in kept)


def test_stopped_and_resumed_equals_uninterrupted(tiny, tmp_path, monkeypatch):
    options = StudyOptions(tmp_path, ["tiny"], METHODS, repeats=1, n_jobs=1)
    table2.run(options)
    path = tmp_path / "rows" / "table2.jsonl"
    whole, lines = without_times(path), path.read_text().splitlines()
    assert len(lines) == 10 * len(METHODS)
    path.write_text("\n".join(lines[:7]) + '\n{"accuracy": 0.99, "dataset": "ti')  # a power cut
    table2.run(options)
    assert path.read_text().splitlines()[:7] == lines[:7]  # what was there was not made again
    assert without_times(path) == whole
    monkeypatch.setattr(table2, "load_protocol_data", None)  # not loaded for a finished run
    before = path.read_bytes()
    table2.run(options)
    assert path.read_bytes() == before


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


def test_a_second_run_into_the_same_file_is_refused(tmp_path, capsys):
    path = tmp_path / "rows" / "table2.jsonl"
    with RowFile(path, table2.KEY):
        with pytest.raises(SystemExit):
            command_line.main(["table2", "--out", str(tmp_path), "--quick"])
        assert "table2.jsonl is in use" in capsys.readouterr().err
    with RowFile(path, table2.KEY) as file:
        assert file.rows == []


def test_a_method_that_chooses_takes_the_row_with_the_best_inner_score(tmp_path):
    """Per fold, the first on a tie; a fold where a member is missing gets no row."""
    members = ("wwl", "wl_oa", "learned_wwl", "learned_wl_oa")
    scores = {0: (0.7, 0.9, 0.8, 0.9), 1: (0.6, 0.6, 0.6, 0.6), 2: (0.5, 0.9, 0.9)}
    path = tmp_path / "rows" / "table2.jsonl"
    with RowFile(path, table2.KEY) as file:
        for fold, inner in scores.items():
            for place, (method, score) in enumerate(zip(members, inner, strict=False)):
                file.append(
                    {
                        "dataset": "tiny",
                        "method": method,
                        "repetition": 0,
                        "fold": fold,
                        "seed": 0,
                        "inner_score": score,
                        "accuracy": place / 10,
                        "choice": {"C": place},
                    }
                )
    for _ in range(2):  # the second time adds nothing
        table2.run(StudyOptions(tmp_path, ["tiny"], ["best_of_all"], repeats=1))
    added = [r for r in read_rows(path) if r["method"] == "best_of_all"]
    found = [(r["fold"], r["chosen_method"], r["accuracy"]) for r in added]
    assert found == [(0, "wl_oa", 0.1), (1, "wwl", 0.0)]
