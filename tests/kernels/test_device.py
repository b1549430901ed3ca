"""Sums and kernel values on a device agree with those of the CPU."""

import numpy as np
import pytest
from scipy import sparse

from devices import SIMULATED, needs_device, small_blocks  # noqa: F401
from treelens.kernels.base import Term
from treelens.kernels.device import Device, device_mixture, device_sums, put_lists, put_rows
from treelens.kernels.gram import pair_sums
from treelens.kernels.mixture import TanimotoL1
from treelens.patterns.histograms import Features, PairFeatures

pytestmark = pytest.mark.interpreted
TERM = Term(TanimotoL1(1.3, 0.2, 0.6), 1.7)


def _features(n, n_patterns, seed):
    """Random counts; the first graph holds no pattern, and no graph holds the last one."""
    counts = np.random.default_rng(seed).poisson(0.7, size=(n, n_patterns))
    counts[0], counts[:, -1] = 0, 0
    table = sparse.csr_array(counts.astype(float))
    return PairFeatures.of_rows(table, np.array([0, n_patterns]), True)


def device_kernel(device, left, right, weights, term):
    """The mixture kernel between two sides, on the device."""
    support = np.diff(right.lists.offsets)
    rows = put_rows(device, left.rows, support)
    lists = put_lists(device, right.lists, right.n_graphs)
    sums = device_sums(device, rows, lists, weights)
    own, other = (device.put(side.diagonal(weights)) for side in (left, right))
    return device_mixture(term, sums, own, other, out=sums)


@needs_device
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("shape", [(1, 1), (4, 11), (7, 5)])
def test_the_kernel_between_two_sides(shape):
    left, right = (_features(n, 9, seed) for seed, n in enumerate(shape))
    weights = np.random.default_rng(5).uniform(size=9)
    device = Device.open("cuda")
    found = device.get(device_kernel(device, left, right, weights, TERM))
    expected = TERM.matrix(Features.of(left, weights), Features.of(right, weights))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@needs_device
@pytest.mark.usefixtures("small_blocks")
def test_patterns_of_one_graph_may_be_left_out_of_pairs():
    features = _features(9, 12, seed=3)
    weights, device = np.linspace(0.5, 2.0, 12), Device.open("cuda")
    rows = put_rows(device, features.rows, np.diff(features.lists.offsets), least=2)
    lists = put_lists(device, features.lists, 9)
    found = device.get(device_sums(device, rows, lists, weights))
    off = ~np.eye(9, dtype=bool)
    np.testing.assert_allclose(found[off], pair_sums(features, weights=weights)[off], rtol=1e-12)


@needs_device
@pytest.mark.skipif(SIMULATED, reason="a simulated device has all the memory there is")
def test_what_does_not_fit_is_an_error():
    with pytest.raises(MemoryError, match=r"9 graphs need .* GiB free: fewer"):
        Device.open("cuda").check_room(2**50, "9 graphs", "fewer")
