"""Take the picture ``serve.png`` of the page of a model.

treelens fit logD.csv --target logD --out logD.treelens   # Lipophilicity, with that column
treelens serve logD.treelens &
python docs/images/make_serve.py http://127.0.0.1:8765/ docs/images/serve.png
"""

from __future__ import annotations

import shutil
import sys

from playwright.sync_api import sync_playwright

MOLECULES = """CC(C)NCC(O)COc1cccc2ccccc12 propranolol
CC(=O)Oc1ccccc1C(=O)O aspirin
Cn1c(=O)c2c(ncn2C)n(C)c1=O caffeine
CC(C)Cc1ccc(cc1)C(C)C(=O)O ibuprofen"""

with sync_playwright() as driver:
    browser = driver.chromium.launch(
        executable_path=shutil.which("chromium"), args=["--headless", "--no-sandbox"]
    )
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    page.goto(sys.argv[1])
    page.fill("#smiles", MOLECULES)
    page.click("#predict")
    page.wait_for_selector(".compound")
    page.fill("#edit", "CC(C)NCC(O)COc1cccc2cccnc12")
    page.wait_for_selector(".difference")
    page.screenshot(path=sys.argv[2])
