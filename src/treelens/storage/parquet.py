"""Tables written to Parquet part by part, in memory that does not grow with them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from treelens.array_checks import Columns
from treelens.storage.files import whole_file


@contextmanager
def parquet_file(
    path: Path, numbers: Collection[str], truths: Collection[str] = ()
) -> Iterator[Callable[[Columns], None]]:
    """Yield what appends a part, as a row group; the file appears once it is complete.

    Columns of ``numbers`` are floats, those of ``truths`` booleans and ``row`` is whole, whatever
    a part holds; all others are texts. Where nothing is known they are null.
    """
    try:
        import pyarrow
        from pyarrow.parquet import ParquetWriter
    except ImportError as error:
        raise ImportError(f"Writing {path} needs pyarrow: pip install pyarrow.") from error

    def array(name: str, values: np.ndarray) -> pyarrow.Array:
        if name == "row":
            return pyarrow.array(values.astype(np.int64))
        if name in numbers:
            return pyarrow.array(values.astype(np.float64), from_pandas=True)
        write, kind = (bool, pyarrow.bool_()) if name in truths else (str, pyarrow.string())
        cells = [None if x is None or x != x or x == "" else write(x) for x in values.tolist()]
        return pyarrow.array(cells, kind)

    writer = None

    def append(columns: Columns) -> None:
        nonlocal writer
        part = pyarrow.table({name: array(name, x) for name, x in columns.items()})
        writer = writer or ParquetWriter(file, part.schema)
        writer.write_table(part)

    with whole_file(path) as file:
        try:
            yield append
        finally:
            if writer is not None:
                writer.close()
