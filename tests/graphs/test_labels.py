"""Labels become codes and an alphabet, and codes lead back."""

from __future__ import annotations

import numpy as np
import pytest

from treelens.graphs.labels import encode_labels, translate_codes


@pytest.mark.parametrize(
    "labels",
    [
        ["b", "a", "b"],
        [3, 1, 2, 3],
        [(1, 2), (0, 5)],
        [True, False],
        [1, "a", (2,)],
        [],
        [2.5, 1.0],
    ],
)
def test_codes_lead_back_to_the_labels(labels) -> None:
    codes, alphabet = encode_labels(labels)
    assert [alphabet[code] for code in codes] == labels
    assert len(set(alphabet)) == len(alphabet)


def test_the_alphabet_is_sorted_and_does_not_depend_on_order() -> None:
    assert encode_labels(["c", "a", "b"])[1] == encode_labels(["b", "c", "a"])[1] == ("a", "b", "c")
    assert encode_labels(np.array([5, -1, 5]))[1] == (-1, 5)


def test_labels_from_arrays_are_plain_python_values() -> None:
    _, alphabet = encode_labels(np.array(["x", "y"]))
    assert [type(label) for label in alphabet] == [str, str]
    assert type(encode_labels(np.array([1, 2]))[1][0]) is int


def test_translate_marks_unknown_labels() -> None:
    codes = translate_codes(np.array([0, 1, 1, 2]), ("C", "N", "O"), ("N", "C"))
    assert codes.tolist() == [1, 0, 0, -1]
    assert translate_codes(np.array([], dtype=np.int32), (), ("N",)).tolist() == []
