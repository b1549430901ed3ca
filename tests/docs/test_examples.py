"""The examples run as they stand, without a network, and each draws something."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("rdkit")

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("plot_*.py"))


def test_there_are_examples():
    assert len(EXAMPLES) >= 3


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(example, tmp_path):
    # It is run as a file, and then asked whether there is a figure.
    check = (
        f"import runpy; runpy.run_path({str(example)!r}, run_name='__main__'); "
        "import matplotlib.pyplot as plt; assert plt.get_fignums(), 'no figure'"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore:.*non-interactive:UserWarning", "-c", check],
        capture_output=True, text=True, timeout=300, cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "Agg", "TREELENS_DATA": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
