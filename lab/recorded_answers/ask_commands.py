"""Runs in, what the ``tb-dlprof`` command prints and writes about them out."""

from __future__ import annotations

import base64
import gzip
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec

from recorded_answers.ask_pages import REPORTS
from recorded_answers.product import command

Said = tuple[str, str, str]
"""Kind, question, text."""

EXCLUDED = {
    "run": "it starts a training script",
    "mcp": "it serves until it is ended",
    "pytorch-views": "it writes traces for another tool",
}
"""Commands that are not asked, and why; their help is recorded."""
OF_PAIRS, OF_MANY, WRITING = ("compare",), ("runs", "sweep"), ("import", "export", "report")
HEAVY = ("summary", "tensor-cores", "advise", "runs", "sweep", "compare", "predict")
"""Commands that compute the advice, which takes seconds for a large run, each time anew."""
FORMATS = ("text", "json", "csv")
PRECISIONS = ("tf32", "fp16", "bf16")
_LISTED = re.compile(r"^  ([a-z][\w-]*)  ", re.MULTILINE)
_BLOCK = re.compile(r'<script type="application/json" id="dlprof-block-(\d+)">"([^"]*)"</script>')
_CONTENTS = re.compile(r'<script type="application/json" id="dlprof-contents">(.*?)</script>', re.DOTALL)


@cache
def commands() -> tuple[str, ...]:
    """All subcommands, as the help lists them."""
    text = command("--help").text
    return tuple(_LISTED.findall(text[text.index("Options:") :]))


@cache
def _help(name: str) -> str:
    return command(name, "--help").text


def helps() -> Iterator[Said]:
    """The help of each command."""
    yield "help", "", command("--help").text
    for name in commands():
        yield "help", name, _help(name)


def about_run(path: Path, deep: bool, heavy: bool) -> Iterator[Said]:
    """Every command of one run.

    Args:
        path: the run's directory, or a trace.
        deep: whether in every format, and with the options that select.
        heavy: whether the commands of `HEAVY`, too.
    """
    for name in commands():
        if name in EXCLUDED or name in (*OF_PAIRS, *OF_MANY, *WRITING, "predict") or (name in HEAVY and not heavy):
            continue
        offered = _help(name)
        for form in FORMATS if deep else FORMATS[:1]:
            yield _said(name, path, "--format", form)
        if not deep:
            continue
        if "--first" in offered:
            yield _said(name, path, "--first", "1", "--last", "2")
        if "--limit" in offered:
            yield _said(name, path, "--limit", "3")
        if "--rank" in offered:
            yield _said(name, path, "--rank", "1")
        if "--verbose" in offered:
            yield _said(name, path, "--verbose")
        if "--table" in offered and name not in HEAVY:
            for table in _tables(name, path):
                yield _said(name, path, "--format", "csv", "--table", table)
    yield from _reports(path, deep, heavy)
    if heavy:
        for precision in PRECISIONS:
            for form in FORMATS if deep else FORMATS[:1]:
                yield _said("predict", path, "--precision", precision, "--format", form)


def about_pair(base: Path, candidate: Path, deep: bool) -> Iterator[Said]:
    """The comparison of two runs."""
    for name in OF_PAIRS:
        for form in FORMATS if deep else FORMATS[:1]:
            printed = command(name, str(base), str(candidate), "--format", form)
            yield f"command {name} {form}", candidate.name, printed.text


def about_all(paths: Sequence[Path], deep: bool) -> Iterator[Said]:
    """The tables of many runs."""
    sources = [str(path) for path in paths]
    for name in OF_MANY:
        for form in FORMATS if deep else FORMATS[:1]:
            yield f"command {name} {form}", "", command(name, *sources, "--format", form).text
    if deep:
        yield "command runs text", "--by-model", command("runs", *sources, "--by-model").text
        for option in (("--measure", "memory"), ("--op", "conv2d", "--direction", "backward")):
            yield "command sweep text", " ".join(option), command("sweep", *sources, *option).text


def imported(traces: Sequence[Path], logdir: Path, together: bool) -> Iterator[Said]:
    """What importing traces prints; the runs are then in ``logdir``."""
    one = ("--run", "ranks") if together else ()
    for form in FORMATS:
        printed = command("import", *map(str, traces), "--logdir", str(logdir), *one, "--force", "--format", form)
        yield f"command import {form}", "", printed.text


def exported(runs: Iterable[Path]) -> Iterator[tuple[str, str, Any]]:
    """What an exported file answers: route, runs and query, decoded answer."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "runs.html"
        printed = command("export", *map(str, runs), str(target), "--html", "--title", "Runs")
        if not target.exists():
            yield "", "", printed.text
            return
        text = target.read_text("utf-8")
    found = _CONTENTS.search(text)
    assert found is not None
    places = msgspec.json.decode(found[1])["blocks"]
    for number, packed in _BLOCK.findall(text):
        place = places[int(number)]
        by_query: dict[str, Any] = {}
        for one in msgspec.json.decode(gzip.decompress(base64.b64decode(packed))):
            by_query[urlencode(sorted(one["query"].items()))] = one.get("answer", one)
        yield place["route"], ",".join(place["runs"]), by_query


def _said(name: str, path: Path, *options: str) -> Said:
    form = options[1] if options[0] == "--format" else "text"
    shown = " ".join(options[2:] if options[0] == "--format" else options)
    if name == "predict":
        form, shown = options[3], options[1]
    return f"command {name} {form}", shown, command(name, str(path), *options).text


def _tables(name: str, path: Path) -> list[str]:
    """The tables that a command names when it is asked for one that there is not."""
    refused = command(name, str(path), "--format", "csv", "--table", "no such table").text
    listed = re.search(r"it has ([a-z_]+(?:, [a-z_]+)*)", refused)
    return listed[1].split(", ") if listed else []


def _reports(path: Path, deep: bool, heavy: bool) -> Iterator[Said]:
    """All reports in both formats as files, and what is printed of them."""
    names = "all" if heavy else ",".join(name for name in REPORTS if name != "expert_systems")
    selections: list[tuple[str, ...]] = [()]
    if deep:
        yield "command report text", "", command("report", str(path), "--format", "text").text
        selections += [("--key-node", "no such op"), ("--rank", "1")]
    for options in selections:
        with tempfile.TemporaryDirectory() as folder:
            arguments = ("--reports", names, "--formats", "csv,json", "--output-path", folder, *options)
            printed = command("report", str(path), *arguments)
            yield "command report", " ".join(options), printed.text.replace(folder, "<tmp>")
            for file in sorted(Path(folder).iterdir()):
                name, form = file.stem.removeprefix("dlprof_"), file.suffix[1:]
                yield f"report {name} {form}", " ".join(options), file.read_text("utf-8")
