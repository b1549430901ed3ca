"""Conditioning and predicting on a GPU: the exact posterior, to some fifty thousand graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from treelens.gp.evidence_device import DeviceCovariance
from treelens.gp.factor_device import half_solve_on_device
from treelens.gp.posterior import LeaveOneOut, MeanPosterior
from treelens.kernels.device import Device, device_mixture, device_sums, put_lists, put_rows
from treelens.kernels.mixture import MixtureKernel
from treelens.patterns.features import Features
from treelens.patterns.pairs import PairFeatures

if TYPE_CHECKING:
    from treelens.gp.model import FittedGP


def check_device(name: str) -> None:
    """Refuse a device that is not there before any work is done, and name those that are."""
    if name == "cpu":
        return
    try:
        Device.open(name)
    except RuntimeError as error:
        there = _devices_there()
        if not there:
            raise
        raise RuntimeError(
            f"device={name!r}, but there is no such GPU here: use one of "
            f"{', '.join(map(repr, there))} or 'cpu'."
        ) from error


def _devices_there() -> list[str]:
    try:
        arrays = Device.open("cuda").arrays
    except RuntimeError:
        return []
    return [f"cuda:{number}" for number in range(arrays.cuda.runtime.getDeviceCount())]


def condition_on_device(
    features: PairFeatures,
    kernel: MixtureKernel,
    noise: np.ndarray,
    targets: np.ndarray,
    device: str,
) -> tuple[MeanPosterior, LeaveOneOut]:
    """The posterior given targets of shape (n, n_columns), and each graph left out.

    The factor stays behind: what a CPU would do with one of a GPU's size is not worth the way.
    """
    covariance = DeviceCovariance(features, device)
    covariance.make(kernel.weights, kernel.scales, noise)
    covariance.factor()
    coefficients = covariance.device.get(covariance.solve(targets))
    diagonal = covariance.device.get(covariance.invert().diagonal())[:, None].copy()
    left_out = LeaveOneOut(targets - coefficients / diagonal, 1.0 / diagonal[:, 0])
    return MeanPosterior(coefficients), left_out


class DevicePredictor:
    """Kernel rows and variances of a fitted model, on a device.

    Parameters
    ----------
    model : FittedGP
    name : str
        ``"cuda"``, ``"cuda:1"``, ...
    """

    def __init__(self, model: FittedGP, name: str) -> None:
        self.model = model
        self.device = Device.open(name)
        basis = model.basis_graphs
        self.lists = put_lists(self.device, basis.pairs.lists, basis.pairs.n_graphs)
        self.support = np.diff(basis.pairs.lists.offsets)
        self.diagonal = self.device.put(basis.diagonal)
        self._factor: Any = None

    def kernel_rows(self, graphs: Features) -> Any:
        """Kernel values with the basis graphs, on the device: (n_graphs, n_basis)."""
        rows = put_rows(self.device, graphs.pairs.rows, self.support)
        sums = device_sums(self.device, rows, self.lists, self.model.weights)
        left = self.device.put(graphs.diagonal)
        return device_mixture(self.model.scales, sums, left, self.diagonal, out=sums)

    def decide(self, graphs: Features, variance: bool) -> tuple[np.ndarray, np.ndarray]:
        """Means and variances, the latter empty if not asked for."""
        model, device = self.model, self.device
        rows = self.kernel_rows(graphs)
        mean = device.get(rows @ device.put(model.coefficients.T))
        spread = np.empty(0)
        if variance:
            spread = model.variances(device.get(self._reduction(rows)))
        return model.target_offset + mean, spread

    def _reduction(self, rows: Any) -> Any:
        """How much the training graphs take off the variance, shape (n_graphs,)."""
        gain = getattr(self.model.posterior, "precision_gain", None)
        if gain is not None:  # of landmarks
            return ((rows @ self.device.put(gain)) * rows).sum(axis=1)
        half = half_solve_on_device(self._training_factor(), rows.T, self.device.arrays)
        return (half**2).sum(axis=0)

    def _training_factor(self) -> Any:
        """The factor of the covariance of the targets, made when it is first needed."""
        if self._factor is None:
            model = self.model
            assert model.sample_weights is not None
            covariance = DeviceCovariance(model.basis_graphs.pairs, self.device.name)
            covariance.make(model.weights, model.scales, model.noise / model.sample_weights)
            self._factor = covariance.factor()
        return self._factor
