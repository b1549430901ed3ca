"""The record of a table: the target in words."""

import pytest

from treelens.graphs.record import TableRecord


@pytest.mark.parametrize(
    ("target", "transform", "units", "words"),
    [
        ("IC50", None, None, "'IC50'"),
        ("IC50", None, "nM", "'IC50' (nM)"),
        ("IC50 (nM)", None, "nM", "'IC50 (nM)'"),  # told already
        ("IC50", "ln", "nM", "ln of 'IC50' (nM)"),
    ],
)
def test_the_target_in_words(target, transform, units, words) -> None:
    record = TableRecord(target=target, transform=transform, units=units)
    assert record.target_in_words == words
