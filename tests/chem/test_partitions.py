"""Predictions of parts of a table, as engines call for them."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import treelens as tl
from treelens.storage.files import ModelFileError

pytest.importorskip("rdkit")

SMILES = [f"{'C' * n}{end}" for n in range(1, 9) for end in ("O", "N", "Cl")]
VALUES = np.array([len(text) + 5.0 * ("N" in text) for text in SMILES])
NEW = pd.DataFrame(
    {
        "id": [f"n{k}" for k in range(7)],
        "smiles": ["CCCCCCO", "CCCCCCN", "no molecule", None, "CC(C)O", "ClCCCCl", "OCCO"],
    },
    index=[3, 1, 4, 1, 5, 9, 2],
)


@pytest.fixture(scope="module", params=["numbers", "classes"])
def model(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m.treelens"
    if request.param == "numbers":
        fitted = tl.GraphRegressor(depth=1, n_jobs=1).fit(SMILES, VALUES)
    else:
        fitted = tl.GraphClassifier(depth=1, n_jobs=1).fit(SMILES, VALUES > 8)
    fitted.save(path)
    return fitted, path.read_bytes()


def test_parts_are_predicted_as_the_whole(model):
    fitted, data = model
    whole = tl.predict_partition(data, NEW)
    assert whole.index.tolist() == NEW.index.tolist()
    assert (whole["problem"] != "").tolist() == [False, False, True, True, False, False, False]
    parts = [tl.predict_partition(data, NEW.iloc[a:b]) for a, b in ((0, 2), (2, 4), (4, 7))]
    pd.testing.assert_frame_equal(pd.concat(parts), whole)
    readable = NEW["smiles"].iloc[[0, 1, 4, 5, 6]].tolist()
    table = fitted.predict_table(readable)
    first = table.columns[0]
    found = whole[whole["problem"] == ""][first]
    assert found.astype(str).tolist() == table[first].astype(str).tolist()


def test_all_parts_have_the_same_columns_and_types(model):
    _, data = model
    kinds = {
        tuple(zip(found.columns, map(str, found.dtypes), strict=True))
        for found in (
            tl.predict_partition(data, NEW),
            tl.predict_partition(data, NEW.iloc[2:4]),  # none can be read
            tl.predict_partition(data, NEW.iloc[:0]),
        )
    }
    assert len(kinds) == 1


def test_what_is_no_model_and_no_frame(model):
    _, data = model
    with pytest.raises(TypeError, match="read_bytes"):
        tl.predict_partition("m.treelens", NEW)
    with pytest.raises(TypeError, match="DataFrame"):
        tl.predict_partition(data, ["CCO"])
    with pytest.raises(ModelFileError, match="cut off"):
        tl.predict_partition(data[: len(data) // 2], NEW)
    with pytest.raises(ModelFileError, match="empty"):
        tl.predict_partition(b"", NEW)
    with pytest.raises(ValueError, match="smiles"):
        tl.predict_partition(data, NEW.rename(columns={"smiles": "structure"}), smiles="smile")


def test_a_cluster_of_dask_predicts_parts(model):
    distributed = pytest.importorskip("distributed")
    _, data = model
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        parts = [NEW.iloc[k : k + 3] for k in range(0, len(NEW), 3)]
        futures = [client.submit(tl.predict_partition, data, part) for part in parts]
        found = pd.concat(client.gather(futures))
    pd.testing.assert_frame_equal(found, tl.predict_partition(data, NEW))


@pytest.mark.parametrize("engine", ["dask", "ray", "spark"])
def test_examples_of_engines_write_what_the_whole_predicts(engine, model, tmp_path):
    """Each is a program in ``examples/``; engines are not among the requirements of the tests."""
    needed = {"dask": "dask.dataframe", "ray": "ray.data", "spark": "pyspark"}[engine]
    pytest.importorskip(needed, exc_type=ImportError)
    pytest.importorskip("pyarrow")
    (tmp_path / "m.treelens").write_bytes(model[1])
    NEW.reset_index(drop=True).to_parquet(tmp_path / "new.parquet")
    program = Path(__file__).parents[2] / "examples" / f"predict_with_{engine}.py"
    names = ("m.treelens", "new.parquet", "found")
    done = subprocess.run(
        [sys.executable, program, *(tmp_path / name for name in names)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = pd.read_parquet(tmp_path / "found").sort_values("id", ignore_index=True)
    whole = tl.predict_partition(model[1], NEW).sort_values("id", ignore_index=True)
    pd.testing.assert_frame_equal(found[whole.columns].astype(whole.dtypes), whole)
