"""Predictions of one part of a table, for engines that share a large one out.

Dask, Ray and Spark call :func:`predict_partition` as it is: it takes the bytes of a model file and
a DataFrame, and returns one with the same columns, of the same types, whatever the rows.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from treelens.chem.predicted_rows import NamedModel, name_models, predict_molecules
from treelens.estimators.model_files import estimator_of
from treelens.estimators.prediction_table import file_columns, text_columns
from treelens.graphs.tables import Table
from treelens.storage.files import read_archive

_MODELS_KEPT = 4  # of a process that predicts with several


def predict_partition(model: bytes, frame: pd.DataFrame, smiles: str | None = None) -> pd.DataFrame:
    """Predict the molecules of a part of a table.

    A process reads the model when it first meets it. Molecules that cannot be read keep their row,
    with the reason in ``problem``.

    Parameters
    ----------
    model : bytes
        The contents of a file that ``model.save(path)`` or ``treelens fit`` wrote.
    frame : DataFrame
        One row for each molecule; columns that name them, and covariates of the model, are found
        as in the training table.
    smiles : str, optional
        The column with the SMILES; by default the one of the training table, or that is called so.

    Returns
    -------
    DataFrame
        With the index of ``frame``: names, SMILES, predictions and ``problem``, as in the file of
        ``treelens predict``. Numbers are floats, ``in_domain`` is "True" or "False", empty where a
        molecule could not be read, so that every part has the same types.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pandas as pd
    >>> import treelens as tl
    >>> smiles = ["CCO", "CCCO", "CCCCO", "CCN", "CCCN", "CCCCN"]
    >>> path = pathlib.Path(tempfile.mkdtemp(), "model.treelens")
    >>> tl.GraphRegressor(depth=1).fit(smiles, [1.0, 1.1, 1.2, 2.0, 2.1, 2.2]).save(path)
    >>> part = pd.DataFrame({"smiles": ["CCCCCO", "no molecule"]}, index=[7, 8])
    >>> found = tl.predict_partition(path.read_bytes(), part)
    >>> found.index.tolist(), found["prediction"].isna().tolist()
    ([7, 8], [False, True])
    """
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(f"frame must be a DataFrame, got {type(frame).__name__}.")
    if not isinstance(model, bytes):
        raise TypeError(
            f"model must be the bytes of a model file, got {type(model).__name__}: give "
            "pathlib.Path(path).read_bytes()."
        )
    named = _loaded(model)
    texts = frame.astype(object).where(frame.notna(), "").astype(str)
    columns = [str(name) for name in frame.columns]
    rows = texts.to_numpy().tolist() or [[""] * len(columns)]  # for the types of an empty part
    table = Table("the part of the table", columns, rows, None)
    found = predict_molecules([named], table, smiles=smiles).columns.frame().drop(columns="row")
    names = [n for n in file_columns(named.model) if not n.endswith("in_domain")]
    numbers = set(names) - set(text_columns(named.model))
    for name, column in found.items():
        if name in numbers:
            found[name] = column.astype(np.float64)
        else:
            found[name] = column.astype(object).where(column.notna(), "").astype(str)
    return found[: len(frame)].set_axis(frame.index, axis=0)


@lru_cache(maxsize=_MODELS_KEPT)
def _loaded(model: bytes) -> NamedModel:
    estimator = estimator_of(read_archive(model), "the model")
    (named,) = name_models([Path("the model")], [estimator])
    return named
