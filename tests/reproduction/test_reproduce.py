"""The command line of the experiments."""

from pathlib import Path

import pytest

import tiny_studies as tiny
from reproduction import __main__ as command_line
from reproduction import table2

ROOT = Path(__file__).parents[2]


def test_every_experiment_and_page_has_its_functions():
    for name, experiment in command_line.EXPERIMENTS.items():
        module = command_line._module(experiment.module)
        assert callable(getattr(module, experiment.function)), name
        assert experiment.page in command_line.PAGES
    for module, function in command_line.PAGES.values():
        assert callable(getattr(command_line._module(module), function))


def test_rows_and_page_are_made_once(tmp_path, monkeypatch):
    monkeypatch.setattr(table2, "load_protocol_data", tiny.tiny_data)
    options = ["table2", "--out", str(tmp_path), "--datasets", "tiny", "--jobs", "1"]
    command_line.main([*options, "--methods", "shortest_path", "--repetitions", "1"])
    rows = (tmp_path / "rows" / "table2.jsonl").read_bytes()
    assert rows.count(b"\n") == 10
    page = tmp_path / "table2.md"
    assert "Shortest path" in page.read_text()
    page.unlink()
    monkeypatch.setattr(table2, "run", None)
    command_line.main([*options, "--page-only"])
    assert "Shortest path" in page.read_text()
    assert (tmp_path / "rows" / "table2.jsonl").read_bytes() == rows


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["table2", "--out", "out", "--methods", "nope"],
            "no method 'nope': choose among random_walk",
        ),
        (["table2", "--out", "out", "--repeats", "0"], "--repeats must be at least 1"),
        (["table1", "--out", "file/out"], "error: "),  # a folder that cannot be made
    ],
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
