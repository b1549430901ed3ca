"""Every block of the guide runs, prints what it says, and its links lead somewhere."""

from __future__ import annotations

import pytest

from docs.conftest import ROOT, dead_links

GUIDE = sorted((ROOT / "docs" / "guide").glob("*.md"))
# The pages of results are written by the experiments, links included.
OTHERS = [ROOT / "docs" / "index.md", ROOT / "docs" / "paper.md"]


@pytest.mark.parametrize("page", GUIDE, ids=lambda page: page.stem)
def test_every_block_runs(page, run_page):
    run_page(page)


@pytest.mark.parametrize("page", [*GUIDE, *OTHERS], ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    assert not dead_links(page)
