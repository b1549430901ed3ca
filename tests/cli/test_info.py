"""What is told of a model file."""

from __future__ import annotations

from cli.conftest import QUICK, run


def test_info_of_a_machine(molecules, tmp_path):
    assert run("fit", molecules, "-o", tmp_path / "m", *QUICK).code == 0
    found = run("info", tmp_path / "m", "--json").data
    assert (found["kind"], found["classes"]) == ("GraphSVC", ["alcohol", "amine"])
    assert found["kernel"]["kernel"] == "wwl-linear"
    assert found["sizes"]["graphs"] == 40
