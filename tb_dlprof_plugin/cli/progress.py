"""A progress bar for work that takes over a second, on a terminal; nothing otherwise."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

_SILENT_S = 1.0


class Progress:
    """Shows how much of a file has been read, once reading it has taken a second.

    ``doing`` is the verb for other work than reading and analysing.
    """

    def __init__(self, file: Path, doing: str | None = None) -> None:
        self._file, self._doing = file, doing
        self._begun = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        return self

    def update(self, fraction: float) -> None:
        """Show that ``fraction`` (0 to 1) of the file has been read; at 1 the analysis begins."""
        if self._bar is None:
            if time.monotonic() - self._begun < _SILENT_S or not sys.stderr.isatty():
                return
            self._show()
        doing = self._doing or ("reading" if fraction < 1 else "analysing")
        self._bar.update(self._task, completed=fraction, description=f"{doing} {self._file.name}")

    def _show(self) -> None:
        # Imported only where a bar is shown: most files take less than its import.
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        from tb_dlprof_plugin.cli.visible_console import console

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
        )
        self._bar = Bar(*columns, console=console(None, stderr=True), transient=True)
        self._bar.start()
        self._task = self._bar.add_task("", total=1.0)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
