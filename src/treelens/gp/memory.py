"""How much memory a fit will take, said before it begins."""

from __future__ import annotations

import os
from contextlib import suppress

from treelens.gp.landmarks import BLOCK

_BYTES = 8  # of a number in double precision


def bytes_needed(n_graphs: int, n_learning: int, n_landmarks: int | None) -> int:
    """The largest matrices that are held at once, in bytes.

    Learning holds three matrices of the graphs that weights are learned on; conditioning exactly,
    three of all graphs; through landmarks, eight of landmarks and four of a block by landmarks.

    Examples
    --------
    >>> round(bytes_needed(10_000, 3_000, None) / 2**30, 1)
    2.2
    """
    learning = 3 * n_learning**2
    if n_landmarks is None:
        conditioning = 3 * n_graphs**2
    else:
        conditioning = 8 * n_landmarks**2 + 4 * min(BLOCK, n_graphs) * n_landmarks
    return _BYTES * max(learning, conditioning)


def check_memory(n_graphs: int, n_learning: int, n_landmarks: int | None) -> None:
    """Refuse, before any work, what the machine's memory cannot hold."""
    available = _available_bytes()
    needed = bytes_needed(n_graphs, n_learning, n_landmarks)
    if available is not None and needed > available:
        raise MemoryError(
            f"Fitting {n_graphs} graphs would take about {needed / 2**30:.1f} GiB, and "
            f"{available / 2**30:.1f} GiB are free. Lower exact_size (beyond it predictions go "
            "through landmarks), n_landmarks or learning_size."
        )


def _available_bytes() -> int | None:
    """Free memory, where the system tells."""
    with suppress(OSError), open("/proc/meminfo", encoding="ascii") as lines:
        for line in lines:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    with suppress(AttributeError, OSError, ValueError):
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None
