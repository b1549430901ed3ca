"""Rows that repeat a molecule: found by canonical SMILES, told, and made into one row each.

The same molecule on both sides of a split makes every score look better than it is. So repeats are
merged unless somebody asks for something else: numbers to their mean, classes to the one that most
rows have. Whoever keeps them gets the groups that folds must not cut through. The same molecule
under other covariates is another measurement: only rows that agree in these are merged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from treelens.cli.console import InputError, counted

if TYPE_CHECKING:
    import numpy as np

    from treelens.cli.data import GraphData

DUPLICATES = ("merge", "first", "keep", "error")
_SHOWN = 5


def without_repeats(
    data: GraphData, how: str, note: Callable[[str], None], covariates: Sequence[str] = ()
) -> GraphData:
    """The data with each molecule once; ``how`` is one of :data:`DUPLICATES`.

    ``covariates`` are columns that rows have to agree in to be merged.
    """
    import numpy as np

    from treelens.graphs.duplicates import same_molecules

    if how not in DUPLICATES:
        raise InputError(f"--duplicates {how}: expected one of {', '.join(DUPLICATES)}.")
    if not {"smiles", "mol"} & set(data.graphs.graph_data):
        return data
    groups, n_stereo = same_molecules(data.graphs)
    first = np.unique(groups)
    n_repeats = len(groups) - len(first)
    data = replace(data, groups=groups)
    if not n_repeats:
        return data
    repeat = "repeats" if n_repeats == 1 else "repeat"
    found = f"{counted(n_repeats, 'row')} {repeat} the molecule of another row"
    found += _stereo_words(n_stereo)
    measured = _same_measurements(data, groups, covariates)
    torn = contradictions(replace(data, groups=measured))
    if how == "error":
        raise InputError(f"{found}. Merge them yourself, or say how with --duplicates.")
    if torn:
        note(_torn_words(data, torn))
    if how == "keep":
        note(f"{found}. They were kept: on both sides of a split they flatter every score.")
        return data
    counts = {**data.counts, f"rows of repeated molecules ({how})": n_repeats}
    if how == "first":
        note(f"{found}: only the first row of each was taken.")
        return replace(data.pick(first), counts=counts)
    return _merged_and_told(data, measured, n_repeats, found, covariates, note)


def tell_shared_names(data: GraphData, note: Callable[[str], None]) -> None:
    """That a name stands in several rows with different molecules: one of them may be wrong."""
    import numpy as np

    from treelens.graphs.duplicates import same_molecules

    if not data.ids or not {"smiles", "mol"} & set(data.graphs.graph_data):
        return
    column, names = next(iter(data.ids.items()))
    by_name: dict[str, list[int]] = {}
    for graph, row in enumerate(data.rows.tolist()):
        by_name.setdefault(names[row], []).append(graph)
    several = [some for name, some in by_name.items() if name and len(some) > 1]
    if not several:
        return
    groups = same_molecules(data.graphs[np.concatenate(several)]).groups
    ends = np.cumsum([len(some) for some in several])
    torn = [
        some
        for some, own in zip(several, np.split(groups, ends[:-1]), strict=True)
        if len(np.unique(own)) > 1
    ]
    if torn:
        note(_shared_words(data, column, torn))


def _shared_words(data: GraphData, column: str, torn: list[list[int]]) -> str:
    shown = []
    for some in torn[:_SHOWN]:
        rows = [str(int(data.rows[graph]) + 1) for graph in some]
        more = ", ..." if len(rows) > 4 else ""
        shown.append(f"{data.ids[column][int(data.rows[some[0]])][:40]!r} (rows "
                     f"{', '.join(rows[:4])}{more})")  # fmt: skip
    more = f" and {len(torn) - _SHOWN} more" if len(torn) > _SHOWN else ""
    return f"column {column!r} names different molecules alike: {', '.join(shown)}{more}."


def _same_measurements(
    data: GraphData, groups: np.ndarray, covariates: Sequence[str]
) -> np.ndarray:
    """Groups, by their first graph, of the same molecule under the same covariates."""
    import numpy as np

    if not covariates:
        return groups
    columns = [data.graphs.graph_data[name] for name in covariates]
    first_of: dict[tuple[Any, ...], int] = {}
    keys = zip(groups.tolist(), *(map(_value, column) for column in columns), strict=True)
    return np.array([first_of.setdefault(key, k) for k, key in enumerate(keys)])


def _value(text: Any) -> Any:
    """What a cell says: 25 and 25.0 are the same temperature."""
    from treelens.graphs.integers import is_number

    cell = str(text).strip()
    return float(cell) if is_number(cell) else cell


def _merged_and_told(
    data: GraphData,
    measured: np.ndarray,
    n_repeats: int,
    found: str,
    covariates: Sequence[str],
    note: Callable[[str], None],
) -> GraphData:
    """The measurements merged, with a line about them and about those that are not the same."""
    import numpy as np

    first = np.unique(measured)
    n_merged = len(measured) - len(first)
    n_kept = n_repeats - n_merged
    counts = dict(data.counts)
    if n_merged:
        counts["rows of repeated molecules (merge)"] = n_merged
    if n_kept:
        counts["rows of repeated molecules under other covariates"] = n_kept
    merged = _merged(replace(data, groups=measured, counts=counts), first)
    merging = _merging_words(data, len(first) - len(merged.graphs)) if n_merged else ""
    note(f"{found}: {_kept_words(n_kept, n_merged, covariates)}{merging}")
    assert data.groups is not None
    return replace(merged, groups=data.groups[np.isin(data.rows, merged.rows)])


def _kept_words(n_kept: int, n_merged: int, covariates: Sequence[str]) -> str:
    """That the same molecule under other covariates is no repeat."""
    if not n_kept:
        return ""
    stay = (
        f"{n_kept} of them under other covariates ({', '.join(covariates)}), kept as measurements "
        "of their own, which 'treelens evaluate' has on one side of every split"
    )
    return f"{stay}; {n_merged} under the same ones: " if n_merged else f"{stay}."


def contradictions(data: GraphData) -> list[np.ndarray]:
    """Graphs of one group with different classes, or numbers far apart.

    Far apart are numbers that differ by more than the standard deviation of all; the worst come
    first.
    """
    import numpy as np

    assert data.y is not None
    assert data.groups is not None
    order = np.argsort(data.groups, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(data.groups[order])) + 1)
    parts = [part for part in parts if len(part) > 1]
    if data.task != "regression":
        return [part for part in parts if len(np.unique(data.y[part])) > 1]
    apart = [(float(np.ptp(data.y[part])), part) for part in parts]
    limit = float(np.std(data.y))
    worst = sorted((x for x in apart if x[0] > limit), key=lambda x: -x[0])
    return [part for _, part in worst]


def _merged(data: GraphData, first: np.ndarray) -> GraphData:
    """One row for each molecule, that of its first; ties between classes are left out."""
    import numpy as np

    assert data.y is not None
    assert data.groups is not None
    _, which = np.unique(data.groups, return_inverse=True)
    together = np.split(np.argsort(which, kind="stable"), np.cumsum(np.bincount(which))[:-1])
    rows = tuple(data.rows[graphs] for graphs in together)
    if data.task == "regression":
        means = np.bincount(which, weights=data.y) / np.bincount(which)
        return replace(data.pick(first), y=means, merged=rows)
    classes, codes = np.unique(data.y, return_inverse=True)
    votes = np.zeros((len(first), len(classes)), dtype=np.int64)
    np.add.at(votes, (which, codes), 1)
    most = votes.max(axis=1)
    clear = (votes == most[:, None]).sum(axis=1) == 1
    winners = classes[votes.argmax(axis=1)]
    kept = tuple(rows[k] for k in np.flatnonzero(clear).tolist())
    return replace(data.pick(first[clear]), y=winners[clear], merged=kept)


def _stereo_words(n_stereo: int) -> str:
    if not n_stereo:
        return ""
    return (
        f" ({n_stereo} of them as another stereoisomer or isotope, which --atom-label and "
        "--bond-label can tell apart)"
    )


def _merging_words(data: GraphData, n_ties: int) -> str:
    if data.task == "regression":
        return "each molecule counts once, with the mean of its values."
    words = "each molecule counts once, with the class of most of its rows."
    were = "was" if n_ties == 1 else "were"
    return words if not n_ties else f"{words} {n_ties} with a tie {were} left out."


def _torn_words(data: GraphData, torn: list[np.ndarray]) -> str:
    assert data.y is not None
    other = "values far apart" if data.task == "regression" else "different classes"
    shown = []
    for part in torn[:_SHOWN]:
        said = ", ".join(f"{data.place(int(i))}: {_cell(data, int(i))}" for i in part[:4])
        shown.append(said + (", ..." if len(part) > 4 else ""))
    more = f"; and {len(torn) - _SHOWN} more" if len(torn) > _SHOWN else ""
    found = f"{counted(len(torn), 'repeated molecule')} with {other}"
    return f"{found}: {'; '.join(shown)}{more}."


def _cell(data: GraphData, graph: int) -> str:
    """What stands in the table."""
    if data.table is not None and data.target is not None:
        row = data.table.rows[int(data.rows[graph])]
        return row[data.table.columns.index(data.target)].strip()
    assert data.y is not None
    return str(data.y[graph])
