"""A Dask scheduler that goes away in the middle of a fit, and another one at its address."""

import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.base import clone

import treelens as tl
from treelens.gp import blocks as gp_blocks
from treelens.gp.executors import DaskExecutor
from treelens.graphs.blocks import CollectionBlocks

distributed = pytest.importorskip("distributed")


class OwnCluster:
    """A scheduler and a worker, each a process of its own, as on a real cluster."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        place = ["--host", "127.0.0.1"]
        self._run("dask_scheduler", *place, "--port", str(self.port), "--no-dashboard")
        self._run("dask_worker", self.address, *place, "--nthreads", "1", "--no-dashboard",
                  "--no-nanny")  # fmt: skip

    def _run(self, module: str, *arguments: str) -> None:
        command = [sys.executable, "-m", f"distributed.cli.{module}", *arguments]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.processes.append(subprocess.Popen(command, **quiet))

    def kill(self) -> None:
        """At once, as when the power goes: nobody is told."""
        for process in self.processes:
            process.send_signal(signal.SIGKILL)
            process.wait()
        self.processes.clear()


@pytest.fixture(scope="module")
def cluster():
    """One for all tests, as processes take seconds to start; the last of them kills it."""
    cluster = OwnCluster()
    cluster.start()
    yield cluster
    cluster.kill()


def slowly_doubled(number: int, folder: str, factor: int) -> int:
    with open(os.path.join(folder, str(number)), "a") as file:
        file.write("x")
    time.sleep(0.05)
    return factor * number


@contextmanager
def once_under_way(folder, act):
    """Meanwhile, when something has been done, ``act`` once."""

    def wait_and_act() -> None:
        deadline = time.monotonic() + 60
        while not any(folder.iterdir()):
            assert time.monotonic() < deadline, "nothing was under way"
            time.sleep(0.01)
        act()

    with ThreadPoolExecutor(1) as aside:
        acting = aside.submit(wait_and_act)
        yield
        acting.result()


def connected(cluster: OwnCluster) -> object:
    return distributed.Client(cluster.address, timeout=60.0, set_as_default=False)


def test_a_gaussian_process_is_the_same_after_a_restart(cluster, tmp_path, monkeypatch):
    """The client gives up before the next scheduler comes, so another client is needed."""

    def restart() -> None:
        cluster.kill()
        time.sleep(2.0)
        cluster.start()

    monkeypatch.setattr(gp_blocks, "_TASK_SIZE", 1000)
    kinds = tl.as_graph_collection(["C" * k + end for k in range(1, 9) for end in "NOF"])
    graphs = kinds[np.random.default_rng(0).integers(len(kinds), size=5000)]
    y = np.where(graphs.sizes > 5, "large", "small")
    model = tl.GraphClassifier(depth=1, exact_size=60, n_landmarks=15, n_jobs=1, random_state=0)
    blocks = CollectionBlocks(graphs, y, 1000)
    alone = clone(model).fit(blocks).model_.posterior
    with connected(cluster) as client:
        client._timeout = 0.5  # from here on
        executor = DaskExecutor(client)
        with once_under_way(tmp_path, restart):
            model.fit(_travelling(blocks, tmp_path), executor=executor)
        assert executor.client is not client
        executor.client.close()
    there = model.model_.posterior
    np.testing.assert_allclose(there.coefficients, alone.coefficients, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(there.precision_gain, alone.precision_gain, rtol=1e-3, atol=1e-3)


def _travelling(blocks, folder):
    """Parts whose class travels to the workers by value, as tests are no module there."""
    here = os.getpid()

    class Travelling:
        def __init__(self, part, number) -> None:
            self.part, self.number = part, number

        def load(self):
            if os.getpid() != here:  # on a worker
                (folder / str(self.number)).touch()
                time.sleep(0.1)
            return self.part.load()

    return [Travelling(part, number) for number, part in enumerate(blocks)]


def test_a_scheduler_that_does_not_come_back_is_an_error(cluster, tmp_path):
    with connected(cluster) as client:
        executor = DaskExecutor(client, patience=1.0)
        parts = ((number, str(tmp_path)) for number in range(40))
        with (
            once_under_way(tmp_path, cluster.kill),
            pytest.raises(ConnectionError, match=r"did not come back within 1 seconds"),
        ):
            list(executor.map(slowly_doubled, parts, 2))


def test_tasks_that_were_cancelled_with_all_others_are_begun_again(tmp_path):
    local = distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    )
    with (
        local,
        distributed.Client(local, set_as_default=False) as client,
        once_under_way(tmp_path, lambda: client.cancel(held)),
    ):
        executor = DaskExecutor(client)
        begun = executor.submit
        held = []

        def submit(*given):
            held.append(begun(*given))
            return held[-1]

        executor.submit = submit
        parts = ((number, str(tmp_path)) for number in range(20))
        assert list(executor.map(slowly_doubled, parts, 2)) == [2 * n for n in range(20)]
        assert len(held) > 21
        executor.submit = begun
        with pytest.raises(CancelledError, match="by the task"):
            list(executor.map(cancels_itself, [()]))


def cancels_itself() -> None:
    raise CancelledError("by the task")
