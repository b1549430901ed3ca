"""The table of predictions: a line for every row of the source, the columns of one model or more.

First come the row, what names it and its SMILES; then, model by model, the columns of
:mod:`treelens.cli.predict_columns`, of several models with their targets before the names; last
what is wrong with rows that could not be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from treelens.cli.molecules import reasons
from treelens.cli.predict_columns import class_columns, number_columns

if TYPE_CHECKING:
    import pandas as pd

    from treelens.cli.data import GraphData
    from treelens.cli.predict_models import NamedModel


class PredictedTable(NamedTuple):
    """Predictions of all rows; lines of those that could not be read are empty."""

    whole: pd.DataFrame  # what is written
    of_models: list[pd.DataFrame]  # the columns of each model, under their plain names


def predicted_table(models: Sequence[NamedModel], sets: Sequence[GraphData]) -> PredictedTable:
    """What models say of rows, each of its own reading of them."""
    import pandas as pd

    own = [
        _by_row(_columns(each.model, data), data) for each, data in zip(models, sets, strict=True)
    ]
    alike = len({data.graphs.recipe for data in sets}) == 1
    shared = _by_row(_smiles_made(sets[0]) if alike else {}, sets[0])
    blocks = []
    for each, data, columns in zip(models, sets, own, strict=True):
        made = _by_row({} if alike else _smiles_made(data), data)
        blocks.append(pd.concat([made, columns], axis=1).add_prefix(each.prefix))
    body: pd.DataFrame = pd.concat([shared, *blocks], axis=1)
    whole = pd.concat([_first_columns(sets[0], body.columns.tolist()), body], axis=1)
    return PredictedTable(whole.assign(problem=_problems(sets)), own)


def _columns(model: Any, data: GraphData) -> dict[str, Any]:
    from sklearn.base import is_regressor

    if is_regressor(model):
        return number_columns(model, data.graphs, data.transform)
    return class_columns(model, data.graphs)


def _by_row(columns: dict[str, Any], data: GraphData) -> pd.DataFrame:
    """Columns about the graphs, with an empty line for each row that could not be read."""
    import numpy as np
    import pandas as pd

    return pd.DataFrame(columns, index=data.rows).reindex(np.arange(data.n_rows))


def _first_columns(data: GraphData, taken: list[str]) -> pd.DataFrame:
    """``row`` (from 1), the columns that name the rows, and ``smiles`` where there are any."""
    import numpy as np
    import pandas as pd

    # A table may call its own columns so.
    free = {"row", "smiles", "problem", *taken}
    ids = {name if name not in free else f"{name} (given)": x for name, x in data.ids.items()}
    first = {"row": np.arange(1, data.n_rows + 1), **ids}
    if data.texts is not None:
        first["smiles"] = data.texts
    return pd.DataFrame(first, index=np.arange(data.n_rows))


def _smiles_made(data: GraphData) -> dict[str, list[str]]:
    """The SMILES of each molecule: of its standard form, or of what an SDF holds."""
    from treelens.graphs.gathering import rdkit

    known = data.graphs.graph_data
    name = "standard_smiles" if "standardized" in known else "smiles"
    if name == "smiles" and "mol" not in known:
        return {}
    if "smiles" in known:
        return {name: list(known["smiles"])}
    return {name: [rdkit().MolToSmiles(molecule) for molecule in known["mol"]]}


def _problems(sets: Sequence[GraphData]) -> pd.Series:
    """Why rows could not be read, by one model's reading at least."""
    import pandas as pd

    problem = pd.Series("", index=range(sets[0].n_rows), dtype="object")
    unreadable = {row for data in sets for row in data.unreadable_rows.tolist()}
    for row, why in reasons(sets[0].texts, sorted(unreadable)).items():
        problem[row] = why
    return problem
