"""Molecules as a kind of graphs: what the core asks of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from treelens.chem.atom_terms import atom_terms, terms_table
from treelens.chem.descriptors import (
    COMPACT_DESCRIPTORS,
    descriptor_names,
    descriptors_in,
    rdkit_descriptors,
)
from treelens.chem.ecfp import fingerprint_counts
from treelens.chem.identity import stereo_matters
from treelens.chem.molecules import molecule_of, molecules_by_recipe, smiles_by_recipe
from treelens.chem.parsing import molecules_behind, parsed_smiles, quiet, rdkit
from treelens.chem.recipe import READERS, MoleculeRecipe, recipe_for_molecules
from treelens.chem.sdf import read_sdf
from treelens.errors import GraphDataError
from treelens.graphs.kinds import (
    DESCRIPTOR_PREFIX,
    FragmentWriter,
    GraphKind,
    InputKind,
    Painted,
    register,
)
from treelens.graphs.tables import Table, is_sdf

if TYPE_CHECKING:
    from treelens.explain.fragment_search import ExplainedGraphs
    from treelens.graphs.collection import Graph, GraphCollection
    from treelens.graphs.kinds import GraphRecipe


def _from_smiles(items: Sequence[str], recipe: GraphRecipe | None) -> GraphCollection:
    return smiles_by_recipe(items, recipe_for_molecules(recipe, "smiles"))


def _from_rdkit(items: Sequence[Any], recipe: GraphRecipe | None) -> GraphCollection:
    """Hydrogens of RDKit molecules are removed where the graphs of the recipe have none."""
    if isinstance(recipe, MoleculeRecipe) and recipe.hydrogens is False:
        with quiet():
            items = [
                m if m.GetNumHeavyAtoms() == m.GetNumAtoms() else rdkit().RemoveHs(m) for m in items
            ]
    return molecules_by_recipe(items, recipe_for_molecules(recipe, "rdkit"))


class Molecules(GraphKind):
    """Molecules that were read with RDKit."""

    noun = "molecule"
    readers = READERS
    inputs = (
        InputKind("a SMILES string", lambda x: isinstance(x, str), _from_smiles),
        InputKind(
            "an RDKit molecule",
            lambda x: hasattr(x, "GetAtoms") and hasattr(x, "GetBonds"),
            _from_rdkit,
        ),
    )

    def holds(self, facts: Iterable[str]) -> bool:
        return not {"smiles", "mol"}.isdisjoint(facts)

    def stored_classes(self) -> dict[str, str]:
        return {
            "chem.recipe": "MoleculeRecipe",
            "chem.ecfp": "FingerprintForest",
            "chem.views": "Descriptors Ecfp",
        }

    # --- reading --------------------------------------------------------------------------------

    def read_file(self, path: Path, recipe: GraphRecipe | None) -> GraphCollection | None:
        if not is_sdf(path):
            return None
        own = recipe_for_molecules(recipe, "sdf")
        molecules, table = read_sdf(path, keep_hydrogens=bool(own.hydrogens))
        return molecules_by_recipe(molecules, own, table.place)

    def read_labelled(
        self, table: Table, target: str, recipe: GraphRecipe | None
    ) -> tuple[GraphCollection, np.ndarray]:
        from treelens.chem.table_reader import rows_of_table

        own = recipe_for_molecules(recipe, "smiles")
        read = rows_of_table(table, None, own, "smiles", "none")
        return read.labelled(target, on_invalid="skip")

    # --- telling molecules apart ----------------------------------------------------------------

    def texts(self, graphs: GraphCollection) -> tuple[str, ...] | None:
        data = graphs.graph_data
        if "smiles" in data:
            return tuple(str(text or "") for text in data["smiles"].tolist())
        return tuple(rdkit().MolToSmiles(molecule) for molecule in data["mol"].tolist())

    def writer_of_same(self, graphs: GraphCollection) -> Callable[[str], str]:
        stereo = stereo_matters(graphs)

        @cache
        def written(text: str) -> str:
            molecule = parsed_smiles([text])[0]
            return rdkit().MolToSmiles(molecule, isomericSmiles=stereo) if molecule else ""

        return written

    def copy_keys(self, graphs: GraphCollection) -> np.ndarray:
        return np.array([rdkit().MolToSmiles(molecule) for molecule in molecules_behind(graphs)])

    def families(self, graphs: GraphCollection) -> list[str]:
        from treelens.chem.scaffolds import murcko_scaffolds

        return murcko_scaffolds(molecules_behind(graphs))

    def fingerprints(self, graphs: GraphCollection) -> Any:
        return (fingerprint_counts(molecules_behind(graphs)) > 0).astype(float)

    # --- numbers --------------------------------------------------------------------------------

    def numbers(self, graphs: GraphCollection, names: Sequence[str]) -> dict[str, np.ndarray]:
        wanted = [name.removeprefix(DESCRIPTOR_PREFIX) for name in names]
        others = set(wanted) - set(COMPACT_DESCRIPTORS)
        if others and (strange := sorted(others - set(descriptor_names()))):
            raise GraphDataError(f"RDKit has no descriptor {strange[0]!r}.")
        molecules = molecules_behind(graphs, stereo=not set(wanted) <= set(COMPACT_DESCRIPTORS))
        table = rdkit_descriptors(molecules, wanted, graphs)
        return {name: table[:, k] for k, name in enumerate(names)}

    def number_names(self, wanted: str) -> list[str]:
        return [DESCRIPTOR_PREFIX + name for name in descriptors_in(wanted)]

    def summed_names(self) -> frozenset[str]:
        return frozenset(DESCRIPTOR_PREFIX + name for name in terms_table())

    def node_terms(self, graphs: GraphCollection, names: Sequence[str]) -> dict[str, np.ndarray]:
        own = {name.removeprefix(DESCRIPTOR_PREFIX): name for name in names}
        found = atom_terms(graphs, molecules_behind(graphs, stereo=False), own)
        return {own[name]: terms for name, terms in found.items()}

    def even_shares(self, graphs: GraphCollection) -> np.ndarray:
        """Heavy atoms share it; hydrogens that are nodes only where there is nothing else."""
        names, codes = graphs.node_alphabet, graphs.node_codes
        if graphs.fine_alphabet is not None and graphs.fine_codes is not None:
            names, codes = graphs.fine_alphabet, graphs.fine_codes
        heavy = np.array([str(name) != "H" for name in names], dtype=bool)[codes]
        owner = np.repeat(np.arange(len(graphs)), graphs.sizes)
        counts = np.bincount(owner, heavy, len(graphs))[owner]
        every = 1.0 / graphs.sizes[owner]
        return np.where(counts > 0, heavy / np.maximum(counts, 1), every)

    # --- pictures and words ---------------------------------------------------------------------

    def draw(
        self, graph: Graph, painted: Painted, size: tuple[int, int], format: str
    ) -> str | bytes | None:
        from treelens.chem.molecules import draw_molecule

        return draw_molecule(molecule_of(graph), painted, size, format)

    def fragment_writer(self, explained: ExplainedGraphs) -> FragmentWriter:
        from treelens.chem.smarts import MoleculeFragmentWriter

        return MoleculeFragmentWriter(explained)

    def text_of_part(self, graph: Graph, nodes: Sequence[int]) -> str | None:
        return str(rdkit().MolFragmentToSmiles(molecule_of(graph), list(nodes)))


register(Molecules())
