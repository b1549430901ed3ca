"""A progress bar for long fits, shown on a terminal and nowhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_ticks(show: bool | None, title: str) -> Iterator[Callable[[str], None]]:
    """Yield a function that reports what was just finished.

    Parameters
    ----------
    show : bool or None
        None shows the bar only when standard error is a terminal.
    title : str
    """
    if show is None:
        show = sys.stderr.isatty()
    if not show:
        yield lambda what: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=None)
        yield lambda what: progress.update(task, description=f"{title}: {what}")
