"""Advice as one HTML file with drawings, which needs nothing else."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import pandas as pd
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from treelens.explain.draw import Style, draw_graph
from treelens.graphs.molecules import smiles_to_collection
from treelens.storage.files import whole_file

_SIZE = (230, 150)


def write_advice(table: pd.DataFrame, lead: str, path: str | Path) -> Path:
    """Write the table of :func:`treelens.advise` with a drawing of every molecule."""
    rows = [{**row, "drawing": _drawing(row["smiles"])} for row in table.to_dict("records")]
    text = resources.files("treelens.decisions").joinpath("advice.html").read_text("utf-8")
    template = Environment(autoescape=True, undefined=StrictUndefined).from_string(text)
    page = template.render(lead=lead, drawing=_drawing(lead), rows=rows)
    with whole_file(path) as file:
        file.write(page.encode("utf-8"))
    return Path(path)


def _drawing(smiles: str) -> Markup:
    style = Style(*_SIZE, legend=False, title=smiles)
    return Markup(draw_graph(smiles_to_collection([smiles])[0], style=style))
