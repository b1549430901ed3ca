"""Explanations as notebooks show them: a drawing, a sentence, a table. All text is escaped."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from treelens.explain.draw import Style, draw_graph

if TYPE_CHECKING:
    from treelens.explain.contributions import Explanation

_MOST_PATTERNS = 8
_LARGEST_DRAWN = 400  # nodes; a drawing of more says nothing


def explanation_html(explanation: Explanation) -> str:
    """The graph coloured by what its nodes add, how that sums up, and the strongest patterns.

    Examples
    --------
    >>> import treelens as tl
    >>> graphs, y = tl.make_synthetic(n_per_substructure=3, random_state=0)
    >>> model = tl.GraphClassifier(depth=1).fit(graphs, y)
    >>> explanation_html(model.explain(graphs[0])).count("<svg")
    1
    """
    parts = [f"<p>{escape(summary_sentence(explanation))}</p>", _pattern_rows(explanation)]
    if 0 < explanation.graph.n_nodes <= _LARGEST_DRAWN:
        parts.insert(0, _drawing(explanation))
    return f"<div>{''.join(parts)}</div>"


def summary_sentence(explanation: Explanation) -> str:
    """How base and nodes add up to the prediction."""
    rest = explanation.decision - explanation.base
    what = (
        f"Predicted {explanation.decision:.3f}"
        if explanation.class_label is None
        else f"Predicted {explanation.predicted_class}; decision {explanation.decision:+.3f} for "
        f"{explanation.class_label}"
    )
    return f"{what}: base {explanation.base:+.3f}, nodes together {rest:+.3f}."


def _drawing(explanation: Explanation) -> str:
    numbers = explanation.class_label is None
    style = Style(
        title=summary_sentence(explanation),
        toward=None if numbers else str(explanation.class_label),
        ends=("lowers", "raises") if numbers else None,
    )
    return str(draw_graph(explanation.graph, explanation.node_contributions, style=style))


def _pattern_rows(explanation: Explanation) -> str:
    table = explanation.pattern_contributions.head(_MOST_PATTERNS)
    rows = "".join(
        f"<tr><td>{row['contribution']:+.3f}</td><td><code>{escape(str(row['pattern']))}</code>"
        f"</td><td>{row['depth']}</td><td>{row['count']}</td></tr>"
        for row in table.to_dict("records")
    )
    head = "".join(
        f'<th scope="col">{x}</th>' for x in ("contribution", "pattern", "depth", "nodes")
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
