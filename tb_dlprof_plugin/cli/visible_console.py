"""The console on which rich draws tables, styles and progress: it shows what a text holds and does not act on it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from tb_dlprof_plugin.cli.terminal import shown

PIPED_WIDTH = 240
"""Characters. Piped output has no width to fit into: cells that wrap cannot be searched."""


class _VisibleConsole(Console):
    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            # Rich's own controls, such as hiding the cursor, are no text.
            yield segment if segment.control else Segment(self._shown(segment.text), segment.style)

    def _shown(self, text: str) -> str:
        return "\n".join(shown(line, self.file) for line in text.split("\n"))  # type: ignore[arg-type]


def console(piped_width: int | None = PIPED_WIDTH, **settings: Any) -> Console:
    """The terminal; names from traces are never interpreted, as markup or as emoji.

    Args:
        piped_width: in a pipe; None for what the environment says.
        settings: of `rich.console.Console`.
    """
    stream = sys.stderr if settings.get("stderr") else sys.stdout
    width = None if stream.isatty() else piped_width
    return _VisibleConsole(highlight=False, markup=False, emoji=False, width=width, **settings)
