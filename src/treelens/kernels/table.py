"""The table of kernels: names, formulas and pair features.

Nothing heavy is imported here, since ``treelens --help`` reads it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KernelRow:
    """One kernel of the table.

    ``pair_feature`` is what the weighted sum ``<W, Z>`` of two graphs adds up: "wasserstein" minima
    of relative frequencies, "optimal-assignment" minima of counts, "subtree" products of counts
    (see :mod:`treelens.patterns.histograms`).
    """

    name: str
    pair_feature: str
    has_gamma: bool
    formula: str
    words: str  # the formula in plain English


_ROWS = (
    KernelRow(
        "wwl",
        "wasserstein",
        True,
        "exp(-gamma (b - <W, Z>))",
        "two graphs are similar when the shares of their nodes that carry each pattern agree, with "
        "weights; similarity falls off exponentially with the distance",
    ),
    KernelRow(
        "laplacian",
        "wasserstein",
        True,
        "exp(-gamma d), d the weighted L1 metric",
        "the distance adds up, with weights, how much the shares of nodes that carry each pattern "
        "differ; similarity falls off exponentially with it",
    ),
    KernelRow(
        "tanimoto",
        "optimal-assignment",
        False,
        "k(x,y) / (k(x,x) + k(y,y) - k(x,y))",
        "two graphs are similar when they contain the same patterns equally often: what they "
        "share, with weights, divided by what either contains",
    ),
    KernelRow(
        "tanimoto-rbf",
        "optimal-assignment",
        True,
        "exp(-gamma (1 - t)), t the tanimoto kernel",
        "what two graphs share, with weights, divided by what either contains; similarity falls "
        "off exponentially with the rest",
    ),
    KernelRow(
        "wl-oa",
        "optimal-assignment",
        False,
        "sum of weighted minima of counts",
        "the best matching of the nodes of two graphs, with weights on the patterns that matched "
        "nodes share",
    ),
    KernelRow(
        "wl-subtree",
        "subtree",
        False,
        "sum of weighted products of counts",
        "the number of pairs of nodes that carry the same pattern, with weights",
    ),
    KernelRow(
        "wwl-linear",
        "wasserstein",
        False,
        "sum of weighted minima of relative frequencies",
        "the share of nodes that two graphs have in common, pattern by pattern, with weights",
    ),
    KernelRow(
        "wl-subtree-cosine",
        "subtree",
        False,
        "k(x,y) / sqrt(k(x,x) k(y,y)) of wl-subtree",
        "the number of pairs of nodes that carry the same pattern, with weights, normalised for "
        "the size of the graphs",
    ),
)
KERNELS = {row.name: row for row in _ROWS}


def check_kernel(name: str) -> None:
    """Raise a ``ValueError`` for the name of a kernel that does not exist."""
    if not isinstance(name, str) or name not in KERNELS:
        raise ValueError(f"kernel must be one of {', '.join(KERNELS)}; got kernel={name!r}.")
