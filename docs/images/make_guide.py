"""Draw the pictures of the guide that show the assay of the package.

    python docs/images/make_guide.py docs/images

Needs Chromium, which takes the picture of the page with advice.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from PIL import Image
from sklearn.model_selection import KFold

import treelens as tl
from treelens.decisions.advice_page import write_advice
from treelens.evaluation.splits import ScaffoldKFold

SHOWN = 1  # of the last molecules: one with effects of both signs
LEVELS = np.linspace(0.05, 0.99, 30)
BLUE, ORANGE, GREY = "#1f5a93", "#c8651b", "#8a8a8a"


def table() -> tuple[tl.GraphCollection, np.ndarray]:
    """A third of the assay."""
    with tempfile.TemporaryDirectory() as folder:
        read = tl.read_table(tl.example_table(Path(folder, "demo.csv")), target="pIC50")
    graphs, y = read
    return graphs[::3], y.numbers()[::3]


def side_by_side(pictures: list[bytes], path: Path) -> None:
    images = [Image.open(io.BytesIO(each)).convert("RGB") for each in pictures]
    width, height = sum(image.width for image in images), max(image.height for image in images)
    whole, x = Image.new("RGB", (width, height), "white"), 0
    for image in images:
        whole.paste(image, (x, 0))
        x += image.width
    whole.quantize(64).save(path, optimize=True)


def save(figure: Figure, path: Path) -> None:
    """Save a figure with few colours, which makes a small file."""
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=90)
    plt.close(figure)
    Image.open(drawn).convert("RGB").quantize(200).save(path, optimize=True)


def draw_splits(graphs: tl.GraphCollection, y: np.ndarray, path: Path) -> None:
    """Held-out predictions of random folds and of folds of whole scaffolds, and calibration."""
    figure, axes = plt.subplots(1, 3, figsize=(9.6, 3.2), constrained_layout=True)
    folds = {
        "random folds": (KFold(3, shuffle=True, random_state=0), BLUE),
        "folds of scaffolds": (ScaffoldKFold(3, random_state=0), ORANGE),
    }
    for ax, (title, (splitter, colour)) in zip(axes, folds.items(), strict=False):
        mean, std = np.empty(len(y)), np.empty(len(y))
        for train, test in splitter.split(graphs):
            model = tl.GraphRegressor(depth=2).fit(graphs[train], y[train])
            mean[test], std[test] = model.predict(graphs[test], return_std=True)
        ax.errorbar(mean, y, xerr=1.645 * std, fmt="none", ecolor=colour, alpha=0.15)
        ax.plot(mean, y, ".", color=colour, markersize=4)
        ends = [y.min() - 0.5, y.max() + 0.5]
        ax.plot(ends, ends, color=GREY, linewidth=1)
        rmse = np.sqrt(np.mean((y - mean) ** 2))
        ax.set(title=f"{title}: RMSE {rmse:.2f}", xlabel="predicted pIC50", xlim=ends, ylim=ends)
        inside = [np.mean(np.abs(y - mean) <= _width(level) * std) for level in LEVELS]
        axes[2].plot(100 * LEVELS, 100 * np.array(inside), color=colour, label=title)
    axes[0].set_ylabel("measured pIC50")
    axes[2].plot([0, 100], [0, 100], color=GREY, linewidth=1)
    axes[2].set(title="intervals", xlabel="nominal coverage, %", ylabel="observed, %")
    axes[2].legend(frameon=False)
    save(figure, path)


def _width(level: float) -> float:
    """How many standard deviations an interval of a normal distribution reaches to either side."""
    from scipy.stats import norm

    return float(norm.ppf(0.5 + level / 2))


def draw_kernel(model: tl.GraphRegressor, graphs: tl.GraphCollection, path: Path) -> None:
    """The learned similarities of 60 molecules, ordered by clusters."""
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    some = graphs[:60]
    distances = model.distance_matrix(some)
    order = leaves_list(linkage(squareform(distances, checks=False), "average"))
    plain = tl.WLSubtree(depth=2, normalize="cosine").fit_transform(some)
    learned = model.kernel_matrix(some)
    scale = np.sqrt(np.diag(learned))
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.3), constrained_layout=True)
    for ax, matrix, title in zip(
        axes,
        [plain, learned / np.outer(scale, scale)],
        ["WL subtree kernel, cosine", "learned kernel"],
        strict=True,
    ):
        shown = ax.imshow(matrix[np.ix_(order, order)], vmin=0.4, vmax=1, cmap="Blues")
        ax.set(title=title, xticks=[], yticks=[])
    figure.colorbar(shown, ax=axes, shrink=0.8)
    save(figure, path)


def draw_sharing(path: Path) -> None:
    """What each endpoint of the panel in the guide gains from measurements of the others."""
    import doctest
    import re

    page = (Path(__file__).parents[1] / "guide" / "panels.md").read_text(encoding="utf-8")
    space: dict[str, object] = {}
    first = re.search(r"```pycon\n(.*?)```", page, re.DOTALL)
    assert first is not None
    for example in doctest.DocTestParser().get_examples(first[1]):
        exec(example.source, space)
    panel = space["panel"]
    assert isinstance(panel, tl.GraphRegressor)
    tables = {"correlations_": panel.correlations_, "helps_": panel.helps_}
    titles = {
        "correlations_": "correlation of two endpoints",
        "helps_": "squared error of a row saved\nby measuring a column",
    }
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.1), constrained_layout=True)
    for ax, (name, found) in zip(axes, tables.items(), strict=True):
        values = found.to_numpy(dtype=float)
        ax.imshow(values, vmin=-1, vmax=1, cmap="PuOr_r")
        names = list(found.columns)
        ax.set(title=titles[name], xticks=range(len(names)), yticks=range(len(names)))
        ax.set_xticklabels(names)
        ax.set_yticklabels(names)
        for (i, j), value in np.ndenumerate(values):
            if np.isfinite(value):
                text = f"{value:.2f}" if name == "correlations_" else f"{100 * value:.0f} %"
                color = "w" if abs(value) > 0.6 else "k"
                ax.text(j, i, text, ha="center", va="center", color=color)
    save(figure, path)


def draw_advice(model: tl.GraphRegressor, lead: str, path: Path) -> None:
    """The top of the page of ``treelens advise --html``."""
    with tempfile.TemporaryDirectory() as folder:
        page, shot = Path(folder, "advice.html"), Path(folder, "advice.png")
        write_advice(tl.advise(model, lead, n=6), page)
        size = ["--hide-scrollbars", "--window-size=1000,720", f"--screenshot={shot}"]
        browser = ["chromium", "--headless", "--no-sandbox", *size, page.as_uri()]
        subprocess.run(browser, check=True, capture_output=True)
        picture = Image.open(shot).convert("RGB")
        picture = picture.resize((800, picture.height * 800 // picture.width), Image.LANCZOS)
        picture.quantize(64).save(path, optimize=True)


def main(folder: Path) -> None:
    graphs, y = table()
    train, test = graphs[:-20], graphs[-20:]
    model = tl.GraphRegressor(depth=2).fit(train, y[:-20])
    why = model.explain(test[SHOWN])
    why_not = model.explain(test[SHOWN + 6])
    drawn = [each.draw(width=400, height=290, format="png") for each in (why, why_not)]
    side_by_side(drawn, folder / "contributions.png")
    found = model.fragments_
    shown = [found.draw(k, width=270, height=190, format="png") for k in found.index[:3]]
    side_by_side(shown, folder / "fragments.png")
    draw_splits(graphs, y, folder / "splits.png")
    draw_kernel(model, graphs, folder / "kernel.png")
    draw_sharing(folder / "sharing.png")
    draw_advice(model, str(train.graph_data["smiles"][60]), folder / "advice.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
