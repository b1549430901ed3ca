"""The command itself: its help, its commands, its exit codes."""

from __future__ import annotations

import re

import pytest

import treelens as tl
from cli.conftest import run
from treelens.cli import main
from treelens.cli.console import STOPPED
from treelens.cli.main import COMMANDS


def test_help_lists_the_commands_and_the_exit_codes():
    top = run("--help")
    for name in (*COMMANDS, "datasets"):
        assert re.search(rf"^  {name} ", top.out, re.MULTILINE), name
    assert "130 stopped by Ctrl-C" in " ".join(top.out.split())
    assert "130 stopped by Ctrl-C" in " ".join(run("fit", "--help").out.split())
    assert run("--version").out == f"treelens {tl.__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_sentence_and_the_exit_codes(name):
    shown = run(name, "--help")
    assert shown.code == 0
    assert COMMANDS[name].__doc__.split(".")[0][:40] in " ".join(shown.out.split())
    assert "Exit codes: 0 done" in " ".join(shown.out.split())


def test_ctrl_c_before_a_command_began_has_its_exit_code(monkeypatch):
    def stopped():
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "app", stopped)
    with pytest.raises(SystemExit) as caught:
        main.main()
    assert caught.value.code == STOPPED
