"""A comparison of two models as notebooks and pages show it. All text from data is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from treelens.explain.draw import Style, draw_graph

if TYPE_CHECKING:
    from treelens.explain.comparison import Comparison

_MOST_ROWS = 15
_LARGEST_DRAWN = 400  # nodes; a drawing of more says nothing
_LONGEST_NAME = 60


def comparison_html(found: Comparison) -> str:
    """Sentences, the fragments that differ, and the graphs that differ with drawings.

    Examples
    --------
    >>> import treelens as tl
    >>> graphs, y = tl.make_synthetic(n_per_substructure=3, random_state=0)
    >>> deep, flat = (tl.GraphClassifier(depth=d).fit(graphs, y) for d in (2, 0))
    >>> comparison_html(deep.compare(flat, graphs)).count("<table>")
    2
    """
    parts = [f"<p>{escape(' '.join(sentences(found)))}</p>"]
    if len(found.fragments):
        parts += ["<h3>Fragments that count differently</h3>", fragment_rows(found)]
    parts += ["<h3>Graphs that the models disagree on most</h3>", graph_rows(found)]
    return f'<div class="comparison">{"".join(parts)}</div>'


def sentences(found: Comparison) -> list[str]:
    """How far the models agree, in words."""
    told, n = found.agreement, found.agreement["n_graphs"]
    if "same" in told:
        kappa = "" if told["kappa"] is None else f" (Cohen's kappa {told['kappa']:.2f})"
        lines = [f"On {told['same']:.1%} of {n:,} graphs a and b name the same class{kappa}."]
        if told.get("rank_correlation") is not None:
            lines.append(f"Decision values: rank correlation {told['rank_correlation']:.3f}.")
        score = "Accuracy"
    else:
        lines = [
            f"On {n:,} graphs a and b differ by {told['rms_difference']:.3g} (root mean square); "
            f"b says {told['mean_difference']:+.3g} on average."
        ]
        if told["correlation"] is not None:
            lines.append(f"Correlation {told['correlation']:.3f}.")
        score = "Root mean squared error"
    if "score_a" in told:
        lines.append(f"{score}: a {told['score_a']:.3f}, b {told['score_b']:.3f}.")
    if len(found.fragments):
        lines.append(
            f"Of the {len(found.fragments)} fragments that differ most, "
            f"{int(found.fragments['sure'].sum())} surely do; effects are in "
            f"{found.fragments.attrs['units']}"
            f"{'' if found.toward is None else f', for {found.toward}'}."
        )
    else:
        lines.append("There are no fragments that both models could be asked about.")
    return lines


def fragment_rows(found: Comparison, most: int = _MOST_ROWS) -> str:
    """The table of fragments, each drawn in a small graph that holds it."""
    head = ["drawn", "fragment", "effect in a", "effect in b", "b less a", "found by", "graphs"]
    rows = []
    for (rank, row), picture in zip(
        found.fragments.head(most).iterrows(), found.pictures[:most], strict=True
    ):
        graph, place = picture
        name = str(row["name"] or row["pattern"])
        if "class_label" in row:
            name = f"{name}, for {row['class_label']}"
        title = f"Fragment {rank}: {name[:_LONGEST_NAME]}, {len(place.nodes)} nodes highlighted"
        style = Style(200, 130, legend=False, title=title)
        drawing = "" if graph.n_nodes > _LARGEST_DRAWN else draw_graph(
            graph, highlight=place, style=style
        )  # fmt: skip
        cells = [
            name, _with_error(row["effect_a"], row["error_a"]),
            _with_error(row["effect_b"], row["error_b"]),
            _with_error(row["difference"], row["error"]), row["found_by"], f"{row['support']:,}",
        ]  # fmt: skip
        rows.append([str(drawing), *(escape(str(cell)) for cell in cells)])
    return _table(head, rows)


def graph_rows(found: Comparison, most: int = _MOST_ROWS) -> str:
    """The table of graphs; the first are drawn as either model sees them."""
    numbers = "probability_a" not in found.graphs
    truth = ["truth"] if "truth" in found.graphs else []
    head = ["graph", *truth, "a", "b", _apart_in_words(found), "in a", "in b"]
    rows = []
    for index, row in found.graphs.head(most).iterrows():
        said = [_said(row, side, numbers) for side in ("a", "b")]
        cells = [_cut(row["name"]), *(_plain(row[t]) for t in truth), *said,
                 _apart(row)]  # fmt: skip
        drawings: Sequence[str] = ("", "")
        if index in found.drawn and found.drawn[int(index)].graph.n_nodes <= _LARGEST_DRAWN:  # type: ignore[arg-type, call-overload]
            drawings = draw_pair(found, int(index))  # type: ignore[arg-type, call-overload]
        rows.append([*(escape(cell) for cell in cells), *drawings])
    return _table(head, rows)


def draw_pair(found: Comparison, index: int) -> tuple[str, str]:
    """A graph coloured by what its nodes add in a and in b, on one scale of colours."""
    graph, both = found.drawn[index]
    limit = float(max(np.abs(x).max(initial=0.0) for x in both))
    name = _cut(found.graphs.loc[index, "name"])
    one, other = (
        draw_graph(
            graph,
            contributions,
            style=Style(
                240, 170, legend=False, limit=limit or None,
                title=f"{name} coloured by what its nodes add in {side}; together "
                f"{contributions.sum():+.2f}",
            ),
        )
        for side, contributions in zip("ab", both, strict=True)
    )  # fmt: skip
    return str(one), str(other)


def _apart_in_words(found: Comparison) -> str:
    """What the column of differences holds: what less what, and of which class."""
    if "probability_a" not in found.graphs:
        return "b less a"
    return f"probability in b less in a{'' if found.toward is None else f', of {found.toward}'}"


def _apart(row: Any) -> str:
    of_class = f" ({row['class_label']})" if "class_label" in row else ""
    return f"{row['difference']:+.3f}{of_class}"


def _said(row: Any, side: str, numbers: bool) -> str:
    said = _plain(row[side])
    return said if numbers else f"{said} ({row[f'probability_{side}']:.2f})"


def _plain(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _cut(name: Any) -> str:
    text = str(name)
    return text if len(text) <= _LONGEST_NAME else text[: _LONGEST_NAME - 1] + "…"


def _with_error(value: float, error: float) -> str:
    return f"{value:+.3f} ± {error:.3f}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Cells are markup already."""
    first = "".join(f'<th scope="col">{escape(text)}</th>' for text in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{first}</tr></thead><tbody>{body}</tbody></table>"
