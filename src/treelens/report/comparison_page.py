"""What two models see differently, as one HTML file that needs nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from markupsafe import Markup

import treelens
from treelens.explain.comparison import Comparison
from treelens.explain.comparison_html import fragment_rows, graph_rows, sentences
from treelens.report.render import fill_template, write_page


def write_comparison(found: Comparison, path: str | Path, names: tuple[str, str]) -> Path:
    """Write a comparison of two models: one HTML file, whole or not at all.

    Parameters
    ----------
    found : Comparison
        What ``model.compare(other, graphs)`` gives.
    path : str or Path
    names : tuple of str
        What to call the two models.
    """
    return write_page(path, lambda: render_comparison(found, names))


def render_comparison(found: Comparison, names: tuple[str, str]) -> str:
    """The page of a comparison."""
    summary: dict[str, Any] = {"treelens": treelens.__version__, "patterns": {"rows": []}}
    return fill_template(
        "comparison.html",
        (),
        summary,
        page_data={},
        names=names,
        sentences=sentences(found),
        toward=found.toward,
        units=found.fragments.attrs["units"],
        # Both escape what comes from data.
        fragment_rows=Markup(fragment_rows(found)) if len(found.fragments) else None,
        graph_rows=Markup(graph_rows(found)),
    )
