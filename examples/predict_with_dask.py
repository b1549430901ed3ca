"""Predict a large table with Dask: each part goes through ``treelens.predict_partition``.

    python examples/predict_with_dask.py model.treelens "library-*.parquet" predictions/

Needs ``pip install "dask[dataframe]" distributed pyarrow``; a fourth argument is the address of a
scheduler.
"""

import sys
from functools import partial
from pathlib import Path

import dask.dataframe as dd
from distributed import Client

import treelens as tl


def main(model: str, tables: str, out: str, scheduler: str | None = None) -> None:
    predict = partial(tl.predict_partition, Path(model).read_bytes())
    with Client(scheduler):
        frame = dd.read_parquet(tables)
        columns = predict(frame.head(0))  # names and types of the predictions
        frame.map_partitions(predict, meta=columns).to_parquet(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
