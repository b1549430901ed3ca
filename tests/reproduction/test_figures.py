"""The pictures: values under the panels are the library's, files are whole and always the same."""

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


def test_values_under_the_panels_are_the_kernels(graphs):
    found, options = compare_nodes(), {"depth": DEPTH, "include_depth_zero": False}
    for kernel, value in (
        (WLSubtree, found.subtree),
        (WLOptimalAssignment, found.optimal_assignment),
    ):
        assert value == pytest.approx(kernel(**options).fit_transform(graphs)[0, 1], abs=1e-9)
    kernel = WassersteinWL(gamma=1.0, **options).fit_transform(graphs)[0, 1]
    assert found.wasserstein == pytest.approx(-np.log(kernel), abs=1e-7)


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
