"""End to end through the real executable: files, pipes, signals, limits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import treelens as tl
from cli.conftest import QUICK, SMALL, write_csv

EXECUTABLE = Path(sys.executable).with_name("treelens")
pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="signals, pipes and limits of POSIX"),
    pytest.mark.skipif(not EXECUTABLE.exists(), reason="needs treelens installed beside Python"),
]


def execute(*arguments, **more):
    words = [str(EXECUTABLE), *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, timeout=300, **more)


@pytest.mark.parametrize("options", [QUICK, SMALL], ids=["svc", "gp"])
def test_a_table_of_smiles_goes_all_the_way(options, molecules, tmp_path):
    model, predictions = tmp_path / "model.treelens", tmp_path / "predictions.csv"
    fitted = execute("fit", molecules, "--target", "label", "--out", model, *options)
    assert fitted.returncode == 0, fitted.stderr
    assert "\x1b" not in fitted.stdout + fitted.stderr  # piped: no colour codes
    assert "most frequent class" in fitted.stdout
    predicted = execute("predict", model, molecules, "--out", predictions)
    assert predicted.returncode == 0, predicted.stderr
    # Another process, the same bits: decimal text holds a float exactly.
    graphs, _ = tl.read_smiles(molecules)
    written = pd.read_csv(predictions, float_precision="round_trip")["decision"].tolist()
    assert written == pytest.approx(tl.load(model).decision_function(graphs), rel=1e-5)
    report = tmp_path / "r.html"
    done = execute("explain", model, molecules, "--target", "label", "--out", report)
    assert done.returncode == 0, done.stderr
    assert "<html" in report.read_text(encoding="utf-8")[:2000]


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_signs_that_a_console_lacks_show_as_their_codes(encoding, tmp_path):
    rows = [f"{'C' * n}{end}" for n in range(2, 12) for end in ("O,alcohol", "N,≤1 amine")]
    table = tmp_path / "m.csv"
    table.write_text("\n".join(["smiles,label", *rows]) + "\n", encoding="utf-8")
    poor = {**os.environ, "PYTHONIOENCODING": encoding}
    done = execute("fit", table, "--out", tmp_path / "m", *SMALL, env=poor, encoding=encoding)
    assert done.returncode == 0, done.stderr
    assert "\\u22641 amine" in done.stdout


# A signal comes when a function of a file is called for the first time.
STOPPED_IN = """
import inspect, os, signal, sys
from treelens.cli.main import main

signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # as in main: threads start blocked
import treelens, rdkit.Chem.Descriptors  # too much to be watched
treelens.GraphClassifier, treelens.read_smiles

def watch(frame, event, _):
    code, no_import = frame.f_code, frame.f_code.co_flags & inspect.CO_OPTIMIZED
    if event == "call" and code.co_filename.endswith(place) and no_import:
        sys.setprofile(None)
        os.kill(os.getpid(), number)

place, number = sys.argv.pop(1), int(sys.argv.pop(1))
sys.setprofile(watch)
main()
"""
# A search of RDKit takes SIGINT over, and forgets it.
SEARCHING = """
import sys
from treelens.cli.main import _pass_interrupts_on
_pass_interrupts_on()
from rdkit import Chem
from rdkit.Chem.rdMolDescriptors import CalcNumRotatableBonds
molecule = Chem.MolFromSmiles("CC(=O)Nc1ccc(OCC)cc1" * 20)
for n in range(20):
    try:
        print(n, flush=True)
        for _ in range(5000):  # seconds
            CalcNumRotatableBonds(molecule)
        sys.exit("A Ctrl-C was lost.")
    except KeyboardInterrupt:
        pass
"""


def started(program, *arguments, on_interrupt=signal.SIG_DFL, **more):
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        text=True,
        # A test run in the background ignores Ctrl-C, and its children would inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, on_interrupt),
        **more,
    )


@pytest.mark.parametrize(
    ("place", "number"),
    [
        ("chem/molecules.py", signal.SIGINT),
        ("chem/descriptors.py", signal.SIGINT),
        ("gp/fitting.py", signal.SIGINT),
        ("gp/fitting.py", signal.SIGTERM),
    ],
)
def test_stopped_in_the_middle_of_a_fit(place, number, tmp_path):
    rng = np.random.default_rng(0)
    rows = [("".join(rng.choice(["C", "N", "O", "CC(C)", "S"], 30)), i % 2) for i in range(600)]
    data = write_csv(tmp_path / "many.csv", rows)
    process = started(
        STOPPED_IN,
        place,
        int(number),
        "fit",
        data,
        "--out",
        tmp_path / "model.treelens",
        # a program in the background ignores SIGINT, but not SIGTERM
        on_interrupt=signal.SIG_IGN if number == signal.SIGTERM else signal.SIG_DFL,
        stderr=subprocess.PIPE,
    )
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert errors.endswith("Stopped.\n")
    assert "Traceback" not in errors
    assert list(tmp_path.iterdir()) == [data]


def test_ctrl_c_is_not_lost_in_a_search_of_rdkit():
    process = started(SEARCHING, stdout=subprocess.PIPE)
    assert process.stdout is not None
    for number in range(20):
        assert process.stdout.readline() == f"{number}\n"  # the last Ctrl-C arrived
        time.sleep(0.003)
        process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 0


def test_a_disk_that_is_full(molecules, tmp_path):
    import resource

    def no_more_than_2000_bytes():
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    out = tmp_path / "out"
    out.mkdir()
    done = execute(
        "fit",
        molecules,
        "--out",
        out / "model.treelens",
        *QUICK,
        "--json",
        preexec_fn=no_more_than_2000_bytes,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("Error: ")
    assert json.loads(done.stdout)["exit_code"] == 1
    assert not list(out.iterdir())


def test_a_full_device_behind_standard_output(model, molecules):
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    words = [EXECUTABLE, "predict", model, molecules]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, timeout=300)
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_reader_that_has_seen_enough(model):
    done = subprocess.run(
        f"'{EXECUTABLE}' patterns '{model}' --json | head -n 1; exit ${{PIPESTATUS[0]}}",
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout == "{\n"
    assert done.stderr == ""
    assert done.returncode == 0


def test_help_needs_no_heavy_imports():
    code = (
        "import sys, treelens.cli.main\n"
        "heavy = {'numpy', 'sklearn', 'numba', 'pandas', 'rich.console', 'rdkit'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_predictions_need_no_estimators(tmp_path):
    """Of a model with patterns and descriptors: what only fits need takes longer to import."""
    rows = [("C" * k + end, k) for k in range(1, 7) for end in ("O", "N", "Cl", "C(=O)O")]
    data, model = write_csv(tmp_path / "x.csv", rows, "smiles,value"), tmp_path / "m.treelens"
    fit = ["fit", data, "--target", "value", "--out", model, "--descriptors", "compact", *SMALL]
    assert subprocess.run([EXECUTABLE, *map(str, fit)], check=False).returncode == 0
    code = (
        "import sys\n"
        f"sys.argv = ['treelens', 'predict', {str(model)!r}, {str(data)!r}, '--jobs', '1']\n"
        "from treelens.cli.main import app\n"
        "app(standalone_mode=False)\n"
        "heavy = {'sklearn', 'scipy.stats', 'scipy.optimize', 'pandas', 'joblib', 'rich.console'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
