"""What an estimator holds beside its model, handed to a report that cannot ask for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from treelens.gp.domain import Domain
from treelens.graphs.collection import GraphCollection
from treelens.report.given import graph_name

if TYPE_CHECKING:
    from treelens.explain.fragments import FragmentTable


@dataclass(frozen=True)
class Held:
    """What a report can say more with; a fitted model alone has none of it.

    Attributes
    ----------
    domain : callable, optional
        Makes the domain of applicability; called only where graphs are given.
    train_graphs : GraphCollection, optional
        Missing where the model came out of a file.
    fragments : callable, optional
        Makes the table of fragments of the training graphs; called only where no graphs are given,
        or too few to find any in.
    """

    domain: Callable[[], Domain] | None = None
    train_graphs: GraphCollection | None = None
    fragments: Callable[[], FragmentTable] | None = None

    def training_name(self, index: int) -> str | None:
        """What the data calls a training graph, where that is still known."""
        return None if self.train_graphs is None else graph_name(self.train_graphs, index)
