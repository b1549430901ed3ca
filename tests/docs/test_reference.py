"""The reference has a page for every public name, and for no other."""

from __future__ import annotations

import re

import treelens as tl
from docs.conftest import ROOT


def test_every_public_name_is_in_the_reference_once():
    page = (ROOT / "docs" / "api" / "index.md").read_text(encoding="utf-8")
    listed = re.findall(r"^   (\w+)$", page, flags=re.MULTILINE)
    assert sorted(listed) == sorted(set(tl.__all__) - {"__version__"})
