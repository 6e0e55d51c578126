"""Runs the commands of docs/tutorials and compares what they print with what the pages show.

    python tools/tutorials.py            # names each page that shows something else
    python tools/tutorials.py --write    # puts today's output into the pages

A command is a line of an ``sh`` block that begins with ``tb-dlprof``; other lines (pip, tensorboard) are not run, nor
is ``tb-dlprof run``, which trains. The commands of a page run in this process, in their order, in a folder of their own
that has demo/, tests/ and lab/ of the repository. A comment says which lines of the last command's output the
page shows: lines by their numbers, or the next line that has a text, and as many more. What is left out is shown as
``...``::

    <!-- shown: 1-4, "Peak memory"+1 -->

    ```text
    ```
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from typer.testing import CliRunner

from tb_dlprof_plugin.cli.main import app

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "tutorials"
_BLOCK = re.compile(
    r"^```sh\n(?P<script>.*?)^```$|^<!-- shown: (?P<shown>[^\n]+?) -->\n+```text\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
_PART = re.compile(r'(\d+)(?:-(\d+))?|"([^"]+)"(?:\+(\d+))?')


class TutorialError(Exception):
    """A command of a page failed, or the page shows lines that its output does not have."""


def commands(script: str) -> list[list[str]]:
    """The arguments of each command of an ``sh`` block that is run."""
    words = [shlex.split(line, comments=True) for line in script.replace("\\\n", " ").splitlines()]
    return [line[1:] for line in words if line[:1] == ["tb-dlprof"] and line[1:2] != ["run"]]


def run(arguments: list[str]) -> list[str]:
    """The lines that a command prints, standard error included.

    Raises:
        TutorialError: it fails.
    """
    result = CliRunner().invoke(app, arguments)
    if result.exit_code:
        raise TutorialError(f"tb-dlprof {shlex.join(arguments)}: {result.output or result.exception!r}")
    return [line.rstrip() for line in result.output.splitlines()]


def shown(lines: list[str], parts: str) -> str:
    """The lines that ``parts`` names, with ``...`` for what is left out.

    Raises:
        TutorialError: the output does not have them, in this order.
    """
    text, end = [], 0
    for first, last, words, more in _PART.findall(parts):
        begin = int(first) - 1 if first else next((i for i in range(end, len(lines)) if words in lines[i]), len(lines))
        stop = int(last or first) if first else begin + 1 + int(more or 0)
        if begin < end or stop > len(lines):
            raise TutorialError(f"{words or first!r} is shown, but is not in the output there")
        text += ["..."] * (begin > end) + lines[begin:stop]
        end = stop
    return "".join(f"{line}\n" for line in text + ["..."] * (end < len(lines)))


def rerun(text: str) -> str:
    """The text of a page with what its commands print today.

    Raises:
        TutorialError: a command fails.
    """
    printed: list[str] = []

    def block(found: re.Match[str]) -> str:
        nonlocal printed
        if found["shown"] is None:
            for arguments in commands(found["script"]):
                printed = run(arguments)
            return found[0]
        return f"<!-- shown: {found['shown']} -->\n\n```text\n{shown(printed, found['shown'])}```"

    with _folder():
        return _BLOCK.sub(block, text)


@contextlib.contextmanager
def _folder() -> Iterator[None]:
    """Works in an empty folder that has demo/, tests/ and lab/."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        for name in ("demo", "tests", "lab"):
            Path(folder, name).symlink_to(ROOT / name)
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def main(arguments: list[str] | None = None) -> int:
    """Entry point of the script; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="put today's output into the pages")
    write = parser.parse_args(arguments).write
    stale = False
    for path in sorted(PAGES.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        today = rerun(text)
        if today != text:
            stale = True
            print(f"{path.relative_to(ROOT)}: {'written' if write else 'shows another output'}")
            if write:
                path.write_text(today, encoding="utf-8")
    return int(stale and not write)


if __name__ == "__main__":
    sys.exit(main())
