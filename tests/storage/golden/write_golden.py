"""Writes the golden model files of the current format version: once, when the version is new.

Files that exist stay as they are: the point of a golden file is that it is old. From version 2
on, which decides several classes one against one, the classifiers have three classes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import treelens as tl
from treelens.storage.archive import FORMAT_VERSION

FOLDER = Path(__file__).parent


def write_golden() -> None:
    graphs, _ = tl.make_synthetic(n_per_substructure=4, random_state=0)
    numbers = np.asarray(graphs.graph_data["substructure"], dtype=int)
    y = np.array(["first", "second", "third"])[numbers % 3]
    new, _ = tl.make_synthetic(n_per_substructure=1, noise_nodes=(5, 8), random_state=1)
    settings = {"depth": 2, "gamma": 1.0, "C": 10.0, "cv": 2, "random_state": 0}
    sizes = np.sqrt(graphs.sizes)
    for kind, model, targets in (
        ("model", tl.GraphSVC("wwl", weight_radius=[0.0, 2.0], **settings), y),
        ("classifier", tl.GraphClassifier(depth=2), y),
        ("regressor", tl.GraphRegressor(depth=2), sizes),
    ):
        path = FOLDER / f"{kind}-v{FORMAT_VERSION}.zip"
        if not path.exists():
            model.fit(graphs, targets).save(path)
            known = {
                "graphs": [{"labels": g.node_labels, "edges": g.edges} for g in new],
                **what_it_says(model, new),
                "patterns": model.patterns_["pattern"].head(3).tolist(),
            }
            path.with_suffix(".json").write_text(json.dumps(known, indent=1) + "\n")


def what_it_says(model: Any, new: Any) -> dict[str, Any]:
    if isinstance(model, tl.GraphRegressor):
        mean, std = model.predict(new, return_std=True)
        said = {"predictions": mean.tolist(), "std": std.tolist()}
        return {**said, "gain": model.learning_gain_.sentence}
    probabilities = model.predict_proba(new).tolist()
    if isinstance(model, tl.GraphClassifier):
        said = {"predictions": model.predict(new).tolist(), "probabilities": probabilities}
        return {**said, "gain": model.learning_gain_.sentence}
    return {
        "classes": model.predict(new).tolist(),
        "decisions": model.decision_function(new).tolist(),
        "probabilities": probabilities,
    }


if __name__ == "__main__":
    write_golden()
