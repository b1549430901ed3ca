"""Locks on files: one process at a time, and a process that dies, however it dies, lets go."""

from __future__ import annotations

import errno
import os
import sys
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_TAKEN = {errno.EACCES, errno.EAGAIN, errno.EDEADLK}
_NO_LOCKS_HERE = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}
_FAR_OFF = 2**30  # Windows lets nobody read what is locked: lock a byte that nobody wants
_MOST_ATTEMPTS = 100


class InUseError(OSError):
    """Something that another process is writing to; the message says which process."""


def try_lock(descriptor: int) -> bool:
    """Lock an open file until it is closed; False where another process holds the lock.

    The lock is the process's: it is True again for a second call in the same process, and lost
    when that process closes the file, even one that it had opened a second time. An ``OSError``
    says that the file system knows no locks.
    """
    try:
        if sys.platform == "win32":
            os.lseek(descriptor, _FAR_OFF, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            os.lseek(descriptor, 0, os.SEEK_SET)
        else:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _TAKEN:
            return False
        raise
    return True


def is_file_of(descriptor: int, path: Path) -> bool:
    """Whether ``path`` still names the file that is open."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


@dataclass
class _Held:
    descriptor: int
    process: int
    n_holders: int = 1


_held: dict[Path, _Held] = {}
_guard = threading.Lock()


def hold_lock(path: str | Path, what: str) -> Callable[[], None]:
    """Lock ``what`` for this process by a lock file at ``path``; returns how to let go.

    Within a process the lock can be held several times; it is free when all have let go. The lock
    file is removed then. One that a killed process left behind does no harm: the lock went with
    the process.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "lock")
    >>> let_go = hold_lock(path, "the example")
    >>> path.exists(), let_go(), path.exists()
    (True, None, False)
    """
    path = Path(path).resolve()
    with _guard:
        held = _held.get(path)
        if held is not None and held.process == os.getpid():  # a fork inherits no locks
            held.n_holders += 1
        else:
            _held[path] = _Held(_locked_file(path, what), os.getpid())
    return lambda: _let_go(path)


def _let_go(path: Path) -> None:
    with _guard:
        held = _held.get(path)
        if held is None or held.process != os.getpid():
            return
        held.n_holders -= 1
        if held.n_holders:
            return
        del _held[path]
        if sys.platform == "win32":  # where no open file can be removed
            os.close(held.descriptor)
            _remove(path)
        else:  # while it is locked, or it might be another's by now
            _remove(path)
            os.close(held.descriptor)


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:  # it stays, and does no harm
        return


def _locked_file(path: Path, what: str) -> int:
    """The open, locked file; its text tells others who holds it."""
    for _ in range(_MOST_ATTEMPTS):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        if not _lock_if_possible(descriptor, what):
            holder = os.read(descriptor, 100).decode("utf-8", "replace").strip() or "unknown"
            os.close(descriptor)
            raise InUseError(
                f"{what} is being written by another run (process {holder}). Wait until it has "
                "ended, stop it, or choose another folder."
            )
        if is_file_of(descriptor, path):
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()}\n".encode())
            return descriptor
        os.close(descriptor)  # whoever held it removed it between our opening and locking it
    raise InUseError(f"{what}: the lock {path} comes and goes; try again.")


def _lock_if_possible(descriptor: int, what: str) -> bool:
    try:
        return try_lock(descriptor)
    except OSError as error:
        if error.errno not in _NO_LOCKS_HERE:
            os.close(descriptor)
            raise
        warnings.warn(
            f"{what} lies where files cannot be locked ({error.strerror}): see to it that no other "
            "run writes there.",
            stacklevel=4,
        )
        return True
