"""Entries of a model file: handed out as what their fields are, or refused with their name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

from treelens.storage.archive import Contents, ModelFileError
from treelens.storage.stored import Stored

GOOD = {
    "size": 2.5,
    "count": 3,
    "name": "x",
    "done": np.bool_(True),
    "values": np.array([1.0, 2.0]),
}


@dataclass(frozen=True)
class Record:
    size: float
    count: int
    name: str
    done: bool
    values: np.ndarray
    step: float | None = None


class Pair(NamedTuple):
    value: float
    code: int


@pytest.fixture
def stored():
    arrays = {"offsets": np.array([0, 2, 2, 5]), "numbers": np.array([[0.0, -1.0]])}
    return Stored(Contents({"known": 1}, arrays), "model.treelens")


def test_a_record_by_its_fields(stored):
    found = stored.record(Record, {**GOOD, "of a later version": 1}, "'it'")
    assert (found.size, found.count, found.name, found.done) == (2.5, 3, "x", True)
    assert found.values is GOOD["values"]
    assert found.step is None  # has a default
    assert stored.record(Record, {**GOOD, "step": 0.5}, "'it'").step == 0.5
    assert stored.record(Pair, {"value": 1, "code": 0}, "'pair'") == Pair(1.0, 0)


def test_fields_that_are_ready_are_not_looked_for(stored):
    ready = np.zeros(1)
    assert stored.record(Record, {**GOOD, "values": "bad"}, "'it'", values=ready).values is ready


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("size", "2.5", "'size' in 'it' should be a number"),
        ("size", True, "'size' in 'it' should be a number"),
        ("size", None, "'size' in 'it' should be a number"),
        ("size", float("nan"), "'size' in 'it' should be a number"),
        ("size", -0.5, "'size' in 'it' should be a number of at least 0"),
        ("count", 2.0, "'count' in 'it' should be a whole number"),
        ("count", -1, "'count' in 'it' should be a whole number"),
        ("count", 10**30, "'count' in 'it' should be a whole number"),
        ("name", 3, "'name' in 'it' should be a str"),
        ("done", 1, "'done' in 'it' should be a bool"),
        ("values", [1.0], "'values' in 'it' should be a ndarray"),
        ("values", np.array(["a"]), "'values' in 'it' should hold numbers"),
        ("values", np.zeros((1, 1)), "'values' in 'it' should hold numbers, one after"),
        ("values", np.array([np.inf]), "'values' in 'it' holds infinities"),
        ("step", "wide", "'step' in 'it' should be a number"),
    ],
)
def test_entries_of_another_kind_are_named(stored, name, value, message):
    with pytest.raises(ModelFileError, match=message) as caught:
        stored.record(Record, {**GOOD, name: value}, "'it'", 0.0)
    assert "model.treelens" in str(caught.value)


@pytest.mark.parametrize("entries", [{"size": 1.0}, {}, None, [1]])
def test_a_record_that_is_not_complete(stored, entries):
    with pytest.raises(ModelFileError, match=r"'it' is not complete .*count"):
        stored.record(Record, entries, "'it'")


def test_offsets(stored):
    assert stored.offsets("offsets", 3, 5).tolist() == [0, 2, 2, 5]
    with pytest.raises(ModelFileError, match="should ascend from 0 to 6"):
        stored.offsets("offsets", 3, 6)
    with pytest.raises(ModelFileError, match=r"should have shape \(5,\)"):
        stored.offsets("offsets", 4, 5)


def test_numbers_below_what_they_may_be(stored):
    assert stored.floats("numbers", (None, 2)).tolist() == [[0.0, -1.0]]
    with pytest.raises(ModelFileError, match="'numbers' should hold numbers from 0"):
        stored.floats("numbers", (None, 2), 0.0)
