"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import re
import secrets
import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from treelens.storage.locks import is_file_of, try_lock

_ENDING = ".treelens-part"
_LONGEST_NAME_BYTES = 200  # of the 255 that file systems allow
# Parts that are being written, and by which process: a fork inherits the table, not the parts.
_writing: dict[Path, int] = {}
_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


@contextmanager
def whole_file(path: str | Path) -> Iterator[BinaryIO]:
    """A file to write bytes to, which appears under its name only once it is complete.

    The bytes go to a hidden file in the same folder; it takes the name at the end, in one step. On
    any error, Ctrl-C and a request to terminate included, it is removed, and what stood under the
    name before is untouched. What a process that was killed outright left behind is removed when
    the same name is written next.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "notes.txt")
    >>> with whole_file(path) as file:
    ...     _ = file.write(b"all of it")
    >>> path.read_bytes()
    b'all of it'
    """
    target = checked_target(path)
    _remove_abandoned(target)
    with _new_part(target) as (part, file):
        yield file
        file.flush()
        os.fsync(file.fileno())
        if os.name == "nt":  # no open file can be renamed
            file.close()
        os.replace(part, target)


def checked_target(path: str | Path, reads: Iterable[str | Path] = ()) -> Path:
    """Where ``path`` leads; an error that says why if no file can be written there.

    ``reads`` are the files that what is written will be made from: to write over one of them,
    under whatever name, is refused by a ``ValueError``.
    """
    target = Path(path).expanduser().resolve()  # writes through a link, not over it
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a folder: give the name of a file to write.")
    if target.exists() and not target.is_file():
        raise OSError(f"{path} is a device or a pipe: give the name of an ordinary file to write.")
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"{path} cannot be written: the folder {target.parent} does not exist. Create it, or "
            "choose another place."
        )
    if not os.access(target.parent, os.W_OK):
        raise PermissionError(
            f"{path} cannot be written: there is no permission to write in {target.parent}. "
            "Choose another place."
        )
    _check_not_read(path, target, reads)
    return target


def _check_not_read(path: str | Path, target: Path, reads: Iterable[str | Path]) -> None:
    for source in reads if target.exists() else ():
        with suppress(FileNotFoundError):
            if os.path.samefile(target, Path(source).expanduser()):
                raise ValueError(
                    f"{path} cannot be written: it is the same file as {source}, which is read "
                    "here and would be lost. Choose another name."
                )


# --- parts ------------------------------------------------------------------------------------


@contextmanager
def _new_part(target: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """A hidden file beside the target, open and locked; gone at the end unless it was renamed."""
    while True:
        part = target.with_name(f"{_prefix(target)}{secrets.token_hex(6)}{_ENDING}")
        with _removed_when_terminated(part):
            try:
                with part.open("xb") as file:
                    if _still_ours(part, file):
                        yield part, file
                        return
            finally:
                part.unlink(missing_ok=True)


def _prefix(target: Path) -> str:
    name = os.fsencode(target.name)[:_LONGEST_NAME_BYTES].decode("utf-8", "ignore")
    return f".{name}-"


def _still_ours(part: Path, file: BinaryIO) -> bool:
    """Lock a new part; False where another process has just taken it for an abandoned one."""
    with suppress(OSError):  # a file system without locks, where nobody removes what others left
        return try_lock(file.fileno()) and is_file_of(file.fileno(), part)
    return True


def _remove_abandoned(target: Path) -> None:
    """Remove the parts that killed processes left; whoever lives holds a lock on theirs."""
    parts = re.compile(re.escape(_prefix(target)) + "[0-9a-f]{12}" + re.escape(_ENDING))
    found: list[Path] = []
    with suppress(PermissionError):  # to write in a folder is not to list it
        found = [p for p in target.parent.iterdir() if parts.fullmatch(p.name)]
    for part in found:
        if _writing.get(part) != os.getpid():
            with suppress(OSError):  # another's, or gone by now: then it is no matter of ours
                _remove_if_abandoned(part)


def _remove_if_abandoned(part: Path) -> None:
    with part.open("r+b") as file:
        abandoned = try_lock(file.fileno())
        if abandoned and os.name != "nt":
            part.unlink()  # while it is locked, so that nobody can begin to use it
    if abandoned:  # Windows removes no open file
        part.unlink(missing_ok=True)


@contextmanager
def _removed_when_terminated(part: Path) -> Iterator[None]:
    """Remove a part before the process ends by a signal that would end it on the spot."""
    _writing[part] = os.getpid()
    in_main = threading.current_thread() is threading.main_thread()  # others may set no handlers
    ours = [s for s in _SIGNALS if in_main and signal.getsignal(s) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, _remove_and_end)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)
        del _writing[part]


def _remove_and_end(number: int, frame: Any) -> None:
    for part, process in _writing.items():
        if process == os.getpid():
            part.unlink(missing_ok=True)
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
