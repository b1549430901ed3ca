"""A kernel of your own: a Matern kernel on a table of numbers, next to the usual patterns.

Where values change abruptly with a number, a kernel that is not smooth fits better than the usual
one (RBF). Its parameter is learned with all others.

    python examples/own_kernel.py
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
from scipy.spatial.distance import cdist

import treelens as tl


@dataclass(frozen=True)
class Exponential(tl.Kernel):
    """``exp(-|x - x'| / length)``, the Matern kernel of order 1/2."""

    length: float

    PARAMETERS: ClassVar = (tl.Parameter("length", 1e-2, 1e3),)

    @classmethod
    def usual(cls, data):
        return cls(float(np.sqrt(data.shape[1])))

    def matrix(self, left, right, n_jobs=1):
        return np.exp(-cdist(left, right) / self.length)


def main() -> None:
    rng = np.random.default_rng(0)
    graphs, _ = tl.make_synthetic(n_per_substructure=20, random_state=0)
    names = [f"g{k}" for k in range(len(graphs))]
    heat = rng.uniform(-3.0, 3.0, len(graphs))
    table = pd.DataFrame({"id": names, "heat": heat})
    values = np.sign(np.sin(3.0 * heat)) + 0.1 * rng.normal(size=len(graphs))  # jumps
    for kernel in (tl.Table(table).kernel, Exponential):
        views = [tl.WLPatterns(), tl.Table(table, kernel=kernel)]
        model = tl.GraphRegressor(1, "uniform", views=views)
        model.fit(graphs.with_names(names), values)
        print(f"{kernel.__name__}: R2 left out {model.loo_.r2:.2f}, {model.model_.kernel.terms[1]}")
    path = Path(tempfile.mkdtemp(), "own.treelens")
    model.save(path)
    loaded = tl.load(path, classes=[Exponential])
    new = graphs[:5].with_names(names[:5])
    same = np.allclose(loaded.predict(new, tables=table), model.predict(new, tables=table))
    print("from its file:", same)


if __name__ == "__main__":
    main()
