"""Options as parameters of the library, and errors that name the option."""

from __future__ import annotations

import pytest

from treelens.cli import options
from treelens.cli.console import InputError
from treelens.kernels.table import KERNELS
from treelens.svm.search import SCORES


def test_the_options_name_every_kernel_and_every_score():
    assert set(options.KERNELS) == set(KERNELS)
    assert set(options.SCORINGS) == {"auto", *SCORES}


def test_settings_left_at_auto_are_those_of_the_estimator():
    found = options.process_settings("auto", None, "auto", 3, 2)
    assert found == {"random_state": 3, "n_jobs": 2, "descriptors": "auto"}
    found = options.process_settings("0", "depths", "no", 0, -1)
    assert found["descriptors"] is False
    assert (found["depth"], found["weights"]) == (0, "depths")
    for text in ("-1", "1.5", "1,2", "", "deep", str(options.DEEPEST + 1)):
        with pytest.raises(InputError, match=f"--depth {text}: expected auto, or one whole"):
            options.process_settings(text, None, "auto", 0, 1)
    found = options.svc_settings("wwl, tanimoto", "1,2", "0,2.5", None, 0, 1)
    assert (found["kernel"], found["depth"]) == (["wwl", "tanimoto"], [1, 2])
    assert (found["weight_radius"], found["scoring"]) == ([0.0, 2.5], "auto")
    assert options.svc_settings(None, "auto", None, None, 0, 1)["kernel"] == "auto"


@pytest.mark.parametrize("text", ["-1", "1,-2", "nan", "inf", "x", "", "1,,2"])
def test_numbers(text):
    with pytest.raises(InputError, match="expected auto, or numbers of at least 0"):
        options.parsed_numbers(text, "--gamma", float)
    with pytest.raises(InputError, match=r"--depth 1.5: expected auto, or whole numbers"):
        options.parsed_numbers("1.5", "--depth", int)


def test_columns_and_recipes():
    assert options.column_list("a, b,a", "--x") == ["a", "b"]
    assert options.column_list(None, "--x") == []
    with pytest.raises(InputError, match="--x names no column"):
        options.column_list(" ,", "--x")
    assert options.recipe_options(None, None, None, False, None)["standardize"] is None
    assert options.recipe_options(None, None, None, True, None)["standardize"] is True
    asked = options.recipe_options("element", True, None, True, "fragment, uncharge")
    assert asked["standardize"] == ["fragment", "uncharge"]
