"""The rooms keep within their budgets of lines, and a room above its budget is noticed."""

import importlib
import sys

import pytest

from docs.conftest import ROOT


@pytest.fixture
def house(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.delitem(sys.modules, "benchmarks", raising=False)
    return importlib.import_module("benchmarks.house")


def test_every_room_has_a_budget_and_keeps_it(house):
    lines = {room: sum(map(house.lines_of, files)) for room, files in house.rooms().items()}
    assert house.over_budget(house.read_budgets(), lines) == []


def test_a_room_above_its_budget_fails(house, monkeypatch, capsys):
    monkeypatch.setattr(house, "read_budgets", lambda: {"gp": 1})
    assert house.check() == 1
    assert "gp has" in capsys.readouterr().out
