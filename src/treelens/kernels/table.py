"""The one table of kernels: what each is called, its formula, and what goes into it.

It feeds ``GraphSVC``, the search, feature maps, explanations, the report, the command line and the
docs. Nothing heavy is imported here, since ``treelens --help`` reads it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KernelRow:
    """One kernel of the table.

    Attributes
    ----------
    name : str
    pair_feature : {"wasserstein", "optimal-assignment", "subtree"}
        What the weighted sum ``<W, Z>`` of two graphs adds up: minima of relative frequencies,
        minima of counts, or products of counts (see :mod:`treelens.patterns.pairs`).
    has_gamma : bool
        Whether it has a scale.
    formula : str
    words : str
        The same for people who do not read formulas.
    """

    name: str
    pair_feature: str
    has_gamma: bool
    formula: str
    words: str


_ROWS = (
    KernelRow(
        "wwl", "wasserstein", True, "exp(-gamma (b - <W, Z>))",
        "two graphs are alike when the shares of their nodes that carry each pattern agree, with "
        "weights; similarity falls off exponentially with the distance",
    ),
    KernelRow(
        "laplacian", "wasserstein", True, "exp(-gamma d), d the weighted L1 metric",
        "the distance adds up, with weights, how much the shares of nodes that carry each pattern "
        "differ; similarity falls off exponentially with it",
    ),
    KernelRow(
        "tanimoto", "optimal-assignment", False, "k(x,y) / (k(x,x) + k(y,y) - k(x,y))",
        "two graphs are alike in as much as they hold the same patterns equally often: what they "
        "share, with weights, divided by what either holds",
    ),
    KernelRow(
        "tanimoto-rbf", "optimal-assignment", True,
        "exp(-gamma (1 - t)), t the tanimoto kernel",
        "what two graphs share, with weights, divided by what either holds; similarity falls off "
        "exponentially with the rest",
    ),
    KernelRow(
        "wl-oa", "optimal-assignment", False, "sum of weighted minima of counts",
        "the best matching of the nodes of two graphs, with weights on the patterns that matched "
        "nodes share",
    ),
    KernelRow(
        "wl-subtree", "subtree", False, "sum of weighted products of counts",
        "the number of pairs of nodes that carry the same pattern, with weights",
    ),
    KernelRow(
        "wwl-linear", "wasserstein", False, "sum of weighted minima of relative frequencies",
        "the share of nodes that two graphs have in common, pattern by pattern, with weights",
    ),
    KernelRow(
        "wl-subtree-cosine", "subtree", False, "k(x,y) / sqrt(k(x,x) k(y,y)) of wl-subtree",
        "the number of pairs of nodes that carry the same pattern, with weights, freed of the "
        "size of the graphs",
    ),
)  # fmt: skip
KERNELS = {row.name: row for row in _ROWS}

# Kernels that explicit features exist for: random ones that come near, and unary ones, exact.
RANDOM_KERNELS = ("laplacian", "wwl")
UNARY_KERNELS = ("wl-oa", "wwl-linear", "wl-subtree", "wl-subtree-cosine")
# The plain weighted sum of every pair feature.
SUM_KERNELS = {"wasserstein": "wwl-linear", "optimal-assignment": "wl-oa", "subtree": "wl-subtree"}


def check_kernel(name: str, known: tuple[str, ...] = tuple(KERNELS), what: str = "kernel") -> None:
    """Refuse a kernel that is not known, or that ``what`` has nothing for.

    Examples
    --------
    >>> check_kernel("polynomial", ("wwl", "laplacian"))
    Traceback (most recent call last):
    ...
    ValueError: kernel must be one of wwl, laplacian; got kernel='polynomial'.
    """
    if name not in known:
        start = "kernel must be one of" if what == "kernel" else f"{what} exist for the kernels"
        raise ValueError(f"{start} {', '.join(known)}; got kernel={name!r}.")
