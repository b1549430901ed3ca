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
    hint = "begins like a zip: a spreadsheet, or a model?"
    refused(run("predict", model, odd), "m.csv is no text", hint)
    parts = ["--out", tmp_path / "p.csv", "--part-size", 5]
    refused(run("predict", model, odd, *parts), "m.csv is not UTF-8 text", hint)


@pytest.mark.parametrize("odd", ["m.treelens", "m.bin", "m.zip", "m"], indirect=True)
def test_a_model_in_the_place_of_the_data(odd, model, molecules, tmp_path):
    words = (f"{odd} is in the place of the data, but is a model", "Models come first")
    refused(run("predict", model, odd), *words)
    refused(run("predict", molecules, odd), *words)  # each in the place of the other
    refused(run("predict", model, odd, "--out", tmp_path / "p.csv", "--part-size", 5), *words)
    refused(run("explain", model, odd, "--out", tmp_path / "r.html"), *words)
    refused(run("fit", odd, "--out", tmp_path / "n.treelens"), *words)


def test_a_name_like_a_models_that_is_no_file(model):
    refused(run("predict", model, "gone.treelens"), "gone.treelens is in the place of the data")


def test_data_in_the_place_of_the_model(molecules, tmp_path):
    words = ("cannot be read as a model file", "begins like something else", "after the model")
    refused(run("predict", molecules, molecules), *words)
    refused(run("explain", molecules, molecules, "--out", tmp_path / "r.html"), *words)


def test_a_model_that_was_cut_off_is_still_a_damaged_model(model, molecules, tmp_path):
    half = tmp_path / "half.treelens"
    half.write_bytes(model.read_bytes()[:1000])
    refused(run("predict", half, molecules), "cut off, damaged")
