"""Thresholds, matched pairs and nearest graphs of the report on a Gaussian process."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix

import treelens as tl
from treelens.models.thresholds import Threshold
from treelens.report.evidence_page import render_evidence
from treelens.report.matched_pairs import striking_pairs, what_differs
from treelens.report.threshold_counts import threshold_counts


@pytest.mark.parametrize("code", [0, 1])
def test_counts_at_every_threshold_against_scikit_learn(code):
    rng = np.random.default_rng(0)
    codes = rng.integers(2, size=80)
    said = np.round(rng.random(80), 2)  # values that lie on thresholds exactly
    chances = np.column_stack([1 - said, said])[:, [1, 0] if code == 0 else [0, 1]]
    counts = threshold_counts(codes, chances, np.array(["a", "b"]), Threshold(0.3, code))
    assert (counts["positive"], counts["at"]) == ("ab"[code], 30)
    for percent in range(101):
        named = np.where(chances[:, code] >= percent / 100, code, 1 - code)
        matrix = confusion_matrix(codes, named, labels=[1 - code, code])
        assert counts["alarms"][percent] == matrix[0, 1]
        assert counts["found"][percent] == matrix[1, 1]


def test_more_than_two_classes_have_no_threshold():
    chances = np.full((3, 3), 1 / 3)
    assert threshold_counts(np.arange(3), chances, np.array(["a", "b", "c"]), None) is None


def test_the_page_has_the_models_own_threshold(class_model, synthetic):
    graphs, y = synthetic
    summary = class_model.summary(graphs[1::2], y[1::2])
    known = summary["scores"]["thresholds"]
    matrix = np.array(summary["scores"]["confusion"])
    assert known["found"][known["at"]] == matrix[1, 1]
    assert known["alarms"][known["at"]] == matrix[0, 1]
    assert 'id="threshold"' in render_evidence(summary)


def test_pairs_are_the_most_similar_of_different_classes():
    smiles = [f"{'C' * k}{end}" for k in range(1, 8) for end in ("O", "N")]
    model = tl.GraphClassifier(depth=1).fit(smiles, ["alcohol", "amine"] * 7)
    pairs, n = striking_pairs(model.model_)
    assert n == 14
    targets = model.model_.training.targets
    alike = model.model_.kernel_rows(model.model_.basis_graphs) / model.model_.scales.amplitude
    other = np.where(targets[:, None] != targets, alike, 0.0)
    assert all(targets[pair.one] != targets[pair.other] for pair in pairs)
    assert pairs[0].similarity == pytest.approx(other.max())
    assert len({x for pair in pairs for x in pair[:2]}) == 2 * len(pairs), "each graph once"
    found = model.summary()["pairs"]["rows"][0]["sides"]
    for side in found:
        end = {"alcohol": "O", "amine": "N"}[side["class"]]
        assert [side["labels"][k] for k in side["nodes"]] == [end]


def test_pairs_of_numbers_are_cliffs(number_model):
    pairs, _ = striking_pairs(number_model.model_)
    values = number_model.train_values_
    index = [abs(values[p.one] - values[p.other]) / (1 - p.similarity) for p in pairs]
    assert index == sorted(index, reverse=True)


def test_what_differs_in_graphs_that_are_no_molecules():
    one = tl.as_graph_collection([([(0, 1), (1, 2)], {0: "a", 1: "b", 2: "c"})])[0]
    other = tl.as_graph_collection([([(0, 1)], {0: "a", 1: "b"})])[0]
    assert what_differs(one, other) == ((1, 2), (1,))
    assert what_differs(one, one) == ((), ())


def test_a_model_out_of_a_file_has_no_pairs_and_no_drawn_neighbours(number_model, molecules):
    from treelens.report import summarize_evidence

    graphs, y = molecules
    found = summarize_evidence(number_model.model_, graphs[1:5], y[1:5])
    assert found["pairs"] is None
    assert all(x["picture"] is None for row in found["examples"]["rows"] for x in row["neighbors"])
    assert 'id="pairs"' not in render_evidence(found)


class Pictures(HTMLParser):
    """Outermost drawings: their attributes, and whether anything and a title is inside."""

    def __init__(self) -> None:
        super().__init__()
        self.level, self.found = 0, []

    def handle_starttag(self, tag, attributes):
        if self.level:
            self.found[-1]["inside"].add(tag)
        elif tag == "svg":
            self.found.append({**dict(attributes), "inside": set()})
        self.level += tag == "svg"

    def handle_endtag(self, tag):
        self.level -= tag == "svg"


def test_every_picture_has_words(number_model, molecules, class_model, synthetic):
    for model, (graphs, y) in ((number_model, molecules), (class_model, synthetic)):
        pictures = Pictures()
        pictures.feed(render_evidence(model.summary(graphs[1::2], y[1::2])))
        drawn = [x for x in pictures.found if x["inside"]]  # others are drawn when they are opened
        assert len(drawn) > 20
        for picture in drawn:
            hidden = picture.get("aria-hidden") == "true"
            assert hidden or "aria-label" in picture or "title" in picture["inside"]
