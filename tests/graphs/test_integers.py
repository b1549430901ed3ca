"""Numbers written as text: Python's own reading is the oracle, where it is not too kind."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treelens.graphs.errors import GraphDataError
from treelens.graphs.opening import integer_table, is_integer, is_number

TEXTS = st.text(alphabet="0123456789+-_., ;eE\t٣", max_size=8)


@given(TEXTS)
def test_an_integer_is_what_python_writes_with_or_without_a_sign(text):
    plain = re.fullmatch(r"[+-]?\d+", text, re.ASCII) is not None
    expected = plain and str(abs(int(text))) == text.lstrip("+-")
    assert is_integer(text) == expected


@given(st.integers(-(2**70), 2**70))
def test_integers_fit_into_64_bits(value):
    assert is_integer(str(value)) == (-(2**63) <= value < 2**63)


@given(st.floats(allow_nan=False))
def test_every_float_is_a_number(value):
    assert is_number(repr(value))


@given(TEXTS)
def test_what_is_a_number_python_reads_too(text):
    if is_number(text):
        float(text)


def test_a_float_must_not_hide_digits_of_an_integer():
    assert is_number(str(2**53))
    assert not is_number(str(2**53 + 1))
    assert is_number(f"{2**60}.0")


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5),
    st.sampled_from([",", ";", " ", "\t", ", ", " ;  "]),
)
def test_tables_come_back_whatever_separates_the_columns(values, between):
    line = between.join(map(str, values))
    assert integer_table(f"{line}\n{line}".encode(), "x").tolist() == [values, values]


@settings(max_examples=40)
@given(st.lists(st.from_regex(r"[+-]?[0-9]{1,4}", fullmatch=True), min_size=1, max_size=6))
def test_every_leading_zero_is_an_error(fields):
    data = ", ".join(fields).encode()
    if all(map(is_integer, fields)):
        assert integer_table(data, "x").tolist() == [list(map(int, fields))]
    else:
        with pytest.raises(GraphDataError, match=r"x, line 1: .*leading zero"):
            integer_table(data, "x")


@pytest.mark.parametrize("line", ["", "1,,2", "1 02", "1.0", "x", "1_0", "9" * 30, f"1, {2**63}"])
def test_lines_that_are_no_integers(line):
    with pytest.raises(GraphDataError, match="file, line 9: expected"):
        integer_table(f"1\n{line}\n1".encode(), "file", first_line=8)
