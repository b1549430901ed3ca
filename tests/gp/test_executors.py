"""Executors: results in the order of the parts, one part at a time."""

import importlib
import re

import joblib
import pytest

from treelens.gp.executors import DaskExecutor, JoblibExecutor, SerialExecutor, check_executor


def doubled(part: int, weight: int) -> int:
    return part * weight


@pytest.mark.parametrize("executor", [SerialExecutor(), JoblibExecutor(1), JoblibExecutor(2)])
def test_results_come_in_the_order_of_the_parts(executor) -> None:
    with joblib.parallel_config(backend="threading"):
        assert list(executor.map(doubled, [(3,), (1,), (2,)], 2)) == [6, 2, 4]


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


@pytest.mark.parametrize("executor", [3, "dask", SerialExecutor, DaskExecutor])
def test_what_is_no_executor_is_refused_with_the_names_of_some(executor) -> None:
    with pytest.raises(TypeError, match=r"executor must be") as caught:
        check_executor(executor)
    named = re.findall(r"(treelens[\w.]*)\.(\w+)\(", str(caught.value))
    assert [name for _, name in named] == ["JoblibExecutor", "DaskExecutor"]
    for module, name in named:
        assert issubclass(getattr(importlib.import_module(module), name), SerialExecutor)
    for good in (None, SerialExecutor(), JoblibExecutor(2)):
        check_executor(good)
