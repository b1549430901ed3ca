"""The error that bad graph data raises, the warnings beside it, and helpers for messages."""

from collections.abc import Sequence
from typing import Any


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


class IgnoredDataWarning(UserWarning):
    """Graphs came with something that is not used: weights or attributes."""


class DamagedFileWarning(UserWarning):
    """A file has something that its format allows, but hardly any file has unless it is damaged."""


def check_choice(parameter: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        known = ", ".join(map(repr, choices))
        raise ValueError(f"{parameter} must be one of {known}; got {value!r}.")


def first_few(texts: Sequence[str], n: int = 5, separator: str = ", ") -> str:
    """Return the first texts of a list, and how many more there are: ``"a, b and 3 more"``."""
    more = f" and {len(texts) - n} more" if len(texts) > n else ""
    return separator.join(texts[:n]) + more
