"""Writes the golden model file of the current format version: once, when the version is new.

Never run it again for a version that was released: the point of the file is that it is old.
From version 2 on, which decides several classes one against one, it has three classes.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import treelens as tl
from treelens.estimators.archive import FORMAT_VERSION
from treelens.estimators.persistence import save_model

FOLDER = Path(__file__).parent


def write_golden() -> None:
    graphs, _ = tl.make_synthetic(n_per_substructure=4, random_state=0)
    numbers = np.asarray(graphs.graph_data["substructure"], dtype=int)
    y = np.array(["first", "second", "third"])[numbers % 3]
    new, _ = tl.make_synthetic(n_per_substructure=1, noise_nodes=(5, 8), random_state=1)
    settings = {"depth": 2, "gamma": 1.0, "C": 10.0, "cv": 2, "random_state": 0}
    model = tl.GraphSVC("exponential", radius=[0.0, 2.0], **settings).fit(graphs, y)
    save_model(model, FOLDER / f"model-v{FORMAT_VERSION}.zip")
    known = {
        "graphs": [{"labels": g.node_labels, "edges": g.edges} for g in new],
        "classes": model.predict(new).tolist(),
        "decisions": model.decision_function(new).tolist(),
        "probabilities": model.predict_proba(new).tolist(),
        "patterns": model.patterns_["pattern"].head(3).tolist(),
    }
    (FOLDER / f"model-v{FORMAT_VERSION}.json").write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    write_golden()
