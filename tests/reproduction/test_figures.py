"""The pictures: values under the panels are the library's, files are whole and always the same."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from reproduction.figures import DEPTH, LEFT, RIGHT, compare_nodes, run_figures
from reproduction.synthetic_study import draw_substructures

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


def test_files_are_whole_and_the_page_shows_each_picture(tmp_path):
    written = run_figures(tmp_path)
    page = (tmp_path / "figures.md").read_text()
    assert "python -m reproduction figures" in page
    for path in written:
        if path.suffix == ".svg":
            assert ElementTree.parse(path).getroot().tag.endswith("svg")
        if path.suffix == ".png":
            assert path.read_bytes().startswith(b"\x89PNG")
            assert f"figures/{path.name}" in page


def test_the_same_sheet_gives_the_same_files(tmp_path):
    first = draw_substructures().save(tmp_path / "a", "sheet")
    second = draw_substructures().save(tmp_path / "b", "sheet")
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()
