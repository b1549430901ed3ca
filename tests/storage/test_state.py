"""Values and objects as JSON and arrays: what was written comes back, and nothing else does."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple, TypedDict

import numpy as np
import pandas as pd
import pytest

from treelens.array_checks import Columns
from treelens.storage.state import StateError, UnstorableError, from_state, to_state


class Pair(NamedTuple):
    value: float
    code: int


class Options(TypedDict, total=False):
    depth: int
    kernel: str


@dataclass(frozen=True, eq=False)
class Leaf:
    values: np.ndarray
    sums: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sums", np.cumsum(self.values))

    def validate(self) -> None:
        if (self.values < 0).any():
            raise ValueError("values must be positive")


@dataclass(frozen=True, eq=False)
class Short:
    """What is written of a long object."""

    n: int


@dataclass(frozen=True, eq=False)
class Long:
    numbers: tuple[int, ...]

    def to_stored(self) -> Short:
        return Short(len(self.numbers))


@dataclass(frozen=True, eq=False)
class Tree:
    __derived__ = ("total",)

    leaves: tuple[Leaf, ...]
    first: Leaf
    total: float
    pair: Pair | None = None
    scores: Mapping[Pair, list[float]] = field(default_factory=dict)
    held_out: np.ndarray | None = field(default=None, metadata={"nan": True})
    options: Options = field(default_factory=dict)
    part: Long | Short | None = None
    table: Columns | None = None
    anything: Any = None

    def from_stored(self) -> Tree:
        return replace(self, total=float(sum(leaf.values.sum() for leaf in self.leaves)))


CLASSES = {kind.__name__: kind for kind in (Tree, Leaf, Pair, Short)}


def tree(**changes: Any) -> Tree:
    leaves = (Leaf(np.array([1.0, 2.0])), Leaf(np.array([3.0])))
    return replace(Tree(leaves, leaves[0], 6.0), **changes)


def there_and_back(value: Any, classes: Any = MappingProxyType({})) -> Any:
    state, arrays = to_state(value, classes)
    return from_state(json.loads(json.dumps(state, allow_nan=False)), arrays, classes)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        -5,
        2**70,
        0.1,
        -0.0,
        1e-300,
        math.inf,
        -math.inf,
        math.nan,
        "",
        "ü\ud800",
        "$float",
        [],
        [1, [2.5, "x"]],
        (),
        ("C", 1, (0.5, ())),
        {},
        {"a": 1, "b": {"c": (1,)}},
        {1: "x", ("a",): []},
        {"$tuple": 1},
        {"a b/..": {"c": 1}},
        np.int8(3),
        np.float32(0.1),
        np.float32("nan"),
        np.str_("x"),
        np.bool_(0),
    ],
    ids=repr,
)
def test_values_keep_value_and_type(value):
    found = there_and_back(value)
    assert type(found) is type(value)
    assert repr(found) == repr(value)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(3),
        np.arange(4, dtype=np.int32),
        np.ones((2, 3)),
        np.asfortranarray(np.eye(3)[:2]),
        np.zeros((0, 2)),
        np.array([1, 2], np.int8),
        np.array([True, False]),
        np.array(["a", "bcd"]),
        np.array([1.5, 2.5], np.float32),
        np.array([("a", 1), None, 2.5, "x"], dtype=object),
    ],
    ids=lambda x: str(x.dtype),
)
def test_arrays_keep_value_and_type(array):
    found = there_and_back({"x": array})["x"]
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize(
    "value",
    [
        frozenset("C"),
        b"C",
        1j,
        object(),
        np.zeros((2, 2), bool),
        np.array(["2020"], "M8[Y]"),
        Short(1),
        pd.DataFrame({"a": [1]}),
    ],
    ids=lambda x: type(x).__name__,
)
def test_values_of_other_types_are_an_error(value):
    with pytest.raises(UnstorableError, match="inner"):
        to_state({"inner": value}, {})


def test_objects_are_rebuilt_by_their_constructors():
    rows = [{"stage": "a", "x": 0.5, "n": 1}, {"stage": "b", "x": np.nan, "n": 2}]
    table = Columns.of_rows(rows)
    given = tree(
        pair=Pair(0.5, 1),
        scores={Pair(1.0, 2): [0.5, 1.0]},
        held_out=np.array([1.0, np.nan]),
        options={"depth": 2},
        part=Long((1, 2, 3)),
        table=table,
        anything={"x": ("y",)},
    )
    found = there_and_back(given, CLASSES)
    assert [leaf.sums.tolist() for leaf in found.leaves] == [[1.0, 3.0], [3.0]]
    assert found.total == 6.0  # derived again
    assert found.first is found.leaves[0]  # one object stays one
    assert (found.pair, found.scores, found.options) == (given.pair, given.scores, given.options)
    np.testing.assert_array_equal(found.held_out, given.held_out)
    assert found.part.n == 3
    pd.testing.assert_frame_equal(found.table.frame(), pd.DataFrame(rows))
    assert found.anything == {"x": ("y",)}


def test_what_is_shared_or_derived_is_written_once():
    shared = np.ones(3)
    state, arrays = to_state({"a": shared, "b": [shared], "tree": tree()}, CLASSES)
    assert set(arrays) == {"a", "tree.leaves.0.values", "tree.leaves.1.values"}
    assert state["b"] == [{"$array": "a"}]
    assert "total" not in state["tree"]
    found = from_state(state, arrays, CLASSES)
    assert found["a"] is found["b"][0]


@pytest.mark.parametrize(
    "bad",
    [
        tree(pair=Pair("x", 1)),
        tree(pair=Pair(math.nan, 1)),
        tree(first=None),
        tree(leaves=[]),
        tree(first=Leaf(np.array([-1.0]))),
        tree(first=Leaf(np.array([np.inf]))),
    ],
)
def test_what_could_not_be_read_is_not_written(bad):
    with pytest.raises(UnstorableError, match="must be"):
        to_state(bad, CLASSES)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.update({"$class": "Secret"}), "unknown class"),
        (lambda t: t.update({"$class": "Leaf"}), "must have the fields values"),
        (lambda t: t.pop("pair"), "must have the fields"),
        (lambda t: t.update(more=1), "must have the fields"),
        (
            lambda t: t.update(pair={"$class": "Pair", "value": "x", "code": 1}),
            "pair.value must be",
        ),
        (
            lambda t: t.update(pair={"$class": "Pair", "value": 1.0, "code": 1.5}),
            "pair.code must be",
        ),
        (lambda t: t.update(pair=[1.0, 1]), "pair must be"),
        (lambda t: t.update(first={"$same": "first"}), "first cannot be read"),
        (lambda t: t.update(first={"$array": "nothing"}), "array 'nothing' is missing"),
        (lambda t: t.update(first={"$array": "leaves.0.values"}), "first must be Leaf"),
        (lambda t: t.update(leaves={"$tuple": 5}), "leaves must be a list"),
        (
            lambda t: t.update(
                held_out={"$array": "negative"},
                first={"$class": "Leaf", "values": {"$array": "negative"}},
            ),
            "first cannot be read .values must be positive",
        ),
        (lambda t: t.update(first={"$class": "Leaf", "values": {"$array": "nan"}}), "first.values"),
        (lambda t: t.update(options={"depht": 2}), "options must be"),
        (lambda t: t.update(scores={"$map": [[1, 2, 3]]}), "scores cannot be read"),
        (lambda t: t.update(scores={"$map": [["a", []], ["a", []]]}), "a key twice"),
        (lambda t: t.update(scores={"$map": [[[], []]]}), "scores cannot be read"),
        (
            lambda t: t.update(table={"$table": [["x", {"$array": "nan"}], ["y", 1]]}),
            "table.y must",
        ),
        (lambda t: t.update(anything={"$pickle": "x"}), "'.pickle' is unknown"),
        (lambda t: t.update(anything={"$numpy": ["object", 1]}), "no numpy scalar"),
        (lambda t: t.update(anything={"$numpy": ["int8", 1000]}), "cannot be read"),
        (lambda t: t.update(anything={"$list": ["int64", [[1]]]}), "not a scalar"),
        (lambda t: t.update(anything={"$list": ["object", 5]}), "must be a list"),
        (lambda t: t.update(anything={"$list": ["str", ["x" * 10**6, *"y" * 10**5]]}), "too many"),
    ],
)
def test_damage_is_named(change, message):
    state, arrays = to_state(tree(), CLASSES)
    change(state)
    bad = {"negative": np.array([-1.0]), "nan": np.array([np.nan])}
    with pytest.raises(StateError, match=message):
        from_state(state, {**arrays, **bad}, CLASSES)
