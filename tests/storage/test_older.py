"""Files of before in the words of now; what is damaged is left for the checks to find."""

from __future__ import annotations

import numpy as np
import pytest

from treelens.kernels.table import KERNELS, RENAMED_KERNELS
from treelens.storage.archive import Contents
from treelens.storage.older import PRESETS, in_new_words, without_preset


def renamed(data, arrays=None):
    return in_new_words(Contents(data, arrays or {}, 2))


def test_parameters_choices_and_candidates():
    old = next(iter(RENAMED_KERNELS))
    new = RENAMED_KERNELS[old]
    assert new in KERNELS
    found = renamed(
        {
            "parameters": {"form": {"$tuple": [old, "tanimoto"]}, "radius": [0.0, 1.0]},
            "choice": {"form": old, "radius": 1.0, "depth": 2},
            "search": {"candidates": [[0.0, 2, old, None, 1.0]], "n_splits": 3},
            "learning_gain": {"learned_candidate": {"form": old}, "p_value": 0.5},
            "temperature": 2.0,
        }
    ).data
    assert found["parameters"] == {
        "kernel": {"$tuple": [new, "tanimoto"]},
        "weight_radius": [0.0, 1.0],
    }
    assert found["choice"] == {"kernel": new, "weight_radius": 1.0, "depth": 2}
    assert found["search"] == {"candidates": [[0.0, 2, new, None, 1.0]], "n_splits": 3}
    assert found["learning_gain"] == {"learned_candidate": {"kernel": new}, "p_value": 0.5}
    assert found["slope"] == 2.0
    assert "temperature" not in found


def test_arrays():
    arrays = {"support": np.zeros(1), "support_self_sums": np.ones(1)}
    assert set(renamed({}, arrays).arrays) == {"support", "support_diagonal"}


@pytest.mark.parametrize(
    "data",
    [
        {"parameters": None},
        {"choice": 3, "search": [], "learning_gain": "x"},
        {"search": {"candidates": [[1, 2]]}},
        {"parameters": {"kernel": {"$tuple": 5}}},
    ],
)
def test_what_is_damaged_stays_as_it_is(data):
    assert renamed(data).data == data


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_gives_way_to_what_it_fixed(name):
    given = {"preset": name, "radius": 0.5, "tol": 0.1, "constraint": "ball", "n_jobs": None}
    found = without_preset(given)
    assert {key: found[key] for key in PRESETS[name]} == PRESETS[name]
    assert found["tol"] == 0.1  # it left that to the user


@pytest.mark.parametrize("preset", [None, "unknown", 3, []])
def test_without_a_preset_nothing_changes(preset):
    assert without_preset({"preset": preset, "tol": 1.0}) == {"preset": preset, "tol": 1.0}
