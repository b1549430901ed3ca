"""Options as parameters of the library."""

from __future__ import annotations

from typing import get_args

import pytest

from treelens.cli import options
from treelens.kernels.table import KERNELS
from treelens.svm.search import SCORES


def test_the_options_name_every_kernel_and_every_score():
    assert set(options.KERNELS) == set(KERNELS)
    assert set(get_args(get_args(options.Scoring)[0])) == {"auto", *SCORES}


def test_options_become_parameters():
    found = options.Training(depth="0", descriptors="no").gp_settings("depths")
    assert (found["depth"], found["weights"], found["descriptors"]) == (0, "depths", False)
    found = options.Training(depth="1,2", seed=3).svc_settings("wwl, tanimoto", "0,2.5")
    assert (found["kernel"], found["depth"]) == (["wwl", "tanimoto"], [1, 2])
    assert (found["weight_radius"], found["random_state"]) == ([0.0, 2.5], 3)


@pytest.mark.parametrize("text", ["-1", "1,-2", "nan", "inf", "x", "", "1,,2", "1.5"])
def test_numbers_that_are_none(text):
    with pytest.raises(ValueError, match="expected auto, or whole numbers of at least 0"):
        options.Training(depth=text).svc_settings()
    with pytest.raises(ValueError, match=f"--depth {text}: expected auto, or one whole"):
        options.Training(depth=text).gp_settings()
