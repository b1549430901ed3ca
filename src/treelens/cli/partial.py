"""An output file that is written chunk by chunk, and continued after an interruption.

Chunks are appended to ``OUT.partial``; ``OUT.partial.json`` records how many rows and bytes are
done, and of which models and table. When all rows are done, ``OUT.partial`` becomes ``OUT``. What
was appended after the last record is cut off by the next run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any


class PartialOutput:
    """A context manager around one run; leaving it early keeps what was recorded.

    A run over other contents of ``reads`` (models, table) or with other settings is refused.
    """

    def __init__(self, out: Path, reads: Sequence[Path], settings: Mapping[str, Any]) -> None:
        from pooch import file_hash

        self.out, self.reads = out, list(reads)
        self.path = out.with_name(out.name + ".partial")
        self.record = out.with_name(out.name + ".partial.json")
        self.stamps = self._stamps()
        self.key = {**settings, "files": [file_hash(str(path)) for path in self.reads]}
        self.n_rows = 0
        self._file: IO[bytes] | None = None

    def __enter__(self) -> PartialOutput:
        self._file = open(self.path, "a+b")
        try:
            self.n_rows = self._resumed(self._file)
        except BaseException:
            self._file.close()
            raise
        self._n_bytes = self._file.seek(0, os.SEEK_END)
        return self

    def _resumed(self, file: IO[bytes]) -> int:
        """Cut off what was not recorded, and return how many rows are done."""
        done: dict[str, Any] = {}
        with suppress(FileNotFoundError, ValueError):
            done = json.loads(self.record.read_text())
        size = file.seek(0, os.SEEK_END)
        if not done or not done.get("rows") or size < done["bytes"]:
            file.truncate(0)
            return 0
        if done["key"] != self.key:
            raise ValueError(
                f"{self.path} was left by a run with another model, table or options. Remove it "
                "to begin again, or choose another --out."
            )
        file.truncate(done["bytes"])
        return int(done["rows"])

    def append(self, data: bytes, n_rows: int) -> None:
        """Write a chunk, then the record that it is done."""
        assert self._file is not None
        if os.fstat(self._file.fileno()).st_size != self._n_bytes:
            raise ValueError(f"{self.path} is written by another run. Choose another --out.")
        if self._stamps() != self.stamps:
            raise ValueError(
                "A model or the table was changed while its rows were predicted. Remove "
                f"{self.path} and begin again."
            )
        self._file.write(data)
        self._file.flush()
        os.fsync(self._file.fileno())
        self.n_rows += n_rows
        self._n_bytes = self._file.tell()
        done = {"rows": self.n_rows, "bytes": self._n_bytes, "key": self.key}
        new = self.record.with_name(self.record.name + ".new")
        new.write_text(json.dumps(done))
        os.replace(new, self.record)

    def finish(self) -> None:
        """Give the file its name, in one step."""
        assert self._file is not None
        if os.name == "nt":  # no open file can be renamed
            self._file.close()
        os.replace(self.path, self.out)
        self.record.unlink(missing_ok=True)

    def __exit__(self, kind: Any, *_: Any) -> None:
        assert self._file is not None
        self._file.close()
        if kind is not None and not self.n_rows:  # nothing to continue
            self.path.unlink(missing_ok=True)
            self.record.unlink(missing_ok=True)

    def _stamps(self) -> list[tuple[int, int]]:
        found = [path.stat() for path in self.reads]
        return [(stat.st_size, stat.st_mtime_ns) for stat in found]
