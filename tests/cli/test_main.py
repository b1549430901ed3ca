"""The command itself: help, options, kinds of DATA, ``doctor``, ``demo`` and ``datasets``."""

from __future__ import annotations

import re
import shlex
from inspect import signature
from typing import get_args

import numpy as np
import pytest

import treelens as tl
from cli.conftest import ok, run, tiny_tu
from treelens.chem import examples
from treelens.cli import main
from treelens.cli.console import STOPPED, with_options
from treelens.cli.fit import fit_cli
from treelens.cli.options import Training, kind_of
from treelens.errors import GraphDataError
from treelens.svm.search import SCORES


def test_help_lists_the_commands_and_the_exit_codes():
    top = run("--help")
    for name in (*main.COMMANDS, "datasets"):
        assert re.search(rf"^  {name} ", top.out, re.MULTILINE), name
    assert "130 stopped by Ctrl-C" in " ".join(top.out.split())
    assert run("--version").out == f"treelens {tl.__version__}\n"
    for name, function in main.COMMANDS.items():
        first = function.__doc__.splitlines()[0]
        assert first in top.out  # whole, in 80 columns
        shown = run(name, "--help").out.splitlines()
        assert max(map(len, shown)) <= 80
        assert first in " ".join(" ".join(shown).split())


def test_ctrl_c_before_a_command_began_has_its_exit_code(monkeypatch):
    def stopped():
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "app", stopped)
    # it would block SIGINT in this process, and in all that it starts
    monkeypatch.setattr(main, "_pass_interrupts_on", lambda: None)
    with pytest.raises(SystemExit) as caught:
        main.main()
    assert caught.value.code == STOPPED


# --- options and DATA -----------------------------------------------------------------------------


def test_kinds_of_data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, kind in (
        ("x.csv.gz", "table"),
        ("x.TSV", "table"),
        ("x.xlsx", "table"),
        ("x.sdf.gz", "sdf"),
        ("x.zip", "tu"),
        ("X_A.txt", "tu"),
    ):
        (tmp_path / name).write_text("")
        assert kind_of(name) == kind
    assert kind_of(str(tmp_path)) == "tu"
    assert kind_of("MUTAG") == "name"
    assert kind_of("-") == "stdin"
    assert kind_of("CC(=O)Oc1ccccc1C(=O)O") == "smiles"
    (tmp_path / "MUTAG").mkdir()
    assert kind_of("MUTAG") == "tu"  # what is here comes first


def test_options_become_parameters():
    scoring = signature(fit_cli).parameters["scoring"].annotation
    assert set(get_args(get_args(scoring)[0])) == {"auto", *SCORES}
    found = Training(depth="0", descriptors="no").gp_settings("depths")
    assert (found["depth"], found["weights"], found["descriptors"]) == (0, "depths", False)
    found = Training(depth="1,2", seed=3).svc_settings("wwl, tanimoto", "0,2.5")
    assert (found["kernel"], found["depth"]) == (["wwl", "tanimoto"], [1, 2])
    assert (found["weight_radius"], found["random_state"]) == ([0.0, 2.5], 3)


@pytest.mark.parametrize("text", ["-1", "1,-2", "nan", "x", "", "1,,2", "1.5"])
def test_numbers_that_are_none(text):
    for settings in (Training(depth=text).svc_settings, Training(depth=text).gp_settings):
        with pytest.raises(ValueError, match=f"--depth {text}: expected auto, or whole numbers"):
            settings()


# --- doctor, demo, datasets -----------------------------------------------------------------------


def test_doctor(monkeypatch, tmp_path):
    done = ok("doctor", "--json")
    assert done.data["healthy"]
    assert done.data["treelens"] == tl.__version__
    real = main._version
    monkeypatch.setattr(main, "_version", lambda name: None if name == "pyarrow" else real(name))
    monkeypatch.setattr(tl.GraphClassifier, "score", lambda self, X, y: 0.5)
    monkeypatch.setenv("TREELENS_DATA", str(tmp_path / "gone"))
    done = run("doctor")
    assert done.code == 1
    assert "gone is not a folder" in done.out
    assert "pip install pyarrow" in done.out
    assert "A tiny GraphClassifier learned nothing" in done.out


def test_the_demo_has_molecules_to_learn_from_or_made_up_graphs(monkeypatch, tmp_path):
    path = tmp_path / "demo.csv"
    data, story = main.demo_data(path)
    assert (len(data.graphs), data.task, np.median(data.targets)) == (1017, "regression", 6.44)
    assert f"pIC50, from {np.min(data.targets):g} to {np.max(data.targets):g}" in story
    assert tl.example_table(path) == path  # the same table may be there
    path.write_text("name,smiles\n")
    with pytest.raises(FileExistsError, match="another file"):
        tl.example_table(path)
    assert path.read_text() == "name,smiles\n"
    monkeypatch.setattr(examples, "contributed_data", lambda name: None)
    data, story = main.demo_data(path)
    assert len(data.graphs) == 160
    assert "pip install rdkit" in story
    monkeypatch.setattr(tl.GraphClassifier, "report", lambda *given, **more: None)
    done = ok("demo", "--out", tmp_path / "demo.html", "--jobs", 1)
    assert "On the 32 graphs held out: ROC AUC " in done.out
    assert ", accuracy " in done.out
    with pytest.raises(GraphDataError, match="come with RDKit"):
        tl.example_table(tmp_path / "other.csv")


def test_the_demo_learns_and_reports_on_what_it_held_out(tmp_path, monkeypatch):
    full, story = main.demo_data(tmp_path / "all.csv")
    small = full.pick(np.arange(60))
    monkeypatch.setattr(main, "demo_data", lambda path: (small, story))
    calls: list[tuple] = []
    monkeypatch.setattr(tl.GraphRegressor, "report", lambda *given, **more: calls.append(given))
    done = ok("demo", "--out", tmp_path / "demo.html", "--jobs", 1)
    first, fitting, predicting = done.err.splitlines()[:3]
    assert first.startswith(story[:40])
    assert fitting == "Fitting 48 of them, and finding fragments ..."
    assert predicting == "Predicting the 12 others, and writing the report ..."
    assert "48 molecules; pIC50 from" in done.out
    ((fitted, path, graphs, y),) = calls
    assert (len(fitted.train_values_), len(graphs), len(y)) == (48, 12, 12)
    assert path == tmp_path / "demo.html"
    error = np.sqrt(np.mean((fitted.predict(graphs) - np.asarray(y)) ** 2))
    assert f"On the 12 molecules held out: RMSE {error:.4g}, R2 " in done.out


def test_datasets_are_listed_described_and_verified(data_folder):
    listed = run("datasets", "list", "--folder", data_folder, "--json").data["datasets"]
    assert next(row for row in listed if row["name"] == "MUTAG")["path"].endswith("MUTAG.zip")
    facts = run("datasets", "describe", "MUTAG", "--folder", data_folder, "--json").data
    assert (facts["n_graphs"], facts["classes"]) == (188, {"-1": 63, "1": 125})
    checked = run("datasets", "verify", "MUTAG", "--folder", data_folder)
    assert checked.code == 0
    assert "MUTAG_A.txt" in checked.out
    fetched = run("datasets", "fetch", "MUTAG", "--json")
    assert fetched.code == 0
    assert fetched.data["path"].endswith("MUTAG.zip")


def test_a_damaged_data_set_fails_to_verify(tmp_path):
    folder = tiny_tu(tmp_path / "MUTAG")
    done = run("datasets", "verify", "MUTAG", "--folder", tmp_path, "--json")
    assert done.code == 1
    assert not done.data["ok"]
    assert folder.name in done.data["files"][0]["path"]
    unknown = run("datasets", "describe", "MUTAGG")
    assert unknown.code == 2
    assert "Did you mean 'MUTAG'?" in unknown.err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("target='IC50 (nM)'", ["--target", "IC50 (nM)"]),
        ('target="Bob\'s column"', ["--target", "Bob's column"]),
        ("unit_column=COLUMN", ["--unit-column", "COLUMN"]),
        ("transform=log10 may serve", ["--transform", "log10", "may", "serve"]),
        ("names='$HOME'", ["--id", "$HOME"]),
        ("sheet=''", ["--sheet", ""]),
    ],
)
def test_hints_can_be_pasted_into_a_shell(text, words):
    assert shlex.split(with_options(text)) == words
    assert "$HOME" not in with_options(text).replace("'$HOME'", "")
