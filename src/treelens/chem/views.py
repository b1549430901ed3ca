"""Ways to see molecules, as ``views=`` of an estimator lists them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from treelens.chem.ecfp import FingerprintForest
from treelens.errors import check_choice, check_whole
from treelens.gp.data import CountedView, NumbersView
from treelens.graphs.collection import GraphCollection
from treelens.kernels.base import Kernel
from treelens.kernels.rbf import Rbf
from treelens.views import View, ViewSettings, checked_kernel, descriptors_of

_LARGEST_RADIUS = 20


@dataclass(frozen=True)
class Descriptors(View):
    """Descriptors of whole molecules, under a kernel of their own.

    Each is seen by its rank among the training molecules, as a normal score, so that a molecule
    far outside cannot drown the others.

    Parameters
    ----------
    chosen : {"compact", "fast", "all"}, default="compact"
        21 cheap ones (logP, polar surface, donors, rings, charge, ...); all of RDKit's that cost
        little time; or all of them.
    kernel : subclass of Kernel, default=Rbf
        What compares rows: see :class:`treelens.Kernel`.

    Examples
    --------
    >>> import treelens as tl
    >>> from treelens import chem
    >>> model = tl.GraphRegressor(views=[tl.WLPatterns(), chem.Descriptors("fast")])
    """

    chosen: str = "compact"
    kernel: type[Kernel] = Rbf

    def fit(self, graphs: GraphCollection, settings: ViewSettings) -> NumbersView:
        check_choice("Descriptors", self.chosen, ("compact", "fast", "all"))
        return descriptors_of(graphs, self.chosen, checked_kernel(self.kernel))


@dataclass(frozen=True)
class Ecfp(View):
    """Counts of circular environments (extended connectivity fingerprints), which are not folded.

    Every radius can have a weight of its own (``weights="depths"``).

    Parameters
    ----------
    radius : int, default=3
        The largest one: 2 is ECFP4, 3 is ECFP6.

    Examples
    --------
    >>> import treelens as tl
    >>> from treelens import chem
    >>> smiles = ["CCO", "CCCO", "CCCCO", "CCN", "CCCN", "CCCCN"]
    >>> model = tl.GraphRegressor(weights="depths", views=[chem.Ecfp(2)])
    >>> model.fit(smiles, [1.0, 1.1, 1.2, 2.0, 2.1, 2.2]).views_
    ['ecfp']
    """

    radius: int = 3

    counts_patterns: ClassVar[bool] = True

    def fit(self, graphs: GraphCollection, settings: ViewSettings) -> CountedView:
        check_whole("radius", self.radius, 0)
        if self.radius > _LARGEST_RADIUS:
            raise ValueError(f"radius={self.radius} is above {_LARGEST_RADIUS}.")
        source, found = FingerprintForest.fit(graphs, self.radius)
        return CountedView(source, source.count(found), settings.prior_strength, settings.n_jobs)
