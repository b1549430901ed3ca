"""Names that parameters, kernels and attributes had before: each error tells the new one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from sklearn.utils.validation import check_is_fitted

from treelens.kernels.table import RENAMED_KERNELS

# Values that parameters no longer have, and what an error tells of them.
_OLD_VALUES: dict[str, dict[str, str]] = {
    "kernel": {old: f"is called {new!r} now" for old, new in RENAMED_KERNELS.items()},
}


class TellsNewNames:
    """Refuses old names of parameters and attributes; stands before ``BaseEstimator``.

    The signature of ``__init__`` stays as it is written, so that ``get_params``, ``clone``, editors
    and type checkers see the parameters there are.
    """

    _old_parameters: ClassVar[dict[str, str]] = {}
    _moved_parameters: ClassVar[dict[str, str]] = {}
    _gone_parameters: ClassVar[dict[str, str]] = {}
    _old_attributes: ClassVar[dict[str, str]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            cls.__init__ = _telling(cls.__init__)  # type: ignore[method-assign]

    def set_params(self, **params: Any) -> Any:
        """Set parameters; see scikit-learn. An old name is an error that tells the new one."""
        _refuse(params, type(self))
        return super().set_params(**params)  # type: ignore[misc]

    def _validate_params(self) -> None:
        for name, told in _OLD_VALUES.items():
            given = getattr(self, name, None)
            for value in given if isinstance(given, (list, tuple)) else [given]:
                if isinstance(value, str) and value in told:
                    raise ValueError(f"{name}={value!r} {told[value]}.")
        super()._validate_params()  # type: ignore[misc]

    if not TYPE_CHECKING:  # to a type checker it would mean that every attribute is there

        def __getattr__(self, name: str) -> Any:
            """Only asked for what is not there."""
            if name in self._old_attributes:
                raise AttributeError(
                    f"{type(self).__name__} has no {name!r}: it is called "
                    f"{self._old_attributes[name]!r} now."
                )
            if hasattr(type(self), name):  # a view of the model, not there yet or for a reason
                check_is_fitted(self)
                return getattr(type(self), name).__get__(self)  # which tells the reason
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def _telling(init: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(init)
    def told(self: Any, *args: Any, **kwargs: Any) -> None:
        _refuse(kwargs, type(self))
        init(self, *args, **kwargs)

    return told


def _refuse(given: Iterable[str], kind: type[TellsNewNames]) -> None:
    told = _words_of_old(kind)
    old = [name for name in given if name in told]
    if old:
        words = "; ".join(f"the parameter {name!r} {told[name]}" for name in old)
        gone = ", ".join(name for name in old if name in kind._gone_parameters)
        advice = f" Leave out {gone}." if gone else ""
        raise TypeError(f"{kind.__name__}: {words}.{advice}")


def _words_of_old(kind: type[TellsNewNames]) -> dict[str, str]:
    """What an error tells of each parameter that is not there any more."""
    renamed = {old: f"is called {new!r} now" for old, new in kind._old_parameters.items()}
    return {**kind._gone_parameters, **kind._moved_parameters, **renamed}
