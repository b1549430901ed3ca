"""Draw the picture at the top of the README: a molecule, and the report that it is from.

    python docs/images/make_front.py docs/images/front.png

Needs Chromium, which takes the picture of the report.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from sklearn.model_selection import train_test_split

import treelens as tl

SHOWN = 5  # of the test molecules: one with effects of both signs
REPORT_SIZE, MOLECULE_WIDTH = (1200, 745), 620

with tempfile.TemporaryDirectory() as folder:
    page, picture = Path(folder, "report.html"), Path(folder, "report.png")
    table = tl.read_table(tl.example_table(Path(folder, "demo.csv")), target="pIC50")
    train, test, y_train, y_test = train_test_split(*table, random_state=0)
    model = tl.GraphRegressor().fit(train, y_train)
    model.report(page, test, y_test)
    drawing = model.explain(test[SHOWN]).draw(width=560, height=420, format="png")
    size = ",".join(map(str, REPORT_SIZE))
    browser = ["chromium", "--headless", "--no-sandbox", "--hide-scrollbars"]
    shot = [f"--window-size={size}", f"--screenshot={picture}", page.as_uri()]
    subprocess.run([*browser, *shot], check=True, capture_output=True)
    report = Image.open(picture).convert("RGB").crop((0, 45, *REPORT_SIZE))
    molecule = Image.open(io.BytesIO(drawing)).convert("RGB")
    molecule = molecule.resize(
        (MOLECULE_WIDTH, molecule.height * MOLECULE_WIDTH // molecule.width), Image.LANCZOS
    )
    front = Image.new("RGB", (molecule.width + report.width + 20, report.height), "white")
    front.paste(molecule, (0, (front.height - molecule.height) // 2))
    front.paste(report, (molecule.width + 20, 0))
    front.resize((front.width * 3 // 4, front.height * 3 // 4), Image.LANCZOS).save(
        sys.argv[1], optimize=True
    )
