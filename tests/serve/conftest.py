"""Small models behind the page, called in this process or through a socket."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import treelens as tl
from treelens.chem.predicted_rows import name_models
from treelens.serve.answers import Limits, Workbench

pytest.importorskip("rdkit")
pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

CHAINS = ["C" * n for n in range(1, 9)]
ENDS = ["O", "N", "Cl", "C(=O)O", "c1ccccc1", "C1CCCC1"]
WORTH = {"O": 2.0, "N": 1.0, "Cl": -1.0, "C(=O)O": 3.0, "c1ccccc1": -3.0, "C1CCCC1": -2.5}
LIMITS = Limits(molecules=60, smiles=200, bytes=20_000, seconds=30.0)
EVIL = "<script>document.title='owned'</script>"


def table_text() -> str:
    """Molecules with a number, its power of ten, and a class whose name is markup."""
    rng = np.random.default_rng(0)
    lines = ["name,smiles,logS,Kd (nM),acid,assay"]
    for k, chain in enumerate(CHAINS):
        for end in ENDS:
            value = WORTH[end] - 0.5 * k + rng.normal(0.0, 0.1)
            label = "acid" if "=O" in end else EVIL
            assay = "ab"[k % 2]
            lines.append(f"{chain}+{end},{chain}{end},{value:.4f},{10**value:.6g},{label},{assay}")
    return "\n".join(lines)


def fitted(path: Path, target: str, covariates=(), **options):
    table = tl.read_table(path, target=target, covariates=covariates, **options)
    kind = tl.GraphRegressor if table.task == "regression" else tl.GraphClassifier
    model = kind(depth=2, n_jobs=1, progress=False)
    model.fit(*table, covariates=list(covariates) or None)
    model.save(path.with_name(f"{target[:4]}{len(covariates)}.treelens"))
    return tl.load(path.with_name(f"{target[:4]}{len(covariates)}.treelens"))


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """Models as files have them: of a number, of one learned as logarithm, of a class."""
    path = tmp_path_factory.mktemp("serve") / "table.csv"
    path.write_text(table_text())
    return {
        "logS": fitted(path, "logS"),
        "Kd (nM)": fitted(path, "Kd (nM)", transform="log10"),
        "acid": fitted(path, "acid"),
        "beside": fitted(path, "logS", ["assay"]),
    }


def workbench_of(*models, limits: Limits = LIMITS) -> Workbench:
    paths = [Path(f"{k}.treelens") for k in range(len(models))]
    return Workbench(name_models(paths, models), limits)


@pytest.fixture(scope="session")
def panel(models, tmp_path_factory):
    """The three targets in one model, as its file has it."""
    path = tmp_path_factory.mktemp("panel") / "table.csv"
    path.write_text(table_text())
    table = tl.read_table(path, target=["logS", "Kd (nM)", "acid"])
    model = tl.GraphPanel(depth=1, max_steps=5, n_jobs=1, progress=False).fit(*table)
    model.save(path.with_name("panel.treelens"))
    return tl.load(path.with_name("panel.treelens"))


@pytest.fixture(scope="session")
def panel_bench(panel):
    bench = workbench_of(panel)
    bench.warm_up()
    return bench


@pytest.fixture(scope="session")
def workbench(models):
    bench = workbench_of(models["logS"], models["Kd (nM)"], models["acid"])
    bench.warm_up()
    return bench


@contextmanager
def serving(app):
    """A real server of an application; its port."""
    from treelens.serve.app import server_of

    door, server = socket.create_server(("127.0.0.1", 0)), server_of(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [door]})
    thread.start()
    while not server.started:
        time.sleep(0.02)
    try:
        yield door.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(10)


@pytest.fixture(scope="session")
def address(workbench):
    """The address of a real server of the three models."""
    from treelens.serve.app import make_app

    with serving(make_app(workbench)) as port:
        yield f"http://127.0.0.1:{port}"
