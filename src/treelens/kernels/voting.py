"""Several classes, decided one against one: which class wins, and what speaks for each.

There is one *output* for every two classes ``i < j``, in the order (0, 1), (0, 2), ..., (1, 2), ...
It is positive where ``j`` is preferred. Two classes have one output, which needs none of this.
"""

from __future__ import annotations

import numpy as np


def class_pairs(n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """The two classes of every output, shape (n_pairs,) each; the first is the smaller.

    Examples
    --------
    >>> [classes.tolist() for classes in class_pairs(3)]
    [[0, 0, 1], [1, 2, 2]]
    """
    return np.triu_indices(n_classes, k=1)


def n_classes_of(n_pairs: int) -> int:
    """The number of classes that have so many pairs.

    Examples
    --------
    >>> n_classes_of(3), n_classes_of(435)
    (3, 30)
    """
    return (1 + int(np.sqrt(1 + 8 * n_pairs))) // 2


def margin_signs(n_classes: int) -> np.ndarray:
    """Whether an output speaks for a class (1), against it (-1) or not of it (0).

    Returns
    -------
    ndarray, shape (n_classes, n_pairs)
    """
    first, second = class_pairs(n_classes)
    signs = np.zeros((n_classes, len(first)))
    everyone = np.arange(len(first))
    signs[first, everyone], signs[second, everyone] = -1.0, 1.0
    return signs


def mean_margins(outputs: np.ndarray) -> np.ndarray:
    """The mean of the outputs of each class against the others, along the first axis.

    It is linear: of coefficients, shape (n_pairs, n_graphs), it makes those of decision functions
    of the classes, shape (n_classes, n_graphs).

    Examples
    --------
    >>> mean_margins(np.array([1.0, 2.0, -4.0])).tolist()  # pairs (0, 1), (0, 2), (1, 2)
    [-1.5, 2.5, -1.0]
    """
    n_classes = n_classes_of(len(outputs))
    return margin_signs(n_classes) @ outputs / (n_classes - 1)


def class_values(outputs: np.ndarray) -> np.ndarray:
    """One value per class from the outputs of all pairs: votes, and margins that break ties.

    Each output votes for one of its classes. To the votes of a class a number between -1/3 and
    1/3 is added that grows with the sum of its margins: it never outweighs a vote, and decides
    between classes that have equally many. This is what scikit-learn's ``SVC`` has for a
    ``decision_function_shape`` of ``"ovr"``.

    Parameters
    ----------
    outputs : ndarray, shape (n_graphs, n_pairs)

    Returns
    -------
    ndarray, shape (n_graphs, n_classes)

    Examples
    --------
    >>> class_values(np.array([[1.0, 2.0, -4.0]])).argmax(axis=1)  # votes: 0, 2, 1
    array([1])
    """
    signs = margin_signs(n_classes_of(outputs.shape[1])).T  # (n_pairs, n_classes)
    sums = outputs @ signs
    preferred = np.where(outputs > 0, 1.0, -1.0)
    # A vote won adds 1 and a vote lost 0, where the product has 1 and -1.
    votes = (preferred @ signs + signs.shape[1] - 1) / 2
    return votes + sums / (3.0 * (np.abs(sums) + 1.0))
