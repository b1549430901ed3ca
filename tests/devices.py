"""Where tests of GPU code run: on a GPU, or on Numba's simulator of one (``make interpreted``)."""

import numba
import pytest

from treelens.kernels.device import Device


def _there_is_a_device() -> bool:
    try:
        Device.open("cuda")
    except (ImportError, RuntimeError):
        return False
    return True


SIMULATED = bool(getattr(numba.config, "ENABLE_CUDASIM", False))
THERE = _there_is_a_device()
needs_device = pytest.mark.skipif(
    not THERE, reason="no GPU here; `make interpreted` runs this on a simulated one"
)


@pytest.fixture
def small_blocks(monkeypatch):
    """Tiles and blocks so small that little problems have several; a real GPU keeps its own."""
    if not SIMULATED:
        return
    from treelens.gp import device
    from treelens.kernels import _compiled_device

    for name, size in (("TILE", 5), ("THREADS", 8), ("GROUP", 2)):
        monkeypatch.setattr(_compiled_device, name, size)
    monkeypatch.setattr(device, "BLOCK", 5)
