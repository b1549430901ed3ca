"""Work in threads, every item once and in order; limits on BLAS; the progress bar."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import treelens
from treelens import parallel
from treelens.gp import posterior
from treelens.parallel import (
    blas_threads,
    in_threads,
    progress_ticks,
    run_in_shares,
    thread_count,
    working_on,
)


@pytest.mark.parametrize("n_jobs", [0, 1, 2, 3, 8])
@pytest.mark.parametrize("n_items", [0, 1, 2, 3, 20])
def test_results_come_in_the_order_of_the_items(n_items: int, n_jobs: int) -> None:
    assert in_threads(lambda k: k * k, range(n_items), n_jobs) == [k * k for k in range(n_items)]


@pytest.mark.parametrize(("n_items", "n_jobs"), [(3, 3), (6, 2)])
def test_as_many_threads_work_at_a_time_as_were_asked_for(n_items: int, n_jobs: int) -> None:
    """Each waits for the others: fewer threads would break the barrier."""
    together = threading.Barrier(n_jobs, timeout=30)
    in_threads(lambda k: together.wait(), range(n_items), n_jobs)


@pytest.mark.parametrize("learner", [treelens.GraphRegressor, treelens.GraphSVC])
def test_no_threads_are_no_number_of_threads(learner) -> None:
    with pytest.raises(ValueError, match="n_jobs=0 is no number of threads"):
        learner(depth=1, n_jobs=0).fit(["C", "CC", "CO", "CCO"] * 5, [0, 1] * 10)


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_an_error_in_a_thread_is_an_error_here(n_jobs: int) -> None:
    with pytest.raises(ZeroDivisionError):
        in_threads(lambda k: 1 // (k - 2), range(4), n_jobs)


@pytest.mark.parametrize(("n_items", "n_jobs"), [(0, 2), (3, 2), (10, 3), (10, 1), (5, 5)])
def test_shares_cover_every_item_once(n_items: int, n_jobs: int) -> None:
    shares = run_in_shares(lambda first, last: list(range(first, last)), n_items, n_jobs)
    assert [item for share in shares for item in share] == list(range(n_items))
    sizes = list(map(len, shares))
    assert max(sizes) - min(sizes) <= 1  # as even as they can be


@pytest.fixture(autouse=True)
def _two_blas_threads():
    """More than one to begin with, or a limit of one would change nothing."""
    with threadpool_limits(2, user_api="blas"):
        yield


def _blas_threads() -> list[int]:
    np.ones((2, 2)) @ np.ones((2, 2))  # a library that nobody used yet is not listed
    return [found["num_threads"] for found in threadpool_info() if found["user_api"] == "blas"]


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("limits", [(1, 1), (1, 2), (2, 1)])
def test_limits_of_two_threads_hold_until_they_end(limits, last: int) -> None:
    """Limits that overlap in two threads end in either order."""
    before, seen = _blas_threads(), {}
    entered, leave = threading.Barrier(3, timeout=30), [threading.Event(), threading.Event()]

    def hold(k: int) -> None:
        with blas_threads(limits[k]):
            entered.wait()
            leave[k].wait(30)
            seen[k] = max(_blas_threads())

    threads = [threading.Thread(target=hold, args=(k,)) for k in (0, 1)]
    for thread in threads:
        thread.start()
    entered.wait()
    for k in (1 - last, last):
        leave[k].set()
        threads[k].join()
    assert seen[0] <= limits[0]
    assert seen[1] <= limits[1]
    assert seen[last] == limits[last]  # no limit of the thread that has ended
    assert _blas_threads() == before


def test_many_threads_never_exceed_their_limits() -> None:
    before, wrong = _blas_threads(), []
    controller = threadpool_limits(user_api="blas")._controller  # asking anew takes milliseconds

    def work(k: int) -> None:
        for n in range(200):
            limit = 1 + (k + n) % 3
            with blas_threads(limit):
                found = [library.get_num_threads() for library in controller.lib_controllers]
                wrong.extend(x for x in found if x > limit)

    in_threads(work, range(4), 4)
    assert not wrong
    assert _blas_threads() == before


def test_an_inner_limit_ends_at_the_outer_one() -> None:
    before = _blas_threads()
    with blas_threads(1):
        assert set(_blas_threads()) == {1}
        with blas_threads(2):
            pass
        assert set(_blas_threads()) == {1}
    assert _blas_threads() == before


def test_threads_are_limited_here_alone() -> None:
    """Elsewhere in the library nobody asks threadpoolctl, so that there is one rule for all."""
    source = Path(treelens.__file__).parent
    users = [file for file in source.rglob("*.py") if "threadpoolctl" in file.read_text("utf-8")]
    assert [file.name for file in users] == ["parallel.py"]


# --- the progress bar ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("show", "terminal", "shown"),
    [
        (False, True, False),
        (None, False, False),
        (None, True, True),
        (True, False, True),
    ],
)
def test_what_was_finished_stands_on_standard_error(show, terminal, shown, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then draws as on a terminal
    with progress_ticks(show, "Searching") as tick:
        tick("wwl, depth 3")
    written = capsys.readouterr()
    assert written.out == ""
    assert ("Searching: wwl, depth 3" in written.err) == shown


def test_work_within_work_is_a_part_of_its_line(monkeypatch, capsys):
    told: list[str] = []
    token = parallel._TELL.set(told.append)
    with progress_ticks(None, "Learning") as tick:
        tick("depth 3")
    with progress_ticks(False, "Hidden") as tick:
        tick("depth 4")
    working_on("part 2 of 5")
    parallel._TELL.reset(token)
    working_on("nothing any more")
    assert told == ["Learning: depth 3", "part 2 of 5"]
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress_ticks(True, "Comparing"):
        working_on("part 3 of 5")
    assert "Comparing: part 3 of 5" in capsys.readouterr().err


@pytest.mark.parametrize("seconds", [1.0, 60.0])
def test_a_notebook_keeps_one_line_of_what_took_long(monkeypatch, capsys, seconds):
    clock = iter([0.0, seconds])
    monkeypatch.setattr("treelens.parallel._in_notebook", lambda: True)
    monkeypatch.setattr("treelens.parallel.time.monotonic", lambda: next(clock))
    with progress_ticks(None, "Learning") as tick:
        tick("depth 3")
    assert capsys.readouterr().err == ("Learning: 60 s\n" if seconds > 3 else "")


def test_all_processors_are_the_default_but_not_in_workers():
    assert thread_count(None) == thread_count(-1) == joblib.cpu_count()
    assert thread_count(None).for_blas == 1
    for backend in ("loky", "threading"):
        found = joblib.Parallel(2, backend)(joblib.delayed(thread_count)(None) for _ in range(2))
        assert found == [1, 1]
    with joblib.parallel_config(n_jobs=3):
        assert thread_count(None) == 3
        assert thread_count(2) == thread_count(2).for_blas == 2


def test_the_default_gives_the_results_of_one_thread(monkeypatch):
    monkeypatch.setattr(posterior, "_LARGE", 50)  # BLAS may use several threads from here on
    graphs, codes = treelens.make_synthetic(n_per_substructure=15, random_state=0)
    y = codes + 0.1 * graphs.sizes
    fits = [
        treelens.GraphRegressor(depth=2, n_jobs=n, progress=False).fit(graphs, y) for n in (None, 1)
    ]
    one, other = (np.array(fitted.predict(graphs, return_std=True)) for fitted in fits)
    assert (one == other).all()
    assert fits[0].evidence_ == fits[1].evidence_
