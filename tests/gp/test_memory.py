"""Memory, said before it is taken."""

import pytest

from treelens.gp import memory
from treelens.gp.memory import bytes_needed, check_memory


def test_landmarks_take_less_than_all_graphs():
    assert bytes_needed(40_000, 3_000, 3_000) < bytes_needed(40_000, 3_000, None) / 5


def test_what_does_not_fit_is_refused_beforehand(monkeypatch):
    monkeypatch.setattr(memory, "_available_bytes", lambda: 2**30)
    check_memory(1_000, 1_000, None)
    with pytest.raises(MemoryError, match="exact_size"):
        check_memory(20_000, 3_000, None)
    monkeypatch.setattr(memory, "_available_bytes", lambda: None)
    check_memory(20_000, 3_000, None)  # nobody knows: try
