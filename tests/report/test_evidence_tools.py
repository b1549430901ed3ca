"""Thresholds, matched pairs and nearest graphs of the report on a Gaussian process."""

from __future__ import annotations

from html.parser import HTMLParser

from treelens.report.evidence_page import render_evidence


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
