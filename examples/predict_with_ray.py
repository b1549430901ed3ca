"""Predict a large table with Ray: each part goes through ``treelens.predict_partition``.

    python examples/predict_with_ray.py model.treelens library.parquet predictions/

Needs ``pip install "ray[data]"``.
"""

import sys
from functools import partial
from pathlib import Path

import ray

import treelens as tl


def main(model: str, table: str, out: str) -> None:
    predict = partial(tl.predict_partition, Path(model).read_bytes())
    rows = ray.data.read_parquet(table)
    rows.map_batches(predict, batch_format="pandas", batch_size=5000).write_parquet(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
