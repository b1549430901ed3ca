"""The pictures: values under the panels are the library's, files are whole and always the same."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from reproduction.data import StudyOptions
from reproduction.figures import DEPTH, LEFT, RIGHT, compare_nodes, run

from treelens import WassersteinWL, WLOptimalAssignment, WLSubtree, as_graph_collection


@pytest.fixture(scope="module")
def graphs():
    return as_graph_collection(
        [(list(g.edges), dict(enumerate(g.node_labels))) for g in (LEFT, RIGHT)]
    )


@pytest.mark.parametrize(
    ("kernel", "value"), [(WLSubtree, "subtree"), (WLOptimalAssignment, "optimal_assignment")]
)
def test_values_under_the_panels_are_the_kernels(graphs, kernel, value):
    matrix = kernel(depth=DEPTH, include_depth_zero=False).fit_transform(graphs)
    assert getattr(compare_nodes(), value) == pytest.approx(matrix[0, 1], abs=1e-9)


def test_transport_cost_is_the_wasserstein_distance(graphs):
    kernel = WassersteinWL(depth=DEPTH, gamma=1.0, include_depth_zero=False)
    assert compare_nodes().wasserstein == pytest.approx(
        -np.log(kernel.fit_transform(graphs)[0, 1]), abs=1e-7
    )


def test_plan_and_matching_are_feasible():
    comparison = compare_nodes()
    plan, matching = comparison.plan, comparison.assignment
    np.testing.assert_allclose(plan.sum(axis=1), 1 / LEFT.n_nodes, atol=1e-9)
    np.testing.assert_allclose(plan.sum(axis=0), 1 / RIGHT.n_nodes, atol=1e-9)
    assert (plan >= -1e-12).all()
    assert matching.sum(axis=1).tolist() == [1.0] * LEFT.n_nodes
    assert matching.sum(axis=0).max() == 1.0


def test_files_are_whole(tmp_path):
    run(StudyOptions(tmp_path))
    written = list((tmp_path / "figures").iterdir())
    assert {path.stem for path in written} == {
        "wl_scheme", "three_kernels", "hinges", "synthetic_substructures",
    }  # fmt: skip
    for path in written:
        if path.suffix == ".svg":
            assert ElementTree.parse(path).getroot().tag.endswith("svg")
        else:
            assert path.read_bytes().startswith(b"\x89PNG")
