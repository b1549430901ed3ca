"""What ``import treelens`` offers, and what it costs."""

from __future__ import annotations

import importlib
import inspect
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


ESTIMATORS = [name for name in tl.__all__ if {"fit", "get_params"} <= {*dir(getattr(tl, name))}]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_unknown_keyword_is_one_of_the_public_class(name):
    with pytest.raises(TypeError, match=rf"^{name}\.__init__\(\) got .* 'depht'"):
        getattr(tl, name)(depht=3)
    with pytest.raises(TypeError, match=rf"^{name}\.fit\(\) got .* 'covariate'"):
        getattr(tl, name)().fit(["CCO"], [1.0], covariate=3)


def test_methods_that_are_renamed_stay_what_they_are():
    model = tl.GraphRegressor(depth=3)
    assert model.get_params()["depth"] == 3
    assert "random_state" in inspect.signature(tl.GraphRegressor).parameters
    assert tl.GraphRegressor.save.__doc__ == tl.GraphClassifier.save.__doc__
