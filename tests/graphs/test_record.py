"""What a table was, written into a model file and read again, or refused."""

from __future__ import annotations

import json

import pytest

from treelens.graphs.record import TableRecord

WHOLE = TableRecord(
    "x.csv", "Structure", "IC50", ("id", "batch"), "regression", "log10", "nM", {"merged": 3}
)


@pytest.mark.parametrize("record", [TableRecord(), WHOLE])
def test_a_record_survives_json(record: TableRecord) -> None:
    again = TableRecord.from_plain(json.loads(json.dumps(record.to_plain())))
    assert again == record
    assert type(again.ids) is tuple


def test_fields_that_a_file_lacks_or_has_beyond_ours() -> None:
    assert TableRecord.from_plain({"target": "y", "of a later version": 1}) == TableRecord(
        target="y"
    )


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (None, "'table' should be an object"),
        ([], "'table' should be an object"),
        ({"smiles": 1}, "'smiles' of 'table' should be a text or null"),
        ({"units": ["nM"]}, "'units' of 'table' should be a text"),
        ({"ids": "id"}, "'ids' of 'table' should be a list of texts"),
        ({"ids": ["id", 1]}, "'ids' of 'table' should be a list of texts"),
        ({"counts": {"merged": 1.5}}, "'counts' of 'table' should be whole numbers"),
        ({"counts": {"merged": True}}, "'counts' of 'table' should be whole numbers"),
        ({"counts": {1: 1}}, "'counts' of 'table' should be whole numbers"),
        ({"counts": [1]}, "'counts' of 'table' should be whole numbers"),
    ],
)
def test_what_is_no_record(record, words) -> None:
    with pytest.raises(ValueError, match=words):
        TableRecord.from_plain(record)


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
