"""The command itself: help, exit codes, and output that does nothing to a terminal."""

from __future__ import annotations

import re
import sys

import pytest

import treelens as tl
from cli.conftest import QUICK, ok, run, write_csv
from treelens.cli import main
from treelens.cli.console import STOPPED, visible
from treelens.cli.main import COMMANDS


def test_names_of_classes_do_nothing_to_a_terminal(strange_model, tmp_path):
    data = write_csv(tmp_path / "x.csv", [("CCO",), ("CCCCN",)], "smiles")
    for words in (
        ("predict", strange_model, data),
        ("predict", strange_model, data, "--out", tmp_path / "out.csv"),
        ("patterns", strange_model),
    ):  # fmt: skip
        done = ok(*words)
        assert not set("\x1b\x07\r") & set(done.out + done.err), words
    assert "\\x1b]0;owned\\x07am\\nine\\r" in run("patterns", strange_model).out


def test_errors_and_notes_do_nothing_to_a_terminal(model, tmp_path):
    done = run("fit", tmp_path / "\x1b[2Jx.csv")
    assert done.code == 2
    assert "\x1b" not in done.err
    assert "\\x1b[2Jx.csv" in done.err
    data = write_csv(tmp_path / "\x1b[2Jx.csv", [("CCO", "a"), ("C(C(", "b")], "smiles,label")
    done = run("fit", data, *QUICK)
    assert "\x1b" not in done.err


@pytest.mark.skipif(sys.platform != "linux", reason="other systems allow no such names")
def test_a_file_name_that_is_no_text_can_be_printed(model, tmp_path):
    """A name in another encoding than the system's comes as lone surrogates."""
    data = write_csv(tmp_path / "x.csv", [("CCO",)], "smiles")
    done = ok("predict", model, data, "--out", tmp_path / "out\udce4.csv")
    assert "out\\udce4.csv" in done.out


def test_what_can_be_seen_stays():
    text = "naïve 化合物 ± 5 %\tC(=O)\n🧪"
    assert visible(text) == text
    assert visible("a\x9bb\u202ec\x7f") == "a\\x9bb\\u202ec\\x7f"


def test_help_lists_the_commands_and_the_exit_codes():
    top = run("--help")
    for name in (*COMMANDS, "datasets"):
        assert re.search(rf"^  {name} ", top.out, re.MULTILINE), name
    assert "130 stopped by Ctrl-C" in " ".join(top.out.split())
    assert run("--version").out == f"treelens {tl.__version__}\n"
    for name, (function, _) in COMMANDS.items():
        shown = " ".join(run(name, "--help").out.split())
        assert function.__doc__.split(".")[0][:40] in shown
        assert "Exit codes: 0 done" in shown


def test_ctrl_c_before_a_command_began_has_its_exit_code(monkeypatch):
    def stopped():
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "app", stopped)
    # it would block SIGINT in this process, and in all that it starts
    monkeypatch.setattr(main, "_pass_interrupts_on", lambda: None)
    with pytest.raises(SystemExit) as caught:
        main.main()
    assert caught.value.code == STOPPED
