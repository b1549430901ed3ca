"""The first page of the results: one table, one figure, and what each page is about."""

from __future__ import annotations

from pathlib import Path

from reproduction import page_compare
from reproduction.pages import rows_of, write_page

PAGES = {
    "choice": "what the default chooses beside every fixed choice, and where learned weights pay",
    "table2": "the paper's experiments run again: Table 2 with tests of significance, the data "
    "sets, the synthetic study, learned patterns, running time, bounds",
    "numbers": "numbers of molecules: random splits, whole scaffolds, MoleculeACE",
    "censored": "values of which only a limit is known: used, left out or clipped",
    "classes": "classes of molecules: beside fingerprint models, HIV, rare classes, `GraphSVC`",
    "attributes": "continuous attributes of nodes: with and without them, beside other kernels",
    "explanations": "do explanations name the atoms that matter; toxicophores; fragments",
    "decisions": "which compounds to measure next, which change would help: campaigns and matched "
    "pairs",
    "speed": "cost of a fit, benchmarks, landmarks, a million molecules, a GPU",
    "defaults": "how the defaults were chosen, and on which sets and splits",
}


def write(out: Path) -> Path | None:
    """Write ``index.md``."""
    numbers, classes = (rows_of(out, f"compare_{part}") for part in ("numbers", "classes"))
    if not numbers:
        return None
    parts = [
        page_compare.short_table(out),
        page_compare.lead_text(out),
        page_compare.coverage_text(out),
        "RMSE of numbers. " + page_compare.places_text(numbers, "rmse", smaller=True),
        "ROC AUC of classes. " + page_compare.places_text(classes, "roc_auc", smaller=False),
        "![Gain of learned over uniform weights](figures/learning_pays.png)",
        "\n".join(f"- [{name}]({name}.md): {text}" for name, text in PAGES.items()),
        "Every page is written from its rows in `rows/`, one JSON line per fold, split or "
        "molecule; `python -m reproduction --help` lists the experiments behind them. Rows of "
        "studies whose code was removed stay there too.",
    ]
    return write_page(out, "index", "Results", parts)
