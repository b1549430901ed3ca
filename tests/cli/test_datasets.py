"""Data sets on the command line: listed, described, verified."""

from __future__ import annotations

from cli.conftest import run, tiny_tu


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
