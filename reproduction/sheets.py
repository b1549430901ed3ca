"""Figures put together from drawings, written as PNG and SVG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from treelens.explain.decode import unfold_within
from treelens.explain.draw import tree_scene
from treelens.explain.scene import INK, Scene
from treelens.patterns.vocabulary import PatternVocabulary

_PIXELS_PER_INCH = 100
_POINTS_PER_PIXEL = 72 / _PIXELS_PER_INCH
# Patterns of a gallery: space between drawings, under captions and around the sheet.
_GAP, _LINE, _MARGIN, _HEADING = 16.0, 15.0, 14.0, 30.0
_NARROWEST = 150.0
_MOST_TREE_NODES = 16


class Sheet:
    """A sheet of paper measured in pixels from its upper left corner.

    Parameters
    ----------
    width, height : float
    """

    def __init__(self, width: float, height: float) -> None:
        from matplotlib.figure import Figure

        self.width, self.height = width, height
        size = (width / _PIXELS_PER_INCH, height / _PIXELS_PER_INCH)
        self.figure = Figure(figsize=size, dpi=2 * _PIXELS_PER_INCH)

    def axes(self, left: float, top: float, width: float, height: float) -> Any:
        """Axes of matplotlib at a place of the sheet."""
        place = (
            left / self.width, 1 - (top + height) / self.height,
            width / self.width, height / self.height,
        )  # fmt: skip
        return self.figure.add_axes(place)

    def draw(self, scene: Scene, left: float, top: float) -> None:
        """Put a drawing at a place of the sheet."""
        axes = self.axes(left, top, scene.width, scene.height)
        axes.set_axis_off()
        axes.set_xlim(0, scene.width)
        axes.set_ylim(scene.height, 0)
        for mark in scene.marks:
            mark.png(axes)

    def write(self, text: str, x: float, y: float, size: float = 12.0, **style: Any) -> None:
        """Write a line of text; ``x`` is its left end unless ``ha`` says otherwise."""
        options = {"ha": "left", "va": "center", "color": INK, "parse_math": False, **style}
        self.figure.text(
            x / self.width, 1 - y / self.height, text, fontsize=size * _POINTS_PER_PIXEL, **options
        )

    def save(self, folder: Path, name: str) -> list[Path]:
        """Write ``NAME.png`` and ``NAME.svg``; the same sheet gives the same files."""
        return save_figure(self.figure, folder, name)


def save_figure(figure: Any, folder: Path, name: str) -> list[Path]:
    """Write a figure of matplotlib as PNG and SVG, without dates or random names inside."""
    import matplotlib

    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.png", folder / f"{name}.svg"]
    with matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        figure.savefig(paths[0], dpi=2 * _PIXELS_PER_INCH)
        figure.savefig(paths[1], metadata={"Date": None})
    return paths


class WeightedPattern(NamedTuple):
    """A pattern to draw, and the lines of text under it."""

    pattern: int
    caption: tuple[str, ...]


def pattern_gallery(
    vocabulary: PatternVocabulary, groups: Sequence[tuple[str, Sequence[WeightedPattern]]]
) -> Sheet:
    """Patterns as trees in rows, each row under its heading, each tree over its caption."""
    rows = []
    for heading, patterns in groups:
        scenes = [pattern_scene(vocabulary, p.pattern) for p in patterns]
        rows.append((heading, patterns, scenes))
    width = max(sum(_cell_width(s) + _GAP for s in scenes) for _, _, scenes in rows) + 2 * _MARGIN
    heights = [_row_height(patterns, scenes) for _, patterns, scenes in rows]
    sheet = Sheet(width, sum(heights) + 2 * _MARGIN)
    top = _MARGIN
    for (heading, patterns, scenes), height in zip(rows, heights, strict=True):
        sheet.write(heading, _MARGIN, top + 8, 14, weight="bold")
        _draw_row(sheet, patterns, scenes, top + _HEADING)
        top += height
    return sheet


def pattern_scene(vocabulary: PatternVocabulary, pattern: int) -> Scene:
    """A pattern's tree; large ones lose their lowest layer."""
    return tree_scene(unfold_within(vocabulary, pattern, _MOST_TREE_NODES), "pattern")


def _cell_width(scene: Scene) -> float:
    return max(scene.width, _NARROWEST)


def _row_height(patterns: Sequence[WeightedPattern], scenes: Sequence[Scene]) -> float:
    lines = max(len(p.caption) for p in patterns)
    return _HEADING + max(s.height for s in scenes) + lines * _LINE + _GAP


def _draw_row(
    sheet: Sheet, patterns: Sequence[WeightedPattern], scenes: Sequence[Scene], top: float
) -> None:
    left, bottom = _MARGIN, top + max(s.height for s in scenes)
    for pattern, scene in zip(patterns, scenes, strict=True):
        width = _cell_width(scene)
        sheet.draw(scene, left + (width - scene.width) / 2, top)
        for number, line in enumerate(pattern.caption):
            sheet.write(line, left + width / 2, bottom + (number + 0.6) * _LINE, 11, ha="center")
        left += width + _GAP
