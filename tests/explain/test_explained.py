"""What every node adds: with the base, it makes up the decision."""

from __future__ import annotations

import numpy as np

import treelens as tl
from treelens.explain.explained import explained_by


def test_a_machines_nodes_and_base_add_up_to_its_decisions():
    smiles = [f"{'C' * k}{end}" for k in range(1, 7) for end in ("Cl", "O", "N")]
    machine = tl.GraphSVC("tanimoto", 2, 0, 1.0, 10.0).fit(smiles, ["bad", "good", "good"] * 6)
    graphs = machine._new_graphs(smiles)
    found = explained_by(machine._decision, graphs)
    sums = np.bincount(found.seen.graph_of_node, weights=found.seen.phi, minlength=len(graphs))
    np.testing.assert_allclose(found.base + sums, machine.decision_function(graphs), atol=1e-9)
    np.testing.assert_allclose(found.decisions, machine.decision_function(graphs), atol=1e-9)
