"""What the doctor looks at, and when it is content."""

from __future__ import annotations

import treelens as tl
from cli.conftest import run
from treelens.cli import doctor


def test_doctor(monkeypatch, tmp_path):
    done = run("doctor", "--json")
    assert done.code == 0, done.err
    assert done.data["healthy"]
    assert done.data["treelens"] == tl.__version__
    assert done.data["extras"]["rdkit"]["get"] == "pip install rdkit"
    monkeypatch.setenv("TREELENS_DATA", str(tmp_path / "gone"))
    done = run("doctor")
    assert done.code == 1
    assert "gone is not a folder" in done.out


def test_what_is_missing_is_named_and_nothing_else_is_tried(monkeypatch):
    real = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda name: None if name == "scipy" else real(name))
    monkeypatch.setattr(doctor, "_try_to_learn", None)  # would be an error to call
    found = doctor.examine()
    assert not found["healthy"]
    assert found["problems"] == ["scipy is missing: pip install scipy"]
    assert found["seconds_to_learn"] is None
    assert found["folders"] == {}
    done = run("doctor")
    assert done.code == 1
    assert "scipy MISSING" in done.out
    assert "Something is wrong" in done.out


def test_an_extra_that_is_missing_is_no_problem(monkeypatch):
    monkeypatch.setattr(doctor, "_try_to_learn", lambda problems: 0.1)
    real = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda name: None if name == "pyarrow" else real(name))
    monkeypatch.delenv("TREELENS_DATA", raising=False)
    found = doctor.examine()
    assert found["healthy"]
    assert found["extras"]["pyarrow"]["version"] is None
    assert "pip install pyarrow" in run("doctor").out


def test_a_model_that_learns_nothing_is_a_problem(monkeypatch):
    from treelens.estimators.evidence import GraphClassifier

    monkeypatch.setattr(GraphClassifier, "score", lambda self, X, y: 0.5)
    problems: list[str] = []
    doctor._try_to_learn(problems)
    assert problems == [
        "A tiny GraphClassifier learned nothing: please report it with this output."
    ]
