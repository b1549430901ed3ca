"""RDKit's log messages: never written to standard error, counted where a ``Listener`` is active.

RDKit's log settings are global to a process. The library leaves them alone and blocks the messages
(:func:`quiet`). The command line redirects them (:func:`listening`) and prints a summary.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

# A message begins with the time and sometimes the word WARNING; its further lines are indented.
_BEFORE = re.compile(r"^(\[[\d:]+\]\s*)?(warning:?\s*)?", re.IGNORECASE)
_FURTHER_LINE = re.compile(r"^\[[\d:]+\]\s\s")
_NUMBER = re.compile(r"\b\d+\b")


class Listener(logging.Handler):
    """Receives RDKit's messages, and counts its warnings by molecule."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, set[int]] = {}  # positions of molecules, by kind of warning
        self._current: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.levelno == logging.WARNING and not _FURTHER_LINE.match(text):
            self._current.add(kind_of_message(text))

    def molecule_ends(self, position: int | None) -> None:
        """Count the warnings since the last call for this molecule; None: for no molecule."""
        if position is not None:
            for kind in self._current:
                self.found.setdefault(kind, set()).add(position)
        self._current.clear()


_listeners: list[Listener] = []  # the last one is active
_kept: list[logging.Handler] = []  # of RDKit's logger before


def kind_of_message(text: str) -> str:
    """Return a message without time and numbers, so that messages of one kind are equal."""
    return _NUMBER.sub("#", _BEFORE.sub("", text.strip())).rstrip(".")


@contextmanager
def listening() -> Iterator[Listener]:
    """Redirect RDKit's messages to a listener, from when RDKit is first loaded."""
    listener = Listener()
    before = list(_listeners)
    _listeners.append(listener)
    try:
        yield listener
    finally:
        routed = _is_routed()
        _listeners[:] = before
        if routed and before:
            start_listening()
        elif routed:
            from rdkit import rdBase

            logging.getLogger("rdkit").handlers[:] = _kept
            rdBase.LogToCppStreams()


def heard() -> dict[str, set[int]]:
    """Return the positions of molecules that RDKit warned about, by kind of warning."""
    return _listeners[-1].found if _listeners else {}


def start_listening() -> None:
    """Redirect RDKit's messages to the active listener, if there is one."""
    if not _listeners:
        return
    from rdkit import rdBase

    logger = logging.getLogger("rdkit")
    if not _is_routed():
        rdBase.LogToPythonLogger()
        rdBase.DisableLog("rdApp.debug")
        rdBase.DisableLog("rdApp.info")
        _kept[:] = logger.handlers
    logger.handlers[:] = [_listeners[-1]]


def _is_routed() -> bool:
    return any(isinstance(handler, Listener) for handler in logging.getLogger("rdkit").handlers)


@contextmanager
def quiet() -> Iterator[Listener | None]:
    """Keep RDKit from writing messages; yields the active listener, or None."""
    from rdkit import rdBase

    if _listeners:
        start_listening()
        _listeners[-1].molecule_ends(None)
        yield _listeners[-1]
    else:
        with rdBase.BlockLogs():
            yield None
