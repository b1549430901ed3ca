"""What the doctor looks at, and when it is content."""

from __future__ import annotations

import treelens as tl
from cli.conftest import run


def test_doctor(monkeypatch, tmp_path):
    done = run("doctor", "--json")
    assert done.code == 0, done.err
    assert done.data["healthy"]
    assert done.data["treelens"] == tl.__version__
    assert done.data["extras"]["rdkit"]["get"] == "pip install 'treelens[chem]'"
    monkeypatch.setenv("TREELENS_DATA", str(tmp_path / "gone"))
    done = run("doctor")
    assert done.code == 1
    assert "gone is not a folder" in done.out
