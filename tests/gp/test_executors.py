"""Executors: results in the order of the parts, one part at a time."""

import importlib
import re

import pytest

from treelens.gp.dask_executor import DaskExecutor
from treelens.gp.executors import JoblibExecutor, SerialExecutor, check_executor


def doubled(part: int, weight: int) -> int:
    return part * weight


@pytest.mark.parametrize("executor", [SerialExecutor(), JoblibExecutor(n_jobs=1)])
def test_results_come_in_the_order_of_the_parts(executor) -> None:
    assert list(executor.map(doubled, [(3,), (1,), (2,)], 2)) == [6, 2, 4]


def test_processes_keep_the_order_too() -> None:
    from joblib import parallel_config

    with parallel_config(backend="threading"):
        assert list(JoblibExecutor(2).map(doubled, [(n,) for n in range(8)], 1)) == list(range(8))


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


def test_an_error_in_a_part_is_an_error_here() -> None:
    with pytest.raises(TypeError):
        list(SerialExecutor().map(doubled, [(1,), (None,)], 2))


def test_what_is_no_executor_is_refused() -> None:
    for executor in (None, SerialExecutor(), JoblibExecutor(2)):
        check_executor(executor)
    with pytest.raises(TypeError, match=r"JoblibExecutor\(2\) .* got 3"):
        check_executor(3)


@pytest.mark.parametrize("executor", [SerialExecutor, JoblibExecutor, DaskExecutor])
def test_a_class_is_no_executor(executor) -> None:
    with pytest.raises(TypeError, match=rf"JoblibExecutor\(2\) .*the class {executor.__name__}\."):
        check_executor(executor)


def test_the_executors_that_a_message_names_can_be_imported_from_there() -> None:
    with pytest.raises(TypeError) as caught:
        check_executor("dask")
    named = re.findall(r"(treelens[\w.]*)\.(\w+)\(", str(caught.value))
    assert [name for _, name in named] == ["JoblibExecutor", "DaskExecutor"]
    for module, name in named:
        assert issubclass(getattr(importlib.import_module(module), name), SerialExecutor)
