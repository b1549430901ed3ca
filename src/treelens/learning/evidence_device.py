"""The evidence and its gradient on a GPU, by dense matrix products.

A minimum of counts is a sum over thresholds, ``min(a, b) = sum over t of [a >= t] [b >= t]``: with
one *unary* column for every threshold of every pattern, the weighted sums over pairs are one matrix
product, and the gradient in the weights another. That is far more arithmetic than the lists of the
CPU need, but of the kind that a GPU is made for. Numbers agree with the CPU's to rounding.

Needs PyTorch; everything is in double precision.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from treelens.learning.evidence import (
    JITTER,
    EvidenceParameters,
    EvidenceProblem,
    own_gradient,
    prior_value,
    scale_slopes,
    weight_slopes,
)

# Columns whose products with a matrix are made at a time.
_CHUNK = 32_768


class DeviceMemoryError(MemoryError):
    """The problem does not fit on the device."""


class _DeviceKernel(NamedTuple):
    """The kernel of all pairs of graphs and its parts, each (n, n) on the device."""

    sums: Any
    both: Any
    union: Any
    empty: Any
    tanimoto: Any
    distance: Any
    near: Any
    far: Any
    covariance: Any


class DeviceEvidence:
    """Objective and gradient on one device; call it with parameters.

    Parameters
    ----------
    problem : EvidenceProblem
    device : str
        As PyTorch names it: ``"cuda"``, ``"cuda:1"``, or ``"cpu"``, where it serves for tests.
    """

    def __init__(self, problem: EvidenceProblem, device: str) -> None:
        self.problem = problem
        self.torch = torch = _torch()
        if device.startswith("cuda") and not torch.cuda.is_available():
            raise RuntimeError(
                f"device={device!r}, but PyTorch finds no GPU here: use device='cpu'."
            )
        rows, columns, self.patterns = unary_columns(problem)
        shape = (problem.n_graphs, len(self.patterns))
        self._check_room(device, shape)
        self.columns = torch.zeros(shape, dtype=torch.float64, device=device)
        self.columns[torch.as_tensor(rows), torch.as_tensor(columns)] = 1.0
        self.targets = torch.as_tensor(problem.targets, dtype=torch.float64, device=device)
        self.device = device

    def _check_room(self, device: str, shape: tuple[int, int]) -> None:
        if not device.startswith("cuda"):
            return
        n, width = shape
        needed = 8 * (n * width + n * min(width, _CHUNK) * 2 + 14 * n * n)
        free, _ = self.torch.cuda.mem_get_info(device)
        if needed > free:
            raise DeviceMemoryError(
                f"{n} graphs with {width} unary columns need {needed / 2**30:.1f} GiB on the "
                f"device, which has {free / 2**30:.1f} GiB free: learn on fewer graphs "
                "(learning_size) or at a smaller depth."
            )

    def __call__(self, parameters: EvidenceParameters, learned: str) -> tuple[float, np.ndarray]:
        """The objective and its gradient, as :func:`evidence_objective` gives them."""
        problem, weights = self.problem, self.problem.weights(parameters)
        kernel = self._kernel(parameters, weights)
        value, pull, on_diagonal = self._evidence(parameters, kernel.covariance)
        value += prior_value(problem, parameters)
        scales = parameters.kernel_scales()
        by_tanimoto = pull * kernel.near * (scales.amplitude * scales.share * scales.gamma)
        by_distance = pull * kernel.far * (scales.amplitude * (1.0 - scales.share) * scales.rho)
        totals = 0.5 * np.array(  # every pair stands in the matrix twice
            [
                -float((by_tanimoto * (1.0 - kernel.tanimoto)).sum()),
                -float((by_distance * kernel.distance).sum()),
                float((pull * kernel.covariance).sum()),
                scales.amplitude * float((pull * (kernel.near - kernel.far)).sum()),
            ]
        )
        gradient = scale_slopes(problem, parameters, totals, on_diagonal)
        if learned == "uniform":
            return value, gradient
        per_union = by_tanimoto / kernel.union**2  # no pair without patterns has a slope
        per_union[kernel.empty] = 0.0
        own_slopes = -(per_union * kernel.sums + by_distance).sum(dim=1)
        slopes = per_union * kernel.both + 2.0 * by_distance
        by_weight = self._gather(slopes) + own_gradient(problem, own_slopes.cpu().numpy())
        parts = weight_slopes(problem, parameters, weights * by_weight, learned)
        return value, np.concatenate([gradient, *parts])

    def _kernel(self, parameters: EvidenceParameters, weights: np.ndarray) -> _DeviceKernel:
        """The kernel of all pairs, with what it is made of."""
        torch, scales = self.torch, parameters.kernel_scales()
        own = self._tensor(self.problem.features.diagonal(weights))  # (n,)
        sums = self._pair_sums(self._tensor(weights[self.patterns]))
        sums.fill_diagonal_(0.0)
        both = own[:, None] + own[None, :]
        union = both - sums
        empty = union <= 0.0
        union[empty] = 1.0
        tanimoto = torch.where(empty, 1.0, sums / union)
        distance = (both - 2.0 * sums).clamp_(min=0.0)
        near = torch.exp(-scales.gamma * (1.0 - tanimoto))
        far = torch.exp(-scales.rho * distance)
        covariance = scales.amplitude * (scales.share * near + (1.0 - scales.share) * far)
        noise = self._tensor(parameters.noise * self.problem.noise_factors)
        covariance.diagonal().copy_(scales.amplitude * (1.0 + JITTER) + noise)
        return _DeviceKernel(sums, both, union, empty, tanimoto, distance, near, far, covariance)

    def _evidence(
        self, parameters: EvidenceParameters, covariance: Any
    ) -> tuple[float, Any, np.ndarray]:
        """Surprise of the targets; its slopes in the entries off and on the diagonal."""
        torch, n_columns = self.torch, self.targets.shape[1]
        factor = torch.linalg.cholesky(covariance)
        alpha = torch.cholesky_solve(self.targets, factor)
        fit = float((self.targets * alpha).sum()) / n_columns
        value = 0.5 * fit + float(torch.log(factor.diagonal()).sum())
        pull = torch.cholesky_inverse(factor)
        pull -= alpha @ alpha.T / n_columns
        on_diagonal = 0.5 * pull.diagonal().clone().cpu().numpy()
        pull.fill_diagonal_(0.0)
        return value, pull, on_diagonal

    def _tensor(self, array: np.ndarray) -> Any:
        return self.torch.as_tensor(array, dtype=self.torch.float64, device=self.device)

    def _pair_sums(self, column_weights: Any) -> Any:
        n = self.problem.n_graphs
        sums = self.torch.zeros((n, n), dtype=self.torch.float64, device=self.device)
        for start in range(0, len(self.patterns), _CHUNK):
            part = self.columns[:, start : start + _CHUNK]
            sums += (part * column_weights[start : start + _CHUNK]) @ part.T
        return sums

    def _gather(self, slopes: Any) -> np.ndarray:
        """The slope in every weight over the pairs ``i < j``, shape (n_patterns,)."""
        parts = []
        for start in range(0, len(self.patterns), _CHUNK):
            part = self.columns[:, start : start + _CHUNK]
            parts.append(0.5 * ((slopes @ part) * part).sum(dim=0))
        n_patterns = self.problem.hierarchy.n_patterns
        if not parts:
            return np.zeros(n_patterns)
        columns = self.torch.cat(parts).cpu().numpy()
        return np.bincount(self.patterns, weights=columns, minlength=n_patterns)


def unary_columns(problem: EvidenceProblem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where unary columns hold a one (graph, column), and the pattern of each column.

    Thresholds that one graph alone reaches add nothing to any pair, and are left out.
    """
    lists = problem.features.lists
    counts = lists.values.astype(np.int64)
    pattern = np.repeat(np.arange(len(lists)), np.diff(lists.offsets))
    step = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    key = np.repeat(pattern, counts) * (int(counts.max(initial=0)) + 1) + step
    keys, column, reached = np.unique(key, return_inverse=True, return_counts=True)
    kept = reached >= 2
    place = np.cumsum(kept) - 1
    used = kept[column]
    rows = np.repeat(lists.indices, counts)[used]
    patterns = keys[kept] // (int(counts.max(initial=0)) + 1)
    return rows.astype(np.int64), place[column[used]], patterns


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            "Learning on a GPU needs PyTorch: pip install 'treelens[gpu]'."
        ) from error
    return torch
