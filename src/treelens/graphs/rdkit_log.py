"""What RDKit says while it reads molecules: never on standard error, counted where one listens.

RDKit writes its warnings where its own settings say, for a whole process. A library leaves these
settings alone and has RDKit keep silent (:func:`quiet`). A command, which has the process to
itself, turns them to itself (:func:`listening`) and tells what came in one line.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

# In front of a message stand the time and, of some, the word WARNING; its further lines are
# indented.
_BEFORE = re.compile(r"^(\[[\d:]+\]\s*)?(warning:?\s*)?", re.IGNORECASE)
_FURTHER_LINE = re.compile(r"^\[[\d:]+\]\s\s")
_NUMBER = re.compile(r"\b\d+\b")
_CHANNELS = ("rdApp.debug", "rdApp.info", "rdApp.warning", "rdApp.error")


class Listener(logging.Handler):
    """Takes all that RDKit says, and keeps what it warned of in each molecule that was read.

    Attributes
    ----------
    found : dict of str to set of int
        The molecules, by position, under every kind of warning.
    """

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, set[int]] = {}
        self._said: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.levelno == logging.WARNING and not _FURTHER_LINE.match(text):
            self._said.add(kind_of_message(text))

    def molecule_ends(self, position: int | None) -> None:
        """What was said since the last one was about this molecule; None: about none that is kept.

        Molecules are looked at again later, and what RDKit then says is nothing new.
        """
        if position is not None:
            for kind in self._said:
                self.found.setdefault(kind, set()).add(position)
        self._said.clear()


_listeners: list[Listener] = []  # the last is the one that hears
_kept: list[logging.Handler] = []  # what RDKit's logger had before


def kind_of_message(text: str) -> str:
    """A message without time and numbers, so that messages of one kind are the same.

    Examples
    --------
    >>> kind_of_message("[12:34:56] WARNING: bond 3 of 12 is odd\\n")
    'bond # of # is odd'
    """
    return _NUMBER.sub("#", _BEFORE.sub("", text.strip())).rstrip(".")


@contextmanager
def listening() -> Iterator[Listener]:
    """Hear what RDKit says from when it is first loaded, in a process that is one's own."""
    listener = Listener()
    before = list(_listeners)
    _listeners.append(listener)
    try:
        yield listener
    finally:
        routed = _is_routed()
        _listeners[:] = before
        if routed:
            _route_back() if not before else start_listening()


def heard() -> dict[str, set[int]]:
    """What RDKit warned of so far: molecules by position, under every kind of warning."""
    return _listeners[-1].found if _listeners else {}


def start_listening() -> None:
    """Where somebody listens, have RDKit speak to them; called when RDKit is loaded."""
    if not _listeners:
        return
    from rdkit import rdBase

    logger = logging.getLogger("rdkit")
    if not _is_routed():
        rdBase.LogToPythonLogger()
        for channel in _CHANNELS[:2]:
            rdBase.DisableLog(channel)
        _kept[:] = logger.handlers
    logger.handlers[:] = [_listeners[-1]]


def _is_routed() -> bool:
    return any(isinstance(handler, Listener) for handler in logging.getLogger("rdkit").handlers)


def _route_back() -> None:
    from rdkit import rdBase

    logging.getLogger("rdkit").handlers[:] = _kept
    rdBase.LogToCppStreams()


@contextmanager
def quiet() -> Iterator[Listener | None]:
    """RDKit writes nothing in here; gives the listener, where there is one."""
    from rdkit import rdBase

    if _listeners:
        start_listening()
        _listeners[-1].molecule_ends(None)
        yield _listeners[-1]
    else:
        with rdBase.BlockLogs():
            yield None
