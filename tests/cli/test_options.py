"""Options: what they may be, and an error that names the option."""

from __future__ import annotations

import pytest

from treelens.cli import options
from treelens.cli.console import InputError
from treelens.cli.fit import SCORINGS
from treelens.kernels.table import KERNELS
from treelens.svm.search import SCORES


def test_the_options_name_every_form_and_every_score():
    assert set(options.KERNELS) == set(KERNELS)
    assert set(SCORINGS) == {"auto", *SCORES}


def test_depths():
    assert options.parsed_depth("auto") == options.USUAL_DEPTH
    assert options.parsed_depth("0") == 0
    assert options.parsed_depth(str(options.DEEPEST)) == options.DEEPEST
    for text in ("-1", "1.5", "1,2", "", "deep", str(options.DEEPEST + 1)):
        with pytest.raises(InputError, match=f"--depth {text}: expected auto, or one whole"):
            options.parsed_depth(text)


def test_kernels():
    assert options.parsed_kernels("auto") == "auto"
    assert options.parsed_kernels("wwl, tanimoto") == ["wwl", "tanimoto"]
    with pytest.raises(InputError, match="--kernel best: there is no such kernel"):
        options.parsed_kernels("wwl,best")


def test_numbers():
    assert options.parsed_numbers("auto", "--gamma", float) == "auto"
    assert options.parsed_numbers("0, 2.5", "--gamma", float) == [0.0, 2.5]
    assert options.parsed_numbers("1,2", "--depth", int) == [1, 2]
    for text in ("-1", "1,-2", "nan", "inf", "x", "", "1,,2"):
        with pytest.raises(InputError, match="expected auto, or numbers of at least 0"):
            options.parsed_numbers(text, "--gamma", float)
    with pytest.raises(InputError, match=r"--depth 1.5: expected auto, or whole numbers"):
        options.parsed_numbers("1.5", "--depth", int)


def test_choices_jobs_and_thresholds():
    options.check_choice("--task", "auto", options.TASKS)
    with pytest.raises(InputError, match="--task guess: expected one of auto, classification, re"):
        options.check_choice("--task", "guess", options.TASKS)
    options.check_jobs(-1)
    with pytest.raises(InputError, match="--jobs 0"):
        options.check_jobs(0)
    options.check_threshold("recall=0.9")
    with pytest.raises(InputError, match="--threshold high: "):
        options.check_threshold("high")
