"""From labels of any hashable kind to dense integer codes and an alphabet."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from treelens.graphs.errors import GraphDataError


def encode_labels(
    labels: Sequence[Hashable] | np.ndarray,
    place: Callable[[int], str] = lambda position: f"label {position}",
) -> tuple[np.ndarray, tuple[Any, ...]]:
    """Give every distinct label a code ``0, 1, ...``.

    Parameters
    ----------
    labels : sequence of hashable values
    place : callable
        Maps a position in ``labels`` to the words that name it in an error.

    Returns
    -------
    codes : ndarray of int32
    alphabet : tuple
        The label of each code: sorted where the labels can be compared, else in order of first
        appearance.
    """
    if isinstance(labels, np.ndarray) and labels.dtype.kind in "iub":
        values, codes = np.unique(labels, return_inverse=True)
        return codes.astype(np.int32), tuple(values.tolist())
    labels = labels.tolist() if isinstance(labels, np.ndarray) else labels
    try:
        alphabet = list(dict.fromkeys(labels))
        all_good = not any(label is None or bool(label != label) for label in alphabet)
    except (TypeError, ValueError):  # unhashable, or == gives no single truth value
        all_good = False
    if not all_good:
        for position, label in enumerate(labels):
            _check_label(label, position, place)
    code_of = {label: code for code, label in enumerate(alphabet)}
    codes = np.fromiter(map(code_of.__getitem__, labels), dtype=np.int32, count=len(labels))
    return _in_sorted_order(codes, alphabet)


def _check_label(label: Any, position: int, place: Callable[[int], str]) -> None:
    try:
        hash(label)
        is_missing = label is None or bool(label != label)
    except (TypeError, ValueError):
        raise GraphDataError(
            f"{place(position)} is an unhashable {type(label).__name__} ({label!r}): labels must "
            "be hashable. Turn lists into tuples, arrays into numbers or strings."
        ) from None
    if is_missing:
        raise GraphDataError(
            f"{place(position)} is {label!r}: every label must be a value that equals itself. "
            "Give the missing ones a label of their own, such as 'unknown'."
        )


def _in_sorted_order(codes: np.ndarray, alphabet: list[Any]) -> tuple[np.ndarray, tuple[Any, ...]]:
    try:
        order = sorted(range(len(alphabet)), key=alphabet.__getitem__)
    except TypeError:  # labels of mixed kinds keep their order of appearance
        return codes, tuple(alphabet)
    rank = np.empty(len(alphabet), dtype=np.int32)
    rank[order] = np.arange(len(alphabet), dtype=np.int32)
    return rank[codes] if len(codes) else codes, tuple(alphabet[i] for i in order)


def translate_codes(
    codes: np.ndarray, alphabet: tuple[Any, ...], reference: tuple[Any, ...]
) -> np.ndarray:
    """Rewrite codes of one alphabet as codes of another; labels it does not know become -1.

    Examples
    --------
    >>> translate_codes(np.array([0, 1, 1]), ("C", "N"), ("N", "O"))
    array([-1,  0,  0], dtype=int32)
    """
    if alphabet == reference:
        return codes
    position = {label: code for code, label in enumerate(reference)}
    table = np.array([position.get(label, -1) for label in alphabet], dtype=np.int32)
    return table[codes] if len(codes) else codes
