"""What every command prints passes through here: text from outside cannot steer a terminal.

Nothing else in `cli` may print: ruff's T20 and TID251 refuse it. Pipes get the same, because people look at them with
`cat` and `less -R`. What rich draws comes from `visible_console.console`.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import TextIO

import typer

from tb_dlprof_plugin.model.visible import json_in_ascii, markdown_text, visible

_markdown = False


@contextlib.contextmanager
def as_markdown() -> Iterator[None]:
    """What is printed within, tables too, is Markdown with the same words."""
    global _markdown
    _markdown = True
    try:
        yield
    finally:
        _markdown = False


def is_markdown() -> bool:
    """Whether `as_markdown` is on."""
    return _markdown


def say(*lines: object, err: bool = False) -> None:
    """Print lines, "" for an empty one; without any, an empty one.

    Each is one line: a line end inside of it is shown as an escape, so that no name makes a line of its own.
    """
    stream = sys.stderr if err else sys.stdout
    for line in lines or ("",):
        text = shown(str(line), stream)
        if _markdown and not err and text:
            # Two spaces end a line.
            text = f"{markdown_text(text.strip())}  "
        typer.echo(text, file=stream)


def say_code(code: str) -> None:
    """Print lines of Python as a block of code in Markdown."""
    lines = [visible(line) for line in code.rstrip().splitlines()]
    typer.echo(encodable("\n".join(["\n```python", *lines, "```\n"]), sys.stdout))


def tell(line: object = "", end: str = "\n", over: bool = False) -> None:
    """Print a line to standard error at once. A closed terminal raises nothing: it must not end the command.

    Args:
        line: the text.
        end: what follows it.
        over: print it over the line that the terminal is in.
    """
    with contextlib.suppress(OSError, ValueError):
        text = shown(str(line), sys.stderr)
        print(f"\r{text}" if over else text, end=end, file=sys.stderr, flush=True)


def write_json(document: str) -> None:
    """Write what `reports.table.pretty` made: every name is exact, because JSON has escapes of its own."""
    sys.stdout.write(document if _can_encode(document, sys.stdout) else json_in_ascii(document))


def write_csv(table: str) -> None:
    """Write what `reports.table` made, whose cells are visible already."""
    sys.stdout.write(encodable(table, sys.stdout))


def write_bytes(data: bytes) -> None:
    """Write a file's content: a format that is no text, or CSV and JSON that `reports.table` made."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def shown(line: str, stream: TextIO) -> str:
    """A line as the stream can show it."""
    return encodable(visible(line), stream)


def encodable(text: str, stream: TextIO) -> str:
    r"""The text with escapes (``\xd7``) for characters that the stream's encoding lacks."""
    if _can_encode(text, stream):
        return text
    return text.encode(stream.encoding, "backslashreplace").decode(stream.encoding)


def _can_encode(text: str, stream: TextIO) -> bool:
    try:
        text.encode(getattr(stream, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True
