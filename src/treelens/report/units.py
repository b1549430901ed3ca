"""How numbers in the units of the target are written, so that sums come out as shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

_MINUS = "\N{MINUS SIGN}"
_MOST_DECIMALS = 6
_LARGEST_PLAIN = 1e9


@dataclass(frozen=True)
class Units:
    """Writes numbers with a fixed number of decimals.

    Attributes
    ----------
    decimals : int
        Negative where the numbers spread over thousands; beyond six, numbers are written with
        powers of ten.

    Examples
    --------
    >>> units = Units.of({"std": 2.1})
    >>> units(3.14159), units.signed(3.14159, 1)
    ('3.14', '+3.142')
    """

    decimals: int = 2

    @classmethod
    def of(cls, spread: Mapping[str, float] | None) -> Units:
        """Three digits of the spread of the training values; without any, two decimals."""
        if spread is None or not spread["std"] > 0:
            return cls()
        return cls(2 - int(np.floor(np.log10(spread["std"]))))

    def __call__(self, value: float | None, more: int = 0) -> str:
        """The text of a number, with ``more`` decimals than usual."""
        if value is None:
            return "–"
        plain = self.decimals <= _MOST_DECIMALS and abs(value) < _LARGEST_PLAIN
        text = f"{value:,.{max(self.decimals + more, 0)}f}" if plain else f"{value:.{3 + more}g}"
        if not float(text.replace(",", "")):
            text = text.lstrip("-")
        return text.replace("-", _MINUS)

    def signed(self, value: float | None, more: int = 0) -> str:
        """The same with a plus in front of what is not negative."""
        text = self(value, more)
        return text if value is None or text.startswith(_MINUS) else "+" + text

    def rest(self, whole: float, part: float) -> str:
        """What is missing from a part to the whole, both as they are written.

        Examples
        --------
        >>> units = Units(1)
        >>> units(0.56), units.rest(0.56, 0.24), units(0.24)
        ('0.6', '+0.4', '0.2')
        """
        decimals = max(self.decimals, 0)
        return self.signed(round(whole, decimals) - round(part, decimals))
