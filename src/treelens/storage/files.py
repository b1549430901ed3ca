"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

_LONGEST_NAME_BYTES = 200  # of the 255 that file systems allow


@contextmanager
def whole_file(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file to write bytes to, which appears under its name only once it is complete.

    The bytes go to a hidden temporary file in the same folder, which is renamed at the end. On any
    exception, Ctrl-C included, it is removed, and an existing file stays as it was.

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
    name = os.fsencode(target.name)[:_LONGEST_NAME_BYTES].decode("utf-8", "ignore")
    part = target.with_name(f".{name}-{secrets.token_hex(6)}.part")
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def checked_target(path: str | Path, reads: Iterable[str | Path] = ()) -> Path:
    """Return the resolved path to write to; raise an error if no file can be written there.

    ``reads`` are the files that the output is made from: to write over one of them, under whatever
    name, is a ``ValueError``.
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
    for source in reads if target.exists() else ():
        with suppress(FileNotFoundError):
            if os.path.samefile(target, Path(source).expanduser()):
                raise ValueError(
                    f"{path} cannot be written: it is the same file as {source}, which is read "
                    "here and would be lost. Choose another name."
                )
    return target
