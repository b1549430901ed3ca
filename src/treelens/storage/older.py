"""Model files that were written before, in the words of now: all that reading them differs in."""

from __future__ import annotations

from typing import Any

from treelens.kernels.table import RENAMED_KERNELS
from treelens.storage.archive import Contents

_PARAMETERS = {"form": "kernel", "radius": "weight_radius"}
_APPROXIMATIONS = {"random-bins": "random-binning", "random-features": "random-fourier"}
_ARRAYS = {"support_self_sums": "support_diagonal"}
# Learners could have a preset: name -> what it fixes.
PRESETS: dict[str, dict[str, Any]] = {
    # The numbers of the paper, to the letter: 500 single pairs, step 1e-4.
    "paper": {
        "solver": "stochastic", "constraint": "ball", "margins": (1.0, 0.5), "sigma": 0.1,
        "b": 1.0, "balance": False, "pairs": "all", "min_support": 1,
        "n_steps": 500, "n_epochs": None, "step_size": 1e-4, "halvings": 0, "average": False,
    },
    # What the program released with the paper does: both hinges are always active, so the
    # weights drift until the box stops them.
    "released-code": {
        "radius": 1.0, "solver": "stochastic", "constraint": "box", "margins": (5.0, -5.0),
        "sigma": 0.1, "b": 1.0, "balance": False, "pairs": "all", "min_support": 1,
        "n_epochs": 500, "step_size": 0.01, "halvings": 0, "average": False,
    },
}  # fmt: skip


def in_new_words(contents: Contents) -> Contents:
    """The same contents with the names that version 3 has; what is damaged is left as it is."""
    data = dict(contents.data)
    for name in ("parameters", "choice", "feature_map"):
        data[name] = _renamed(data.get(name))
    data = {name: value for name, value in data.items() if name in contents.data}
    if "temperature" in data:
        data["slope"] = data.pop("temperature")
    gain = data.get("learning_gain")
    if isinstance(gain, dict):
        data["learning_gain"] = {
            name: _renamed(value) if name.endswith("_candidate") else value
            for name, value in gain.items()
        }
    search = data.get("search")
    if isinstance(search, dict) and isinstance(search.get("candidates"), list):
        data["search"] = {**search, "candidates": [_candidate(c) for c in search["candidates"]]}
    return Contents(data, {_ARRAYS.get(name, name): x for name, x in contents.arrays.items()})


def _renamed(record: Any) -> Any:
    """A record whose keys and kernels, or its kind of features, had other names."""
    if not isinstance(record, dict):
        return record
    record = {_PARAMETERS.get(name, name): value for name, value in record.items()}
    for name, new in (
        ("kernel", RENAMED_KERNELS),
        ("approximation", _APPROXIMATIONS),
        ("kind", _APPROXIMATIONS),
    ):
        if name in record:
            record[name] = _new_name(record[name], new)
    return record


def _new_name(value: Any, new: dict[str, str]) -> Any:
    """A name, or several in a list or a stored tuple."""
    if isinstance(value, str):
        return new.get(value, value)
    if isinstance(value, list):
        return [_new_name(part, new) for part in value]
    if isinstance(value, dict) and "$tuple" in value:
        return {"$tuple": _new_name(value["$tuple"], new)}
    return value


def _candidate(parts: Any) -> Any:
    """Radius, depth, kernel, gamma and C of a candidate."""
    if not isinstance(parts, list) or len(parts) != 5:
        return parts
    return [*parts[:2], _new_name(parts[2], RENAMED_KERNELS), *parts[3:]]


def without_preset(learner: dict[str, Any]) -> dict[str, Any]:
    """Parameters of a learner with what its preset fixed, if it had one."""
    preset = learner.get("preset")
    return {**learner, **(PRESETS.get(preset, {}) if isinstance(preset, str) else {})}
