"""How much memory a fit takes, checked before it begins."""

from __future__ import annotations

from pathlib import Path

from treelens.gp.landmarks import BLOCK, MOST_KEPT

_BYTES = 8  # of a number in double precision
# Limit and use of the control group of this process, of versions 2 and 1.
_CGROUPS = (
    ("memory.max", "memory.current"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
)


def bytes_needed(n_graphs: int, n_learning: int, n_landmarks: int | None) -> int:
    """Return the size of the largest matrices that exist at once, in bytes.

    Learning takes two matrices of the graphs that weights are learned from; the exact posterior
    three of all graphs; landmarks eight matrices of landmarks and four of a block by landmarks, or
    two of graphs by landmarks while they are chosen.

    Examples
    --------
    >>> round(bytes_needed(10_000, 3_000, None) / 2**30, 1)
    2.2
    """
    learning = 2 * n_learning**2
    if n_landmarks is None:
        conditioning = 3 * n_graphs**2
    else:
        kept = 2 * min(MOST_KEPT, n_graphs * n_landmarks)
        conditioning = 8 * n_landmarks**2 + max(kept, 4 * min(BLOCK, n_graphs) * n_landmarks)
    return _BYTES * max(learning, conditioning)


def check_memory(n_graphs: int, n_learning: int, n_landmarks: int | None) -> None:
    """Refuse, before any work, what the available memory cannot hold."""
    available = available_bytes()
    needed = bytes_needed(n_graphs, n_learning, n_landmarks)
    if needed > available:
        raise MemoryError(
            f"Fitting {n_graphs} graphs would take about {needed / 2**30:.1f} GiB, and "
            f"{available / 2**30:.1f} GiB are free. Lower exact_size (beyond it predictions go "
            "through landmarks), n_landmarks or learning_size."
        )


def available_bytes(cgroups: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the memory that is free, within the limit of a container where there is one."""
    import psutil

    available = int(psutil.virtual_memory().available)
    for limit_file, use_file in _CGROUPS:
        try:
            limit = int((cgroups / limit_file).read_text())
            available = min(available, max(limit - int((cgroups / use_file).read_text()), 0))
        except (OSError, ValueError):  # no such group, or no limit ("max")
            continue
    return available
