"""Numbers in the units of the target, so that sums come out as shown."""

from __future__ import annotations

import numpy as np
import pytest

from treelens.report.units import Units


@pytest.mark.parametrize(
    ("std", "value", "text"),
    [
        (2.0, -3.14159, "−3.14"), (0.02, 0.5, "0.5000"), (300.0, 12345.6, "12,346"),
        (1e-9, 2.5e-9, "2.5e−09"), (0.0, 1.0, "1.00"), (2.0, -0.001, "0.00"),
    ],
)  # fmt: skip
def test_numbers_are_written_with_as_many_digits_as_their_spread_allows(std, value, text):
    assert Units.of({"std": std})(value) == text


def test_signs_stand_in_front_of_all_but_nothing():
    units = Units(1)
    assert units.signed(2.04) == "+2.0"
    assert units.signed(-2.06) == "−2.1"
    assert units.signed(-0.01) == "+0.0"  # no minus before a zero
    assert units.signed(2.04, more=1) == "+2.04"
    assert units(None) == units.signed(None) == "–"


@pytest.mark.parametrize("decimals", [-1, 0, 2])
def test_the_rest_and_the_part_as_written_make_up_the_whole_as_written(decimals):
    units, rng = Units(decimals), np.random.default_rng(0)

    def number(text: str) -> float:
        return float(text.replace("−", "-").replace(",", ""))

    for whole, part in rng.normal(0, 50, (200, 2)):
        total = number(units.rest(whole, part)) + number(units(part))
        assert total == pytest.approx(number(units(whole)), abs=1e-9)


@pytest.mark.parametrize(
    ("std", "decimals"), [(1.0, 2), (9.99, 2), (10.0, 1), (999.0, 0), (1000.0, -1), (0.01, 4)]
)
def test_three_digits_of_the_spread(std, decimals):
    assert Units.of({"std": std}).decimals == decimals


def test_without_a_spread_two_decimals():
    assert Units.of(None) == Units.of({"std": 0.0}) == Units.of({"std": float("nan")}) == Units(2)


def test_huge_and_tiny_numbers_have_powers_of_ten():
    assert Units(2)(1e9) == "1e+09"
    assert Units(2)(999_999_999.0) == "999,999,999.00"
    assert Units(7)(1.5) == "1.5"
