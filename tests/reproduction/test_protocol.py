"""The protocol uses the training part alone: equal to models that never see the rest."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from reproduction.methods import GRIDS, LEARNER, PAPER_METHODS, study_learner
from reproduction.protocol import DataSet, inner_splits, kernel_search, outer_split, run_wl_fold
from sklearn.base import clone

from reproduction import methods, protocol
from treelens import GraphSVC, RandomWalk, ShortestPath, make_synthetic
from treelens.patterns.histograms import PairFeatures, PatternHistograms
from treelens.patterns.vocabulary import PatternVocabulary
from treelens.svm.search import Candidate

METHODS = ["wwl", "wl_oa", "wl_subtree", "learned_wwl", "learned_wl_oa"]


@pytest.fixture(autouse=True)
def shallow(monkeypatch):
    """Two depths to choose from instead of six: the searches are what takes time here."""
    monkeypatch.setattr(protocol, "DEPTHS", (1, 2))


@pytest.fixture(scope="module")
def made() -> DataSet:
    graphs, y = make_synthetic(8, random_state=1)
    return DataSet.from_graphs("made", graphs, y)


def final_decisions(data: DataSet, choice: Candidate, train, test, seed=0) -> np.ndarray:
    """Decision values of the test part as the protocol computes them."""
    search = kernel_search(data, [(train, test)], protocol._learner({}, seed), final=True)
    return search.run([choice], race=False).decisions[choice][test, 0]


def apart_classifier(choice: Candidate, seed=0) -> GraphSVC:
    """A classifier with the setting that the protocol chose."""
    return GraphSVC(
        kernel=choice.kernel,
        depth=choice.depth,
        weight_radius=choice.weight_radius,
        C=choice.C,
        gamma=1.0 if choice.gamma is None else choice.gamma,
        edge_labels=False,
        learner=study_learner(random_state=seed, **LEARNER),
        random_state=0,
        progress=False,
    )


@pytest.mark.parametrize("method", METHODS)
def test_predictions_equal_a_classifier_that_sees_the_training_part_only(made, method):
    train, test = outer_split(made.codes, repetition=0, fold=3, seed=0)
    row = run_wl_fold(made, 0, 3, [method])[0]
    choice = Candidate(**row["choice"])
    model = apart_classifier(choice).fit(made.graphs[train], made.codes[train])
    decisions = model.decision_function(made.graphs[test])
    np.testing.assert_allclose(
        decisions, final_decisions(made, choice, train, test), rtol=1e-6, atol=1e-8
    )
    assert row["accuracy"] == pytest.approx(model.score(made.graphs[test], made.codes[test]))


@pytest.mark.parametrize("method", list(PAPER_METHODS))
def test_the_papers_grid_is_its_own_and_node_labels_are_left_out(made, method):
    """The row is that of a classifier which sees the training part only, from depth 1 on."""
    train, test = outer_split(made.codes, repetition=0, fold=2, seed=0)
    row = run_wl_fold(made, 0, 2, [method])[0]
    choice, paper = row["choice"], GRIDS["paper"]
    assert choice["depth"] in paper.depths
    assert (choice["gamma"], choice["C"]) in set(product(paper.gammas, paper.Cs))
    assert choice["weight_radius"] in ((0.0,) if method == "paper_grid_wwl" else paper.radii)
    settings = {**LEARNER, **PAPER_METHODS[method].learner}
    model = GraphSVC(
        **choice,
        edge_labels=False,
        include_depth_zero=False,
        progress=False,
        random_state=0,
        learner=study_learner(random_state=0, **settings),
    ).fit(made.graphs[train], made.codes[train])
    assert row["accuracy"] == pytest.approx(model.score(made.graphs[test], made.codes[test]))


@pytest.mark.parametrize("method", ["random_walk", "shortest_path"])
def test_kernels_that_cannot_see_labels(made, method):
    """Equal to the kernel of the same graphs with one label, and not to the labelled one."""
    bare = [(list(graph.edges), dict.fromkeys(range(graph.n_nodes), "x")) for graph in made.graphs]
    name = f"{method}_unlabelled"
    kind = RandomWalk if method == "random_walk" else ShortestPath
    settings = methods.FIXED_METHODS[name][1]
    kernels = protocol.fixed_kernels(made, name)
    assert len(kernels) == len(settings)
    for kernel, setting in zip(kernels, settings, strict=True):
        np.testing.assert_allclose(kernel, kind(**setting).fit_transform(bare), rtol=1e-12)
        assert not np.allclose(kernel, kind(**setting).fit_transform(made.graphs))


def test_classes_of_the_test_part_change_nothing(made):
    """Choice, inner score and decisions are the same whatever the test graphs are said to be."""
    train, test = outer_split(made.codes, 0, 1, seed=0)
    lies = made.codes.copy()
    lies[test] = 1 - lies[test]
    found = []
    for data in (made, replace(made, codes=lies)):
        searches = protocol._FoldSearches(data, inner_splits(made.codes, train, 1), 0)
        for method in ("wwl", "learned_wwl"):
            choice, score = searches.choose(method)
            found.append((choice, score, final_decisions(data, choice, train, test)))
    for honest, lied in zip(found[:2], found[2:], strict=True):
        assert honest[:2] == lied[:2]
        np.testing.assert_array_equal(honest[2], lied[2])


# --- learners ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def study():
    """Features and classes of graphs whose class one pattern decides."""
    graphs, y = make_synthetic(5, random_state=0)
    vocabulary, colors = PatternVocabulary.fit(graphs, 1)
    histograms = PatternHistograms.from_colors(vocabulary, colors).select_depths(1, 1)
    return PairFeatures.from_histograms(histograms), y


def test_the_released_program_drifts_within_its_box(study):
    learner = study_learner(preset="released-code", random_state=0)
    assert isinstance(clone(learner).set_params(radius=3.0), methods.ReleasedCodeWeights)
    weights = learner.fit(*study).weights_
    assert 1.5 < weights.max() <= 2.0
    assert weights.min() >= 0.0
    np.testing.assert_array_equal(weights, clone(learner).fit(*study).weights_)
