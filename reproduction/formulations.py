"""Ways to learn the weights that were tried beside the default: one table of plain data.

Each is learned WWL with one thing changed: the pairs it learns from, how far weights may go, what
becomes of rare patterns, the vocabulary, or the form of the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

DEFAULT = "default"


@dataclass(frozen=True)
class Formulation:
    """One way to learn, compared with uniform weights in the same form and vocabulary.

    Attributes
    ----------
    title : str
    learner : str
        A key of ``reproduction.formulation_study.LEARNERS``.
    settings : dict
        Parameters of that learner other than the radius.
    radii : tuple of float or None
        Radii to choose from; None for those of the training part's size.
    kernel : str
        A key of ``treelens.kernels.table.KERNELS``.
    edge_labels : bool
        Whether patterns tell edge labels apart; for data sets that have them.
    """

    title: str
    learner: str = "pairwise"
    settings: dict[str, Any] = field(default_factory=dict)
    radii: tuple[float, ...] | None = None
    kernel: str = "wwl"
    edge_labels: bool = False

    @property
    def twin(self) -> tuple[str, bool]:
        """Formulations that agree in this share their uniform twin."""
        return self.kernel, self.edge_labels


FORMULATIONS: dict[str, Formulation] = {
    DEFAULT: Formulation("default: all pairs, balanced, quantile margins, ball"),
    "paper_margins": Formulation(
        "the paper's margins, 1.0 and 0.5", settings={"margins": (1.0, 0.5), "sigma": 0.1}
    ),
    "unbalanced": Formulation("pairs not balanced", settings={"balance": False}),
    "local_pairs": Formulation("local pairs", settings={"pairs": "local"}),
    "box": Formulation("box instead of ball", settings={"constraint": "box"}),
    "large_radii": Formulation("large radii, held by the orthant", radii=(10.0, 30.0, 100.0)),
    "min_support": Formulation("minimum support 5", settings={"min_support": 5}),
    "halving_radii": Formulation(
        "radii halved with every depth", "depth-scaled", {"depth_factor": 0.5}
    ),
    "doubling_radii": Formulation(
        "radii doubled with every depth", "depth-scaled", {"depth_factor": 2.0}
    ),
    "smoothed": Formulation(
        "rare patterns smoothed toward their parents", "smoothed", {"strength": 5.0}
    ),
    # The search compares candidates by weights learned to this tolerance only.
    "stopped_early": Formulation(
        "stopped as early as in the choice inside", settings={"tol": 1e-2, "max_iter": 40}
    ),
    "edge_labels": Formulation("edge labels", edge_labels=True),
    "metric": Formulation("metric form", kernel="laplacian"),
    "tanimoto": Formulation("Tanimoto form", kernel="tanimoto"),
    "tanimoto_exponential": Formulation(
        "Tanimoto form, exponential", kernel="tanimoto-rbf"
    ),
}  # fmt: skip
