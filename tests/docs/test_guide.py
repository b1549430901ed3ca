"""Every block of the landing page and the guide runs, and links of all pages lead somewhere."""

from __future__ import annotations

import pytest

from docs.conftest import ROOT, dead_links

GUIDE = sorted((ROOT / "docs" / "guide").glob("*.md"))
LANDING = ROOT / "docs" / "index.md"
OTHERS = [
    LANDING, ROOT / "docs" / "paper.md", ROOT / "docs" / "scaling.md",
    *sorted((ROOT / "docs" / "results").glob("*.md")),
]  # fmt: skip


@pytest.mark.parametrize("page", [LANDING, *GUIDE], ids=lambda page: page.stem)
def test_every_block_runs(page, run_page):
    run_page(page)


@pytest.mark.parametrize(
    "page", [*GUIDE, *OTHERS], ids=lambda page: f"{page.parent.name}-{page.stem}"
)
def test_links_lead_somewhere(page):
    assert not dead_links(page)
