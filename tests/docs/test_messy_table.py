"""The tutorial on a messy table quotes what the commands say, letter for letter."""

from __future__ import annotations

import re
import subprocess

import pytest

from docs.conftest import EXECUTABLE, ROOT, blocks

PAGE = ROOT / "docs" / "guide" / "messy-table.md"


@pytest.fixture
def quoted() -> list[str]:
    return [" ".join(block.text.split()) for block in blocks(PAGE) if block.language == "text"]


def test_the_lines_that_it_quotes_are_those_of_the_command(quoted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = next(block for block in blocks(PAGE) if block.language == "python")
    exec(compile(table.text, str(PAGE), "exec"), {"__name__": "page"})

    def said(*words: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([EXECUTABLE, *words], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done

    fitted = said("fit", "messy.csv", "--target", "Solubility (uM)", "--standardize", "--transform",
                  "log10", "--depth", "2", "--out", "m.treelens")  # fmt: skip
    notes = " ".join(re.findall(r"Note: .*", fitted.stderr))
    assert quoted[0] == " ".join(notes.split())
    assert quoted[1] in " ".join(said("info", "m.treelens").stdout.split())
