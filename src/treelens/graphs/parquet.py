"""Parquet files as tables of text."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from treelens.graphs.errors import GraphDataError
from treelens.graphs.opening import check_regular, read_bytes
from treelens.graphs.tables import Table


def read_parquet(path: Path) -> Table:
    """The columns of a Parquet file, before them an index that has a name."""
    import pandas as pd

    check_regular(path)
    packed = path.suffix.lower() == ".gz"
    source: Any = io.BytesIO(read_bytes(path)) if packed else path
    try:
        # Whole numbers with gaps between them would be floats otherwise: "1.0" in place of "1".
        frame = pd.read_parquet(source, engine="pyarrow", dtype_backend="numpy_nullable")
    except ImportError as error:
        raise ImportError(
            f"Reading {path} needs a Parquet library: pip install 'treelens[parquet]'."
        ) from error
    except (ValueError, OSError, NotImplementedError, TypeError) as error:  # on bad files
        raise GraphDataError(
            f"{path} cannot be read as Parquet: {str(error).rstrip('.')}. Write it anew, or save "
            "the table as CSV."
        ) from error
    kept = [name for name in frame.index.names if name is not None and name not in frame.columns]
    frame = frame.reset_index(level=kept) if kept else frame
    columns = [_texts(frame.iloc[:, k]) for k in range(frame.shape[1])]
    rows = [list(row) for row in zip(*columns, strict=True)]
    return Table(str(path), [str(name) for name in frame.columns], rows, None)


def _texts(column: Any) -> list[str]:
    """Values as texts; what is missing is empty."""
    missing = column.isna().tolist()
    return ["" if gone else _text(value) for value, gone in zip(column, missing, strict=True)]


def _text(value: Any) -> str:
    """A value as text; programs without a type for text store it as bytes."""
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else str(value)
