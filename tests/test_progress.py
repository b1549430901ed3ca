"""The progress bar: on a terminal or where asked for, and never on standard output."""

from __future__ import annotations

import sys

import pytest

from treelens.progress import progress_ticks


@pytest.mark.parametrize(("show", "terminal", "shown"), [
    (False, True, False), (None, False, False), (None, True, True), (True, False, True),
])  # fmt: skip
def test_when_it_is_shown(show, terminal, shown, monkeypatch) -> None:
    from rich import progress

    begun: list[str] = []
    real = progress.Progress.add_task
    monkeypatch.setattr(
        progress.Progress, "add_task",
        lambda self, title, **more: begun.append(title) or real(self, title, **more),
    )  # fmt: skip
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    with progress_ticks(show, "Searching") as tick:
        tick("wwl")
    assert begun == (["Searching"] if shown else [])


def test_what_was_finished_stands_on_standard_error(capsys, monkeypatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then draws as on a terminal
    with progress_ticks(True, "Searching") as tick:
        tick("wwl, depth 3")
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Searching: wwl, depth 3" in shown.err


def test_an_error_inside_is_passed_on() -> None:
    with pytest.raises(ZeroDivisionError), progress_ticks(True, "Searching"):
        1 / 0  # noqa: B018
