"""What the methods of Table 2 choose from, by name: a row says which grid it was made with."""

from __future__ import annotations

from dataclasses import dataclass

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
