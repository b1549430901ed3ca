"""The methods of Table 2: which candidates each may choose from.

One table drives the runner, the tables and the command line. A Weisfeiler-Lehman method is a list
of kernel forms and whether its weights are learned; the others are lists of fixed kernels.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

DEPTHS = (1, 2, 3, 4, 5, 6)
CS = (0.1, 1.0, 10.0, 100.0)
GAMMAS = (0.1, 1.0, 3.0, 10.0)
# The learner's settings where a method says nothing else.
LEARNER: dict[str, Any] = {"tol": 1e-3, "max_iter": 60}


@dataclass(frozen=True)
class WLMethod:
    """A Weisfeiler-Lehman method.

    Attributes
    ----------
    title : str
    forms : tuple of str
        Keys of ``treelens.kernels.forms.FORMS``.
    uniform : str or None
        For a learned method, the key of the same method with uniform weights, which is searched
        first: learning is tried at its best depth.
    learner : dict
        Parameters of ``PairwiseWeights`` other than the radius.
    members : tuple of str
        For a method that chooses among others, by their score inside: their keys. It needs no run
        of its own, since their rows say all.
    """

    title: str
    forms: tuple[str, ...] = ()
    uniform: str | None = None
    learner: dict[str, Any] = field(default_factory=dict)
    members: tuple[str, ...] = ()

    @property
    def preset(self) -> bool:
        """Whether the weights come from one of the learner's presets."""
        return "preset" in self.learner


WL_METHODS: dict[str, WLMethod] = {
    "wl_subtree": WLMethod("WL subtree", ("subtree", "subtree-cosine")),
    "wl_oa": WLMethod("WL-OA", ("assignment", "tanimoto")),
    "wwl": WLMethod("WWL", ("exponential",)),
    "learned_wl_subtree": WLMethod(
        "learned WL subtree", ("subtree", "subtree-cosine"), "wl_subtree"
    ),
    "learned_wl_oa": WLMethod("learned WL-OA", ("assignment", "tanimoto"), "wl_oa"),
    "learned_wwl": WLMethod("learned WWL", ("exponential",), "wwl"),
    "best_of_all": WLMethod(
        "WWL or WL-OA, learned or not, as chosen inside",
        members=("wwl", "wl_oa", "learned_wwl", "learned_wl_oa"),
    ),
    "wl_tanimoto": WLMethod("WL Tanimoto, exponential", ("tanimoto-exponential",)),
    "learned_wl_tanimoto": WLMethod(
        "learned WL Tanimoto, exponential", ("tanimoto-exponential",), "wl_tanimoto"
    ),
    "preset_paper": WLMethod(
        "learned WWL, the paper's margins and steps", ("exponential",), "wwl", {"preset": "paper"}
    ),
    "preset_released_code": WLMethod(
        "learned WWL, the released code's margins and steps",
        ("exponential",), "wwl", {"preset": "released-code"},
    ),
}  # fmt: skip

FIXED_METHODS: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "random_walk": (
        "Random walk",
        [
            {"max_length": length, "decay": decay, "normalize": "cosine"}
            for length in (2, 4)
            for decay in (0.01, 0.1, 1.0)
        ],
    ),
    "shortest_path": ("Shortest path", [{"normalize": None}, {"normalize": "cosine"}]),
}

# Order of the rows of the table.
TABLE2_METHODS = (
    "random_walk", "shortest_path", "wl_subtree", "wl_oa", "wwl", "wl_tanimoto",
    "learned_wl_subtree", "learned_wl_oa", "learned_wwl", "learned_wl_tanimoto",
    "best_of_all", "preset_paper", "preset_released_code",
)  # fmt: skip


def title_of(method: str) -> str:
    """The name of a method as a table shows it."""
    return WL_METHODS[method].title if method in WL_METHODS else FIXED_METHODS[method][0]
