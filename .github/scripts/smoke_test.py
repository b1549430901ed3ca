"""The few things that everybody does first, with the package as it was installed.

Run it from a folder that is no checkout, by the interpreter of the environment to try.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import treelens as tl


def main() -> None:
    assert "site-packages" in tl.__file__, f"not the installed package: {tl.__file__}"
    for name in tl.__all__:
        getattr(tl, name)
    graphs, y = tl.make_synthetic(n_per_substructure=5, random_state=0)
    model = tl.GraphClassifier(depth=2, progress=False).fit(graphs, y)
    assert model.score(graphs, y) > 0.9
    with tempfile.TemporaryDirectory() as folder:
        page, file = Path(folder, "report.html"), Path(folder, "model.treelens")
        model.report(page, graphs, y)
        assert "</html>" in page.read_text(encoding="utf-8")
        model.save(file)
        assert (tl.load(file).predict(graphs) == model.predict(graphs)).all()
    assert tl.GraphSVC(depth=1, cv=2, progress=False).fit(graphs, y).score(graphs, y) > 0.7
    command = shutil.which("treelens", path=str(Path(sys.executable).parent))
    assert command is not None, "the command treelens was not installed"
    said = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == f"treelens {tl.__version__}", said.stdout
    subprocess.run([command, "--help"], capture_output=True, check=True)
    sys.stdout.write(f"treelens {tl.__version__} works\n")


if __name__ == "__main__":
    main()
