"""MODEL and DATA: one missing, or in the place of the other."""

from __future__ import annotations

import shutil

import pytest

from cli.conftest import run
from cli.test_bad_input import refused

ODD_NAMES = ("m.treelens", "m.bin", "m.csv", "m.zip", "m")


@pytest.fixture
def odd(model, tmp_path, request):
    """A model under another name."""
    return shutil.copy(model, tmp_path / request.param)


@pytest.mark.parametrize("odd", ODD_NAMES, indirect=True)
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_model_alone_misses_the_data(odd, more):
    done = run("predict", odd, *more)
    assert done.code == 2
    assert "DATA: it is missing" in done.err
    assert "MODEL'" not in done.err


def test_help_and_nothing_at_all_are_what_they_were(model, molecules):
    assert run("predict", model, "--help").code == 0
    assert "Missing argument 'MODEL'" in run("predict").err
    assert "Missing argument 'MODEL'" in run("predict", molecules).err


@pytest.mark.parametrize("odd", ["m.csv"], indirect=True)
def test_a_model_that_is_called_like_a_table(odd, model, tmp_path):
    words = "m.csv is a model, whatever its name"
    refused(run("predict", model, odd), words)
    parts = ["--out", tmp_path / "p.csv", "--part-size", 5]
    refused(run("predict", model, odd, *parts), words)
    refused(run("fit", odd, "--out", tmp_path / "n.treelens"), words)


@pytest.mark.parametrize("odd", ["m.treelens", "m.bin", "m.zip", "m"], indirect=True)
def test_a_model_in_the_place_of_the_data(odd, model, molecules, tmp_path):
    words = [f"{odd} is in the place of the data, but is a model", "Models come first"]
    refused(run("predict", model, odd), *words)
    refused(run("predict", molecules, odd), *words)  # each in the place of the other
    refused(run("predict", model, odd, "--out", tmp_path / "p.csv", "--part-size", 5), *words)
    refused(run("explain", model, odd, "--out", tmp_path / "r.html"), *words)
    refused(run("fragments", model, odd), *words)


@pytest.mark.parametrize("odd", ["m.treelens"], indirect=True)
def test_a_command_without_models_tells_no_order(odd, tmp_path):
    over_itself = run("fit", odd, "--out", odd)  # as with the usual name of a model
    for done in (run("fit", odd, "--out", tmp_path / "n"), over_itself, run("evaluate", odd)):
        refused(done, "m.treelens is in the place of the data, but is a model", "Expected a table")
        assert "MODEL" not in done.err
        assert "Models" not in done.err


def test_a_name_like_a_models_that_is_no_file(model):
    words = ("gone.treelens is in the place of the data", "there is no such file")
    refused(run("predict", model, "gone.treelens"), *words)
    alone = run("predict", "gone.treelens")
    assert alone.code == 2
    assert "DATA: it is missing" in alone.err
    assert "there is no such file" in " ".join(alone.err.split())
    assert "is a model" not in alone.err


def test_a_table_that_is_called_like_a_model_is_a_table(model, molecules, tmp_path):
    table = shutil.copy(molecules, tmp_path / "data.treelens")
    done = run("predict", model, table)
    refused(done, "data.treelens has an ending that tells nothing: expected a table")
    assert "Missing argument 'MODEL'" in run("predict", table).err


def test_data_in_the_place_of_the_model(molecules, tmp_path):
    words = ("cannot be read as a model file", "of another format", "after the model")
    refused(run("predict", molecules, molecules), *words)
    refused(run("explain", molecules, molecules, "--out", tmp_path / "r.html"), *words)
    refused(run("fragments", molecules, molecules), *words)


@pytest.mark.parametrize("command", ["info", "patterns"])
def test_a_command_without_data_tells_no_order(command, molecules):
    done = run(command, molecules)
    refused(done, "cannot be read as a model file", "of another format")
    assert "after the model" not in done.err


def test_a_model_that_was_cut_off_is_still_a_damaged_model(model, molecules, tmp_path):
    half = tmp_path / "half.treelens"
    half.write_bytes(model.read_bytes()[:1000])
    refused(run("predict", half, molecules), "cut off, damaged")
