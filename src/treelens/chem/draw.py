"""Drawings of molecules by RDKit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from treelens.chem.parsing import rdkit
from treelens.graphs.kinds import Painted

if TYPE_CHECKING:
    from rdkit.Chem import Mol

_ATOM_RADIUS = 0.4  # in RDKit's units: a bond is about 1.5 long


def draw_molecule(
    molecule: Mol, painted: Painted, size: tuple[int, int], format: str
) -> str | bytes:
    """Return SVG text or PNG bytes of a molecule, some atoms and bonds in colour."""
    from rdkit.Chem.Draw import rdMolDraw2D

    bonds = {molecule.GetBondBetweenAtoms(*e).GetIdx(): c for e, c in painted.edges.items()}
    kind: Any = rdMolDraw2D.MolDraw2DCairo if format == "png" else rdMolDraw2D.MolDraw2DSVG
    drawer = kind(*size)
    options = drawer.drawOptions()
    options.useBWAtomPalette()  # coloured elements would be mistaken for contributions
    options.padding = 0.08
    rdMolDraw2D.PrepareAndDrawMolecule(
        drawer,
        molecule,
        highlightAtoms=list(painted.nodes),
        highlightBonds=list(bonds),
        highlightAtomColors=dict(painted.nodes),
        highlightBondColors=bonds,
        highlightAtomRadii=dict.fromkeys(painted.nodes, _ATOM_RADIUS),
    )
    drawer.FinishDrawing()
    drawing: str | bytes = drawer.GetDrawingText()
    return drawing


def mol_block(molecule: object) -> str:
    """Return a molecule with its coordinates as text, from which it can be drawn."""
    return str(rdkit().MolToMolBlock(molecule))


def of_mol_block(text: str) -> Any:
    """Return the molecule of such a text."""
    return rdkit().MolFromMolBlock(text, removeHs=False)
