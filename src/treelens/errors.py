"""The error that bad graph data raises, the warnings beside it, and helpers for messages."""

import math
from collections.abc import Sequence
from numbers import Integral, Real


class GraphDataError(ValueError):
    """Graph data that cannot be read or does not fit together.

    The message names the place (file and line, or graph and node), what was expected and what
    to do about it. It is a ``ValueError``, so code written for scikit-learn catches it.
    """


class GraphFileNotFoundError(GraphDataError, FileNotFoundError):
    """A file, folder or data set that is not there; also a ``FileNotFoundError``."""


class NotGraphsError(GraphDataError, TypeError):
    """Something that is not a list of graphs was given as graphs; also a ``TypeError``."""


class DegreeLabelsWarning(UserWarning):
    """Graphs came without node labels, so each node was labelled with its degree."""


class InvalidMoleculesWarning(UserWarning):
    """Rows of a file could not be read as molecules and were left out, as asked."""


class MissingTargetsWarning(UserWarning):
    """Rows of a file had no target and were left out, as asked."""


class RepeatedMoleculesWarning(UserWarning):
    """Rows of a file repeat a molecule, and were kept."""


class IgnoredDataWarning(UserWarning):
    """Graphs came with something that is not used: weights or attributes."""


class DamagedFileWarning(UserWarning):
    """A file has something that its format allows, but hardly any file has unless it is damaged."""


def check_choice(parameter: str, value: object, choices: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in choices:
        known = ", ".join(map(repr, choices))
        raise ValueError(f"{parameter} must be one of {known}; got {value!r:.80}.")


def check_truth(parameter: str, value: object) -> None:
    if type(value).__name__ not in ("bool", "bool_"):  # Python's and numpy's, which is not loaded
        raise ValueError(f"{parameter} must be True or False; got {value!r:.80}.")


def check_names(several: bool = False, **named: object) -> None:
    """Raise ``ValueError`` unless parameters are texts or None; ``several``: or lists of texts."""
    for parameter, value in named.items():
        texts = value if several and isinstance(value, (list, tuple)) else [value]
        if value is not None and not all(isinstance(text, str) for text in texts):
            what = "the names of columns, in a list" if several else "a name, as text"
            raise ValueError(f"{parameter} must be {what}; got {value!r:.80}.")


def check_whole(parameter: str, value: object, least: int) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{parameter} must be a whole number from {least} on; got {value!r:.80}.")


def check_number(parameter: str, value: object, least: float, most: float) -> None:
    """Raise ``ValueError`` unless ``value`` is a number in this range, which NaN never is."""
    number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    if not least <= number <= most:
        raise ValueError(
            f"{parameter} must be a number from {least:g} to {most:g}; got {value!r:.80}."
        )


def first_few(texts: Sequence[str], n: int = 5, separator: str = ", ") -> str:
    """Return the first texts of a list, and how many more there are: ``"a, b and 3 more"``."""
    more = f" and {len(texts) - n} more" if len(texts) > n else ""
    return separator.join(texts[:n]) + more
