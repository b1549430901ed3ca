"""Targets on a logarithmic scale: there and back, and which have no place on it."""

from __future__ import annotations

import numpy as np
import pytest

from treelens.cli.console import InputError
from treelens.cli.transform import transform_named, transformed

VALUES = np.array([1e-3, 1.0, 250.0, 1e6])
ROWS = np.arange(4)


@pytest.mark.parametrize(("name", "base"), [("log10", 10.0), ("ln", np.e)])
def test_there_and_back(name: str, base: float) -> None:
    scale = transform_named(name)
    there = transformed(VALUES, scale, "IC50", ROWS)
    np.testing.assert_allclose(base**there, VALUES)
    np.testing.assert_allclose(scale.back(there), VALUES)
    assert scale.name == name


@pytest.mark.parametrize("name", [None, "none"])
def test_no_scale_changes_nothing(name) -> None:
    assert transform_named(name) is None
    assert transformed(-VALUES, None, "IC50", ROWS).tolist() == (-VALUES).tolist()


def test_another_scale_is_refused() -> None:
    with pytest.raises(InputError, match="--transform log2: expected one of none, log10, ln"):
        transform_named("log2")


@pytest.mark.parametrize("wrong", [0.0, -2.5])
def test_the_row_of_the_first_that_is_not_above_zero_is_named(wrong: float) -> None:
    """Rows are those of the table, not those that are left of it."""
    y = np.array([1.0, wrong, -1.0])
    words = rf"--transform ln: 'IC50' must be above 0, but row 9 holds {wrong:g} \(2 such rows\)"
    with pytest.raises(InputError, match=words):
        transformed(y, transform_named("ln"), "IC50", np.array([2, 8, 11]))


def test_gaps_stay_gaps() -> None:
    found = transformed(np.array([np.nan, 100.0]), transform_named("log10"), "IC50", ROWS)
    assert np.isnan(found[0])
    assert found[1] == 2.0
