"""The methods of Table 2, the grids they choose from, and learners of the studies.

A Weisfeiler-Lehman method is a list of kernels and whether its weights are learned; the others are
lists of fixed kernels. A row names its grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from treelens.pairwise.learn import PairwiseWeights
from treelens.patterns.histograms import PairFeatures

# From this many training graphs on, a grid's second list of radii is tried.
_MANY = 1500


@dataclass(frozen=True)
class Grid:
    """The values of every parameter that is chosen by cross-validation."""

    depths: tuple[int, ...]
    gammas: tuple[float, ...]
    Cs: tuple[float, ...]
    radii: tuple[float, ...]  # for training parts of fewer than 1,500 graphs
    radii_of_many: tuple[float, ...]
    lengths: tuple[int, ...] = ()  # of the random walks
    decays: tuple[float, ...] = ()
    first_depth: int = 0  # 0 counts node labels

    def radii_for(self, n_graphs: int) -> tuple[float, ...]:
        """The radii, beside 0, for a training part of this size."""
        return self.radii if n_graphs < _MANY else self.radii_of_many


GRIDS = {
    # Rows that name no grid: depths to 6, gamma 0.1 to 10, C 0.1 to 100, radii 0.3 to 3 (many
    # graphs: 1 to 30), walks of 2 and 4 steps, decays to 1.
    "wide": Grid(
        depths=(1, 2, 3, 4, 5, 6, 8, 10),
        gammas=(0.01, 0.1, 1.0, 3.0, 10.0, 30.0),
        Cs=(0.01, 0.1, 1.0, 10.0, 100.0, 1000.0),
        radii=(0.1, 0.3, 1.0, 3.0, 10.0),
        radii_of_many=(0.3, 1.0, 3.0, 10.0, 30.0, 100.0),
        lengths=(2, 4, 8),
        decays=(0.01, 0.1, 1.0, 10.0),
    ),
    "paper": Grid(
        depths=(1, 2, 3, 4, 5, 6),
        gammas=(1e-4, 1e-3, 1e-2),
        Cs=(1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3),
        radii=(0.1, 0.5, 1.0),
        radii_of_many=(0.1, 0.5, 1.0),
        first_depth=1,
    ),
}

# What the methods choose from unless they say something else.
GRID = "wide"
DEPTHS, GAMMAS, CS = GRIDS[GRID].depths, GRIDS[GRID].gammas, GRIDS[GRID].Cs
# The learner's settings where a method says nothing else.
LEARNER: dict[str, Any] = {"tol": 1e-3, "max_iter": 60}


@dataclass(frozen=True)
class WLMethod:
    """A Weisfeiler-Lehman method."""

    title: str
    kernels: tuple[str, ...] = ()
    # of a learned method: the same with uniform weights, at whose best depth learning is tried
    uniform: str | None = None
    learner: dict[str, Any] = field(default_factory=dict)  # parameters of `study_learner`
    members: tuple[str, ...] = ()  # of a method that chooses among others, by their inner score

    @property
    def preset(self) -> bool:
        """Whether the weights come from one of the learner's presets."""
        return "preset" in self.learner


WL_METHODS: dict[str, WLMethod] = {
    "wl_subtree": WLMethod("WL subtree", ("wl-subtree", "wl-subtree-cosine")),
    "wl_oa_plain": WLMethod("WL-OA", ("wl-oa",)),
    "wl_oa": WLMethod("WL-OA or its Tanimoto form, as chosen", ("wl-oa", "tanimoto")),
    "wwl": WLMethod("WWL", ("wwl",)),
    "learned_wl_subtree": WLMethod(
        "learned WL subtree", ("wl-subtree", "wl-subtree-cosine"), "wl_subtree"
    ),
    "learned_wl_oa": WLMethod(
        "learned WL-OA or Tanimoto, as chosen", ("wl-oa", "tanimoto"), "wl_oa"
    ),
    "learned_wwl": WLMethod("learned WWL", ("wwl",), "wwl"),
    "best_of_all": WLMethod(
        "WWL, WL-OA or Tanimoto, learned or not, as chosen inside",
        members=("wwl", "wl_oa", "learned_wwl", "learned_wl_oa"),
    ),
    "wl_tanimoto": WLMethod("WL Tanimoto, exponential", ("tanimoto-rbf",)),
    "learned_wl_tanimoto": WLMethod(
        "learned WL Tanimoto, exponential", ("tanimoto-rbf",), "wl_tanimoto"
    ),
    "preset_paper": WLMethod(
        "learned WWL, the paper's margins and steps", ("wwl",), "wwl", {"preset": "paper"}
    ),
    "preset_released_code": WLMethod(
        "learned WWL, the released code's margins and steps",
        ("wwl",),
        "wwl",
        {"preset": "released-code"},
    ),
}

# The paper's own grid and depths (1 to H), with three learners: its printed numbers, its margins
# with the weights learned to the optimum, and none. Only the first is a line of Table 2.
PAPER_MARGINS: dict[str, Any] = {"margins": (1.0, 0.5), "sigma": 0.1, "balance": False}
# With the printed numbers 500 steps of 1e-4 along gradients no longer than 1 end within 0.05 of the
# start, so that no radius of the grid is ever reached: one stands for all three.
PAPER_RADII = {"paper_protocol": GRIDS["paper"].radii[:1], "paper_grid_wwl": (0.0,)}
PAPER_METHODS: dict[str, WLMethod] = {
    "paper_protocol": WLMethod(
        "learned WWL, the paper's method and protocol",
        ("wwl",),
        learner={"preset": "paper", "n_checks": 0},
    ),
    "paper_grid_converged": WLMethod(
        "the same, weights learned to the optimum", ("wwl",), learner=PAPER_MARGINS
    ),
    "paper_grid_wwl": WLMethod("WWL in the paper's grid", ("wwl",)),
}


def _walks(lengths: Sequence[int], decays: Sequence[float]) -> list[dict[str, Any]]:
    return [
        {"max_length": length, "decay": decay, "normalize": "cosine"}
        for length in lengths
        for decay in decays
    ]


_PATHS: list[dict[str, Any]] = [{"normalize": None}, {"normalize": "cosine"}]
FIXED_METHODS: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "random_walk": ("Random walk", _walks(GRIDS[GRID].lengths, GRIDS[GRID].decays)),
    "shortest_path": ("Shortest path", _PATHS),
    # Not lines of Table 2: what becomes of the two when they cannot see the labels.
    "random_walk_unlabelled": ("Random walk, labels ignored", _walks((2, 4), (0.1, 1.0))),
    "shortest_path_unlabelled": ("Shortest path, labels ignored", _PATHS),
}

# Order of the rows of the table.
TABLE2_METHODS = (
    "random_walk",
    "shortest_path",
    "wl_subtree",
    "wl_oa_plain",
    "wl_oa",
    "wwl",
    "wl_tanimoto",
    "learned_wl_subtree",
    "learned_wl_oa",
    "learned_wwl",
    "learned_wl_tanimoto",
    "best_of_all",
    "preset_paper",
    "preset_released_code",
    "paper_protocol",
)
# Made by `compare` on the same folds; its rows are read into the table.
GP_METHODS = {
    "gp_default": "Gaussian process, default",
    "gp_uniform": "Gaussian process, uniform weights, best depth",
    "gp_depths": "Gaussian process, weights of depths",
    "gp_branches": "Gaussian process, weights of branches",
    "gp_attributes": "Gaussian process, default, labels and attributes",
}
# What else the runner can make: rows that the page speaks of below its table.
OTHER_METHODS = (
    "paper_grid_converged",
    "paper_grid_wwl",
    "random_walk_unlabelled",
    "shortest_path_unlabelled",
)


def title_of(method: str) -> str:
    """The name of a method as a table shows it."""
    fixed = {m: title for m, (title, _) in FIXED_METHODS.items()}
    learned = {m: spec.title for m, spec in {**WL_METHODS, **PAPER_METHODS}.items()}
    return {**fixed, **GP_METHODS, **learned}[method]


# The numbers of the paper, to the letter: 500 single pairs, step 1e-4.
PAPER: dict[str, Any] = {
    "solver": "stochastic",
    "margins": (1.0, 0.5),
    "sigma": 0.1,
    "balance": False,
    "n_steps": 500,
    "step_size": 1e-4,
    "halvings": 0,
    "average": False,
    "n_checks": 0,
}


def study_learner(
    radius: float = 1.0, *, preset: str | None = None, random_state: Any = None, **settings: Any
) -> PairwiseWeights | ReleasedCodeWeights:
    """Return a learner of the library, with the paper's numbers or as in the released program."""
    if preset == "released-code":
        return ReleasedCodeWeights(radius, random_state=random_state)
    if preset not in (None, "paper"):
        raise ValueError(f"preset must be paper or released-code, got {preset!r}.")
    fixed = PAPER if preset == "paper" else {}
    return PairwiseWeights.from_flat(
        {"radius": radius, "random_state": random_state, **settings, **fixed}
    )


class ReleasedCodeWeights(BaseEstimator):
    """Weights as the program released with the paper learns them.

    It runs 500 epochs over disjoint pairs with step 0.01 and keeps every weight in [0, 2]. Its
    margins are 5 and -5, so that both hinges are always active and a step does not depend on the
    weights: they drift until the box stops them. ``radius`` has no effect.
    """

    N_EPOCHS, STEP_SIZE = 500, 0.01

    def __init__(self, radius: float = 1.0, *, random_state: Any = None) -> None:
        self.radius = radius
        self.random_state = random_state

    def fit(self, features: PairFeatures, y: Any) -> ReleasedCodeWeights:
        """Learn the weights."""
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        y, rows, half = np.asarray(y), features.rows, features.n_graphs // 2
        bounds = list(zip(rows.offsets[:-1].tolist(), rows.offsets[1:].tolist(), strict=True))
        patterns = [rows.indices[a:b] for a, b in bounds]
        values = [rows.values[a:b] for a, b in bounds]
        combine = np.minimum if features.minimum else np.multiply
        weights, other = np.ones(features.n_patterns), np.zeros(features.n_patterns)
        for _ in range(self.N_EPOCHS):
            order = rng.permutation(features.n_graphs)
            for i, j in zip(order[:half].tolist(), order[half : 2 * half].tolist(), strict=True):
                other[patterns[j]] = values[j]
                z = combine(values[i], other[patterns[i]]) * features.scale[i] * features.scale[j]
                step = self.STEP_SIZE if y[i] == y[j] else -self.STEP_SIZE
                weights[patterns[i]] = (weights[patterns[i]] + step * z).clip(0.0, 2.0)
                other[patterns[j]] = 0.0
        self.weights_ = weights
        return self
