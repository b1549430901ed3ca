"""The methods of Table 2 and the grids they choose from; a row names its grid.

A Weisfeiler-Lehman method is a list of kernels and whether its weights are learned; the others are
lists of fixed kernels.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

# From this many training graphs on, a grid's second list of radii is tried.
_MANY = 1500


@dataclass(frozen=True)
class Grid:
    """The values of every parameter that is chosen by cross-validation.

    Attributes
    ----------
    depths, gammas, Cs : tuple
        Of the Weisfeiler-Lehman methods; ``Cs`` of the others, too.
    radii, radii_of_many : tuple of float
        For training parts of fewer than 1,500 graphs, and for larger ones.
    lengths, decays : tuple
        Of the random walks.
    first_depth : int
        The shallowest patterns: 0 counts node labels.
    """

    depths: tuple[int, ...]
    gammas: tuple[float, ...]
    Cs: tuple[float, ...]
    radii: tuple[float, ...]
    radii_of_many: tuple[float, ...]
    lengths: tuple[int, ...] = ()
    decays: tuple[float, ...] = ()
    first_depth: int = 0

    def radii_for(self, n_graphs: int) -> tuple[float, ...]:
        """The radii, beside 0, for a training part of this size."""
        return self.radii if n_graphs < _MANY else self.radii_of_many


GRIDS = {
    # Rows that name no grid were made with this one.
    "first": Grid(
        depths=(1, 2, 3, 4, 5, 6), gammas=(0.1, 1.0, 3.0, 10.0), Cs=(0.1, 1.0, 10.0, 100.0),
        radii=(0.3, 1.0, 3.0), radii_of_many=(1.0, 10.0, 30.0),
        lengths=(2, 4), decays=(0.01, 0.1, 1.0),
    ),
    "wide": Grid(
        depths=(1, 2, 3, 4, 5, 6, 8, 10), gammas=(0.01, 0.1, 1.0, 3.0, 10.0, 30.0),
        Cs=(0.01, 0.1, 1.0, 10.0, 100.0, 1000.0),
        radii=(0.1, 0.3, 1.0, 3.0, 10.0), radii_of_many=(0.3, 1.0, 3.0, 10.0, 30.0, 100.0),
        lengths=(2, 4, 8), decays=(0.01, 0.1, 1.0, 10.0),
    ),
    "paper": Grid(
        depths=(1, 2, 3, 4, 5, 6), gammas=(1e-4, 1e-3, 1e-2),
        Cs=(1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3),
        radii=(0.1, 0.5, 1.0), radii_of_many=(0.1, 0.5, 1.0), first_depth=1,
    ),
}  # fmt: skip

# What the methods choose from unless they say something else.
GRID = "wide"
DEPTHS, GAMMAS, CS = GRIDS[GRID].depths, GRIDS[GRID].gammas, GRIDS[GRID].Cs
# The learner's settings where a method says nothing else.
LEARNER: dict[str, Any] = {"tol": 1e-3, "max_iter": 60}


@dataclass(frozen=True)
class WLMethod:
    """A Weisfeiler-Lehman method.

    Attributes
    ----------
    title : str
    kernels : tuple of str
        Keys of ``treelens.kernels.table.KERNELS``.
    uniform : str or None
        For a learned method, the key of the same method with uniform weights, which is searched
        first: learning is tried at its best depth.
    learner : dict
        Parameters of ``study_learner`` other than the radius.
    members : tuple of str
        For a method that chooses among others, by their score inside: their keys. It needs no run
        of its own, since their rows say all.
    """

    title: str
    kernels: tuple[str, ...] = ()
    uniform: str | None = None
    learner: dict[str, Any] = field(default_factory=dict)
    members: tuple[str, ...] = ()

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
        ("wwl",), "wwl", {"preset": "released-code"},
    ),
}  # fmt: skip

# The paper's own grid and depths (1 to H), with three learners: its printed numbers, its margins
# with the weights learned to the optimum, and none. Only the first is a line of Table 2.
PAPER_MARGINS: dict[str, Any] = {"margins": (1.0, 0.5), "sigma": 0.1, "balance": False}
# With the printed numbers 500 steps of 1e-4 along gradients no longer than 1 end within 0.05 of the
# start, so that no radius of the grid is ever reached: one stands for all three.
PAPER_RADII = {"paper_protocol": GRIDS["paper"].radii[:1], "paper_grid_wwl": (0.0,)}
PAPER_METHODS: dict[str, WLMethod] = {
    "paper_protocol": WLMethod(
        "learned WWL, the paper's method and protocol", ("wwl",),
        learner={"preset": "paper", "n_checks": 0},
    ),
    "paper_grid_converged": WLMethod(
        "the same, weights learned to the optimum", ("wwl",), learner=PAPER_MARGINS
    ),
    "paper_grid_wwl": WLMethod("WWL in the paper's grid", ("wwl",)),
}  # fmt: skip

FIXED_METHODS: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "random_walk": (
        "Random walk",
        [
            {"max_length": length, "decay": decay, "normalize": "cosine"}
            for length in GRIDS[GRID].lengths
            for decay in GRIDS[GRID].decays
        ],
    ),
    "shortest_path": ("Shortest path", [{"normalize": None}, {"normalize": "cosine"}]),
    # Not lines of Table 2: what becomes of the two when they cannot see the labels.
    "random_walk_unlabelled": (
        "Random walk, labels ignored",
        [
            {"max_length": length, "decay": decay, "normalize": "cosine"}
            for length in (2, 4)
            for decay in (0.1, 1.0)
        ],
    ),
    "shortest_path_unlabelled": (
        "Shortest path, labels ignored", [{"normalize": None}, {"normalize": "cosine"}]
    ),
}  # fmt: skip

# Order of the rows of the table.
TABLE2_METHODS = (
    "random_walk", "shortest_path", "wl_subtree", "wl_oa_plain", "wl_oa", "wwl", "wl_tanimoto",
    "learned_wl_subtree", "learned_wl_oa", "learned_wwl", "learned_wl_tanimoto",
    "best_of_all", "preset_paper", "preset_released_code", "paper_protocol",
)  # fmt: skip
# Made by other studies on the same folds; their rows are read into the table.
EVIDENCE_METHODS = {
    "gp_default": "Gaussian process, default",
    "gp_uniform": "Gaussian process, uniform weights, best depth",
    "gp_depths": "Gaussian process, weights of depths",
    "gp_branches": "Gaussian process, weights of branches",
    "gp_attributes": "Gaussian process, default, labels and attributes",
    "evidence_uniform": "Gaussian process, uniform weights, depth 4",
    "evidence_depths": "Gaussian process, one weight per depth",
    "evidence_branches": "Gaussian process, weights of depths and branches",
}
# What else the runner can make: rows that the page speaks of below its table.
OTHER_METHODS = (
    "paper_grid_converged", "paper_grid_wwl", "random_walk_unlabelled", "shortest_path_unlabelled",
)  # fmt: skip


def title_of(method: str) -> str:
    """The name of a method as a table shows it."""
    if method in FIXED_METHODS:
        return FIXED_METHODS[method][0]
    if method in EVIDENCE_METHODS:
        return EVIDENCE_METHODS[method]
    return {**WL_METHODS, **PAPER_METHODS}[method].title
