"""Memory is checked before it is taken."""

import psutil
import pytest

from treelens.gp import memory
from treelens.gp.memory import available_bytes, bytes_needed, check_memory


def test_landmarks_take_less_than_all_graphs():
    assert bytes_needed(40_000, 3_000, 3_000) < bytes_needed(40_000, 3_000, None) / 5


def test_a_fit_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 2**30)
    check_memory(1_000, 1_000, None)
    with pytest.raises(MemoryError, match="exact_size"):
        check_memory(20_000, 3_000, None)


@pytest.mark.parametrize(
    ("limit", "used"),
    [("memory.max", "memory.current"),
     ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes")],
)  # fmt: skip
def test_the_limit_of_a_container_counts(tmp_path, limit, used):
    (tmp_path / "memory").mkdir()
    (tmp_path / used).write_text("1000\n")
    (tmp_path / limit).write_text("max\n")
    free = psutil.virtual_memory().available
    assert available_bytes(tmp_path) == pytest.approx(free, rel=0.2)
    (tmp_path / limit).write_text("5000\n")
    assert available_bytes(tmp_path) == 4000
