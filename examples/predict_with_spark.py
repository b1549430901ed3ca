"""Predict a large table with Spark: each part goes through ``treelens.predict_partition``.

    python examples/predict_with_spark.py model.treelens library.parquet predictions/

Needs ``pip install pyspark pyarrow`` and Java; treelens has to be installed on the workers.
"""

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pandas as pd
from pyspark.sql import SparkSession

import treelens as tl


def main(model: str, table: str, out: str) -> None:
    predict = partial(tl.predict_partition, Path(model).read_bytes())

    def predict_all(parts: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        return map(predict, parts)

    spark = SparkSession.builder.getOrCreate()
    rows = spark.read.parquet(table)
    columns = predict(rows.limit(1).toPandas().iloc[:0])  # names and types of the predictions
    schema = ", ".join(
        f"`{name}` {'double' if kind.kind == 'f' else 'string'}"
        for name, kind in columns.dtypes.items()
    )
    rows.mapInPandas(predict_all, schema).write.parquet(out)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
