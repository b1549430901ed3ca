"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def whole_file(path: str | Path) -> Iterator[BinaryIO]:
    """A file to write bytes to, which appears under its name only once it is complete.

    The bytes go to a hidden file in the same folder; it takes the name at the end, in one step. On
    any error, Ctrl-C included, it is removed, and what stood under the name before is untouched.

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
    part = target.with_name(f".{target.name[:100]}-{secrets.token_hex(4)}.part")
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def checked_target(path: str | Path) -> Path:
    """Where ``path`` leads; an ``OSError`` that says why if no file can be written there."""
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
    return target
