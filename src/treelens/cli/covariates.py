"""``--covariates`` and ``--descriptors``: columns of the table that stand beside the graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from treelens.cli.console import InputError

if TYPE_CHECKING:
    from treelens.cli.data import GraphData

DESCRIPTORS = ("rdkit",)
_COMPUTED = "rdkit:"
_MOST_LOOKED_AT = 1000  # training graphs, for how much covariates say


def asked_covariates(covariates: str | None, descriptors: str | None) -> list[str]:
    """Names from the two options, each once."""
    names = [name.strip() for name in (covariates or "").split(",") if name.strip()]
    if covariates is not None and not names:
        raise InputError("--covariates names no column.")
    if descriptors is not None:
        if descriptors not in DESCRIPTORS:
            raise InputError(
                f"--descriptors {descriptors}: known are {', '.join(DESCRIPTORS)} (RDKit's)."
            )
        names.append(descriptors)
    return list(dict.fromkeys(names))


def table_columns(names: Sequence[str]) -> list[str]:
    """Those covariates that are columns of a table: descriptors are computed."""
    return [n for n in names if n not in DESCRIPTORS and not n.startswith(_COMPUTED)]


def refuse_the_answer(names: Sequence[str], target: str | None, smiles: str | None) -> None:
    """The target cannot stand beside the graphs that it is predicted from, nor can these."""
    for column, what in ((target, "what is to be predicted"), (smiles, "the molecules")):
        if column is not None and column in names:
            raise InputError(f"--covariates {column}: that column is {what}. Leave it out.")


def with_columns(data: GraphData, names: Sequence[str]) -> GraphData:
    """The same graphs, holding columns of the table they came from.

    Descriptors are computed where they are needed, and are no columns.
    """
    wanted = table_columns(names)
    if not wanted:
        return data
    if data.table is None:
        raise InputError(
            f"--covariates {','.join(wanted)}: {data.source} is no table, and has no columns."
        )
    unknown = [name for name in wanted if name not in data.table.columns]
    if unknown:
        raise InputError(
            f"{data.source} has no column {unknown[0]!r}, which is a covariate. Its columns are: "
            f"{', '.join(map(repr, data.table.columns))}."
        )
    rows = data.rows.tolist()
    columns = {name: data.table.column(name, "covariates") for name in wanted}
    picked = {name: [values[row] for row in rows] for name, values in columns.items()}
    return replace(data, graphs=data.graphs.with_data(picked))


def needed_by(model: Any) -> list[str]:
    """The covariates that a fitted model asks for; support vector machines have none."""
    return list(getattr(model, "covariates_", []))


def always_with(model: Any, names: Sequence[str]) -> Any:
    """An estimator that is fitted with these covariates wherever somebody fits it."""
    kind = type(model)

    def fit(self: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
        return kind.fit(self, X, y, sample_weight, covariates=list(names))

    own = type(kind.__name__, (kind,), {"fit": fit, "__module__": kind.__module__})
    return own(**model.get_params(deep=False))


def covariate_facts(model: Any) -> dict[str, Any] | None:
    """What covariates say in a fitted model, apart from structure; None where there are none.

    Both parts are those of the fitted values, which they add up to but for a constant: values that
    were predicted without their graph would have no such parts.
    """
    import numpy as np

    from treelens.patterns.features import select_features

    fitted = model.model_
    if fitted.covariates is None:
        return None
    some = np.random.default_rng(0).permutation(fitted.training.histograms.n_graphs)
    graphs = select_features(fitted.training_graphs, some[:_MOST_LOOKED_AT])
    said = fitted.from_covariates(graphs)  # (n, n_columns)
    whole = fitted.kernel_rows(graphs, model._n_jobs()) @ fitted.coefficients.T
    return {
        "names": fitted.covariates.table.names,
        "spread": float(said.std(axis=0).mean()),
        "spread_of_structure": float((whole - said).std(axis=0).mean()),
        "length": fitted.covariates.scales.length,
    }


def covariate_sentence(facts: dict[str, Any]) -> str:
    """The same in words."""
    names = facts["names"]
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return (
        f"Covariates: {shown}. What they add to the fitted values has a standard "
        f"deviation of {facts['spread']:.3g}, what structure adds one of "
        f"{facts['spread_of_structure']:.3g}."
    )
