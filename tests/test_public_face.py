"""What ``import treelens`` offers, and what it costs."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys

import pytest

import treelens as tl

HEAVY = ["numba", "sklearn", "scipy", "numpy", "pandas", "networkx", "matplotlib", "rdkit", "dask"]


def in_a_fresh_interpreter(program: str) -> list[str]:
    """The heavy modules that a program has loaded in the end."""
    report = f"\nimport json, sys\nprint(json.dumps([m for m in {HEAVY} if m in sys.modules]))"
    done = subprocess.run(
        [sys.executable, "-c", program + report], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return json.loads(done.stdout)


def test_the_import_loads_nothing_heavy_and_a_model_no_optional_library():
    assert in_a_fresh_interpreter("import treelens; dir(treelens); treelens.__version__") == []
    loaded = in_a_fresh_interpreter("import treelens; treelens.GraphSVC()")
    assert "sklearn" in loaded
    assert not {"rdkit", "dask", "matplotlib", "networkx"} & set(loaded)


@pytest.mark.parametrize("name", tl.__all__)
def test_every_public_name_resolves(name):
    value = getattr(tl, name)
    assert name in dir(tl)
    if name != "__version__":
        assert value.__doc__
        assert value.__module__.startswith("treelens.")
        assert getattr(importlib.import_module(value.__module__), name) is value


def test_star_import_and_unknown_names():
    namespace: dict = {}
    exec("from treelens import *", namespace)
    assert set(tl.__all__) <= set(namespace)
    with pytest.raises(AttributeError, match="No treelens attribute GraphTransformer"):
        _ = tl.GraphTransformer
