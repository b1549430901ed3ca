"""Python values as JSON and back: value and kind are kept, or there is an error."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treelens.storage.plain_data import UnknownKindError, from_plain, to_plain

scalars = st.one_of(
    st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(),
    st.integers(0, 255).map(np.uint8), st.floats(width=32, allow_nan=False).map(np.float32),
)  # fmt: skip
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.one_of(st.text(), st.integers()), inner, max_size=3),
    ),
    max_leaves=8,
)  # fmt: skip


@given(values)
def test_plain_data_comes_back_with_value_and_kind(value):
    again = from_plain(json.loads(json.dumps(to_plain(value), allow_nan=False)))
    assert repr(again) == repr(value)  # tells 1, 1.0, True and numpy scalars apart


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_floats_that_json_has_no_number_for(value):
    again = from_plain(json.loads(json.dumps(to_plain(value), allow_nan=False)))
    assert repr(again) == repr(value)


@pytest.mark.parametrize(
    "array",
    [np.array([1, 2], np.int8), np.array([0.5]), np.array(["a", "long"]), np.array([], bool),
     np.array(["a", 1, (2.0, None)], dtype=object)],
    ids=lambda x: str(x.dtype),
)  # fmt: skip
def test_arrays_keep_their_type(array):
    again = from_plain(json.loads(json.dumps(to_plain(array))))
    assert again.dtype == array.dtype
    assert again.tolist() == array.tolist()


@pytest.mark.parametrize("value", [{1, 2}, b"x", 1j, object(), np.zeros((1, 1)), np.complex64(1)])
def test_other_kinds_are_an_error(value):
    with pytest.raises(UnknownKindError, match="expected integers, floats"):
        to_plain(value)


@pytest.mark.parametrize(
    "written",
    [{"$pickle": "x"}, {"$tuple": 5}, {"$float": "1.5"}, {"$numpy": ["complex64", 1]},
     {"$numpy": ["int8", 1000]}, {"$array": ["int64", [[1]]]}, {"$array": ["int64"]},
     {"$map": [[1]]}, {"$map": [[[], 1]]}, {"$tuple": [], "more": 1}],
    ids=str,
)  # fmt: skip
def test_what_has_no_meaning_is_an_error(written):
    with pytest.raises(ValueError, match=r"has no meaning here|cannot be read"):
        from_plain(written)
