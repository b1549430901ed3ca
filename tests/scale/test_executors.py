"""Executors: results in the order of the parts, sums from first to last, one part at a time."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from treelens.scale.executors import JoblibExecutor, SerialExecutor, added


class Path(NamedTuple):
    """A sum that remembers its order, unlike numbers."""

    steps: tuple[int, ...]

    def plus(self, other: Path) -> Path:
        return Path(self.steps + other.steps)


def doubled(part: int, weight: int) -> int:
    return part * weight


def path_of(part: int, weight: int) -> Path:
    return Path((part * weight,))


@pytest.mark.parametrize("executor", [SerialExecutor(), JoblibExecutor(n_jobs=1)])
def test_results_and_sums_come_in_the_order_of_the_parts(executor) -> None:
    parts = [(3,), (1,), (2,)]
    assert list(executor.map(doubled, parts, 2)) == [6, 2, 4]
    assert executor.sum(path_of, parts, 2) == Path((6, 2, 4))


def test_processes_keep_the_order_too() -> None:
    from joblib import parallel_config

    with parallel_config(backend="threading"):
        assert JoblibExecutor(2).sum(path_of, [(n,) for n in range(8)], 1) == Path(tuple(range(8)))


def test_parts_are_taken_one_after_the_other() -> None:
    taken: list[int] = []

    def parts():
        for number in range(3):
            taken.append(number)
            yield (number,)

    results = SerialExecutor().map(doubled, parts(), 1)
    assert taken == []
    next(results)
    assert taken == [0]


def test_one_result_is_its_own_sum() -> None:
    only = Path((1,))
    assert added([only]) is only


def test_an_error_in_a_part_is_an_error_here() -> None:
    with pytest.raises(TypeError):
        SerialExecutor().sum(path_of, [(1,), (None,)], 2)
