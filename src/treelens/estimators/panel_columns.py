"""Names of the columns of predictions of several endpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from treelens.gp.panel_model import FittedPanel, PanelEndpoint

COMMON_COLUMNS = ("similarity", "nearest", "out_of_vocabulary")


def panel_columns(model: FittedPanel, measured: bool = False) -> list[str]:
    """Return the columns of :func:`panel_table`, in order."""
    names = [name for end in model.endpoints for name in _columns_of(end, measured)]
    return [*names, *COMMON_COLUMNS]


def panel_file_names(model: FittedPanel) -> list[str]:
    """Return the columns of files: of the nearest training graph its name, if it is known."""
    names, training = panel_columns(model, measured=True), model.training
    place = names.index("nearest")
    has_identity = training.names is not None or training.smiles is not None
    names[place : place + 1] = ["nearest_name"] if has_identity else []
    return names


def panel_text_names(model: FittedPanel) -> list[str]:
    """Return those of :func:`panel_file_names` that hold no numbers, but for ``in_domain``."""
    classes = [end.name for end in model.endpoints if end.classes is not None]
    names = [f"{name}_{what}" for name in classes for what in ("class", "measured")]
    return [*names, "nearest_name"]


def scale_suffix(endpoint: PanelEndpoint) -> str:
    """Return the end of the names of columns on a scale: only logarithms that were asked for."""
    reported = endpoint.record.reported
    return "" if reported is None else f"_{reported.name}"


def _columns_of(endpoint: PanelEndpoint, measured: bool) -> list[str]:
    suffix = scale_suffix(endpoint)
    if endpoint.classes is None:
        median = [] if endpoint.record.scale is None else ["median"]
        names = ["prediction", *median, "std" + suffix, "lower_90", "upper_90"]
    else:
        chances = [f"probability_{label}" for label in endpoint.classes.tolist()]
        names = ["class", "probability", "decision", *chances]
    names += ["in_domain", "expected_error" + suffix] + (["measured"] if measured else [])
    return [f"{endpoint.name}_{name}" for name in names]
