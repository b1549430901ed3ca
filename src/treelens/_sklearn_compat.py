"""What we use of scikit-learn beyond its promises: private names, and types it does not have.

Private names may move with any release; they are imported here and nowhere else, so that there is
one place to mend. The base classes and decorators carry no types, and a class that inherits from an
untyped one has, to a type checker, every attribute there is: ``model.fti(graphs)`` would pass. So
type checkers find here what estimators inherit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.utils._missing import is_pandas_na
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight as check_sample_weight

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    import numpy as np
    from typing_extensions import Self

    Function = TypeVar("Function", bound=Callable[..., Any])

    def available_if(check: Callable[[Any], bool]) -> Callable[[Function], Function]: ...

    class BaseEstimator:
        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def get_metadata_routing(self) -> Any: ...
        def set_fit_request(self, **requests: bool | str | None) -> Self: ...
        def set_predict_request(self, **requests: bool | str | None) -> Self: ...
        def set_score_request(self, **requests: bool | str | None) -> Self: ...
        def _validate_params(self) -> None: ...
        def __sklearn_tags__(self) -> Any: ...

    class ClassifierMixin:
        def score(self, X: object, y: object, sample_weight: object = None) -> float: ...

    class RegressorMixin:
        def score(self, X: object, y: object, sample_weight: object = None) -> float: ...

    class TransformerMixin:
        def fit_transform(self, X: object, y: object = None, **fit_params: Any) -> np.ndarray: ...
        def set_output(self, *, transform: str | None = None) -> Self: ...

else:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin
    from sklearn.utils.metaestimators import available_if

__all__ = [
    "BaseEstimator",
    "ClassifierMixin",
    "HasMethods",
    "Interval",
    "RegressorMixin",
    "StrOptions",
    "TransformerMixin",
    "available_if",
    "check_sample_weight",
    "is_pandas_na",
]
