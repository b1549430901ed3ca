"""Molecules as RDKit draws them, with atoms and bonds coloured by contribution."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

import numpy as np

from treelens.explain.decode import Occurrence
from treelens.explain.palette import INK, color_limit, diverging_rgb
from treelens.explain.scene import LEGEND_HEIGHT, Scene, legend_marks
from treelens.graphs.collection import Graph
from treelens.graphs.errors import GraphDataError
from treelens.graphs.molecules import molecule_of

if TYPE_CHECKING:
    from treelens.explain.draw import Style

_ATOM_RADIUS = 0.4  # in RDKit's units: a bond is about 1.5 long
_PATTERN_COLOR = (0.55, 0.85, 0.72)
_ROOT_COLOR = (0.0, 0.62, 0.45)
_PNG_SCALE = 2  # pixels of a PNG per unit of the style, for sharp letters


def draw_molecule(
    graph: Graph,
    node_contributions: np.ndarray | None,
    edge_contributions: np.ndarray | None,
    highlight: Occurrence | None,
    format: str,
    style: Style,
) -> Any:
    """An SVG text or PNG bytes of a molecule; see :func:`treelens.explain.draw.draw_graph`."""
    molecule = molecule_of(graph)
    if molecule is None:
        raise GraphDataError("This graph is no molecule: draw it with engine='plain'.")
    limit = color_limit(node_contributions, edge_contributions)
    limit = limit if style.limit is None else style.limit
    atoms = _atom_colors(node_contributions, highlight, limit)
    bonds = _bond_colors(molecule, graph, edge_contributions, highlight, limit)
    legend = None
    if style.legend and not (node_contributions is None and edge_contributions is None):
        marks = legend_marks(style.width, 0.0, limit, style.legend_ends)
        legend = Scene(style.width, LEGEND_HEIGHT, "", tuple(marks))
    if format == "svg":
        return _svg_sheet(_rdkit_drawing(molecule, atoms, bonds, style, "svg"), legend, style)
    return _png_sheet(_rdkit_drawing(molecule, atoms, bonds, style, "png"), legend)


def _atom_colors(
    contributions: np.ndarray | None, highlight: Occurrence | None, limit: float
) -> dict[int, tuple[float, ...]]:
    if contributions is not None:
        return {atom: diverging_rgb(float(x), limit) for atom, x in enumerate(contributions)}
    if highlight is not None:
        centre = {highlight.root: _ROOT_COLOR} if highlight.root >= 0 else {}
        return {**dict.fromkeys(highlight.nodes, _PATTERN_COLOR), **centre}
    return {}


def _bond_colors(
    molecule: Any,
    graph: Graph,
    contributions: np.ndarray | None,
    highlight: Occurrence | None,
    limit: float,
) -> dict[int, tuple[float, ...]]:
    """Colours by contribution, and over them the bonds of a pattern that is to be shown."""
    colors: dict[int, tuple[float, ...]] = {}
    if contributions is not None:
        for (u, v), x in zip(graph.edges, contributions, strict=True):
            colors[molecule.GetBondBetweenAtoms(u, v).GetIdx()] = diverging_rgb(float(x), limit)
    if highlight is not None:
        for u, v in highlight.edges:
            colors[molecule.GetBondBetweenAtoms(u, v).GetIdx()] = _PATTERN_COLOR
    return colors


def _rdkit_drawing(molecule: Any, atoms: dict, bonds: dict, style: Style, format: str) -> Any:
    from rdkit.Chem.Draw import rdMolDraw2D

    if format == "svg":
        drawer = rdMolDraw2D.MolDraw2DSVG(style.width, style.height)
    else:
        drawer = rdMolDraw2D.MolDraw2DCairo(_PNG_SCALE * style.width, _PNG_SCALE * style.height)
    options: Any = drawer.drawOptions()  # RDKit's stub has each option as an options object
    options.useBWAtomPalette()  # elements in colour would fight with the contributions
    options.padding = 0.08
    rdMolDraw2D.PrepareAndDrawMolecule(
        drawer, molecule, highlightAtoms=list(atoms), highlightBonds=list(bonds),
        highlightAtomColors=atoms, highlightBondColors=bonds,
        highlightAtomRadii=dict.fromkeys(atoms, _ATOM_RADIUS),
    )  # fmt: skip
    drawer.FinishDrawing()
    return drawer.GetDrawingText()


def _svg_sheet(drawing: str, legend: Scene | None, style: Style) -> str:
    """RDKit's drawing over the legend, on white ground since its bonds are black."""
    height = style.height + (0 if legend is None else LEGEND_HEIGHT)
    inner = drawing[drawing.index("<svg") :].rstrip()
    if legend is not None:
        below = legend.to_svg().replace("<svg ", f'<svg y="{style.height}" ', 1)
        inner += below.replace("<title></title>", "")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{style.width}" height="{height}" '
        f'viewBox="0 0 {style.width} {height}" role="img" color="{INK}">'
        f"<title>{escape(style.title)}</title>"
        f'<rect width="100%" height="100%" fill="#fff"/>{inner}</svg>'
    )


def _png_sheet(drawing: bytes, legend: Scene | None) -> bytes:
    if legend is None:
        return drawing
    from PIL import Image

    above, below = Image.open(io.BytesIO(drawing)), Image.open(io.BytesIO(legend.to_png()))
    sheet = Image.new("RGB", (above.width, above.height + below.height), "white")
    sheet.paste(above, (0, 0))
    sheet.paste(below, (0, above.height))
    buffer = io.BytesIO()
    sheet.save(buffer, format="PNG")
    return buffer.getvalue()
