"""A part of the recordings in, all answers about it out; parts are answered in two processes of low priority."""

from __future__ import annotations

import logging
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import tb_dlprof_plugin
from recorded_answers import ask_commands, ask_python
from recorded_answers.ask_pages import Pages
from recorded_answers.normalise import Normaliser
from recorded_answers.product import Routes, package_directory
from recorded_answers.recordings import Part
from recorded_answers.snapshot import Answer, answer

PROCESSES = 2
_NICE = 10
_BASES = ("fp32", "fault")
_EXPORTED = ("demo/recorded/lenet", "tests/data/planted/optimizer_state")
"""Parts of which the first two runs are exported: a file answers about every op, and takes long to make."""
_TEXT_OF_ADVICE = ("demo/recorded", "tests/data/planted")
"""Runs whose advice is asked for by commands, too; of others by the pages alone."""
_ENVIRONMENT = {"COLUMNS": "120", "LINES": "50", "TERM": "dumb", "NO_COLOR": "1", "TB_DLPROF_PYTORCH_VIEWS": "0"}


def record(parts: Sequence[Part], processes: int = PROCESSES) -> list[Answer]:
    """The answers about all parts, and those that are about none."""
    os.environ.update(_ENVIRONMENT)
    answers = [answer(kind, "", question, text) for kind, question, text in ask_commands.helps()]
    kernels: set[str] = set()
    context = multiprocessing.get_context("spawn")
    started = time.monotonic()
    with context.Pool(processes, initializer=_start) as pool:
        for place, (part, seconds, found, names) in enumerate(pool.imap_unordered(answers_of, parts, chunksize=1)):
            answers += found
            kernels |= names
            print(
                f"{place + 1:4} of {len(parts)}  {time.monotonic() - started:5.0f} s  "
                f"{part.subject}: {len(found)} answers in {seconds:.1f} s",
                file=sys.stderr,
                flush=True,
            )
    for kind, question, text in ask_python.about_kernels(sorted(kernels)):
        answers.append(answer(kind, "", question, text))
    return answers


def _start() -> None:
    os.nice(_NICE)
    os.environ.update(_ENVIRONMENT)
    logging.disable(logging.CRITICAL)


def answers_of(part: Part) -> tuple[Part, float, list[Answer], set[str]]:
    """The answers about a part, with the seconds it took and the names of its kernels."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="same_answers") as folder:
        words = {str(package_directory().parent): "<tree>", folder: "<tmp>", os.getcwd(): "<tree>"}
        words[str(part.place)] = "<place>"
        words[str(part.place.resolve())] = "<place>"
        asker = _Asker(part, Normaliser(words, tb_dlprof_plugin.__version__, part.traces))
        if part.traces:
            asker.traces(Path(folder))
        else:
            asker.runs(part.place, part.names)
    return part, time.monotonic() - started, asker.answers, asker.kernels


class _Asker:
    def __init__(self, part: Part, normaliser: Normaliser) -> None:
        self._part, self._normaliser = part, normaliser
        self.answers: list[Answer] = []
        self.kernels: set[str] = set()

    def runs(self, place: Path, names: Sequence[str]) -> None:
        """Pages, commands and Python's answers about runs in a directory."""
        part = self._part
        pages = Pages(Routes(place, names), names, part.deep)
        pairs = _pairs(names)
        if part.together:
            self._pages(pages.about_all(), "")
            return self._said("", ask_commands.about_all([place], deep=part.deep))
        for name in names:
            self._pages(pages.about_run(name), name)
        self._pages(pages.about_pairs(pairs), "")
        self._pages(pages.about_all(), "")
        heavy = part.deep or part.subject.startswith(_TEXT_OF_ADVICE)
        for name in names:
            self._said(name, ask_commands.about_run(place / name, part.deep, heavy))
        if heavy:
            for base, candidate in pairs:
                self._said(base, ask_commands.about_pair(place / base, place / candidate, part.deep))
        if part.deep:
            self._said("", ask_commands.about_all([place / name for name in names], deep=True))
            for name, kind, question, text in ask_python.about_runs(place, names):
                self._add(kind, name, question, self._normaliser.printed(text))
        if part.subject in _EXPORTED:
            for route, about, page in ask_commands.exported(place / name for name in names[:2]):
                self._add(f"export {route}", about, "", self._normaliser.json(page))
        return None

    def traces(self, logdir: Path) -> None:
        """What importing traces prints, and the pages and commands about the runs that it made."""
        part = self._part
        paths = [part.place / name for name in part.names]
        self._said("", ask_commands.imported(paths, logdir, part.together))
        names = sorted({file.parent.name for file in logdir.rglob("*.tb_dlprof")})
        for name in names:
            pages = Pages(Routes(logdir, names), names, part.deep)
            self._pages(pages.about_run(name), name)
            self._pages(pages.about_all(), "")
            self._said(name, ask_commands.about_run(logdir / name, part.deep, heavy=True))
        for path in paths:
            if part.deep or not names:
                self._said(path.name, ask_commands.about_run(path, False, heavy=False))
            self._said(path.name, ask_python.about_trace(path))

    def _pages(self, asked: Iterator[tuple[str, str, int, Any]], run: str) -> None:
        for route, query, status, page in asked:
            if route == "kernels" and status == 200:
                self.kernels |= {row["name"] for row in page["rows"] if "name" in row}
            text = self._normaliser.json(page)
            self._add(f"page {route}", run, query, text if status == 200 else f"status {status}\n{text}")

    def _said(self, about: str, said: Iterator[tuple[str, str, str]]) -> None:
        for kind, question, text in said:
            self._add(kind, about, question, self._normaliser.printed(text))

    def _add(self, kind: str, about: str, question: str, text: str) -> None:
        subject = f"{self._part.subject}/{about}".removesuffix("/")
        self.answers.append(answer(kind, subject, question, text))


def _pairs(names: Sequence[str]) -> list[tuple[str, str]]:
    """The first FP32 run, or the run with the fault, with each of the others."""
    base = next((name for name in names if name in _BASES), names[0])
    return [(base, name) for name in names if name != base]
