"""The product as its users meet it, in this process: its routes in TensorBoard and its command."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec


@cache
def package_directory() -> Path:
    """Where the package under test is imported from."""
    found = importlib.util.find_spec("tb_dlprof_plugin")
    if found is None or found.origin is None:
        raise SystemExit("tb_dlprof_plugin cannot be imported; run with PYTHONPATH=TREE")
    return Path(found.origin).resolve().parent


@cache
def _entry(name: str) -> Any:
    """What an entry point of the tree names; the environment's metadata may be of another tree."""
    project = (package_directory().parent / "pyproject.toml").read_text("utf-8")
    found = re.search(rf'^{name} = "([\w.]+):(\w+)"', project, re.MULTILINE)
    if found is None:
        raise SystemExit(f"the pyproject.toml of the tree under test names no entry point {name}")
    return getattr(importlib.import_module(found[1]), found[2])


@dataclass(frozen=True, slots=True)
class Printed:
    """What a command printed, and its exit status."""

    status: int
    output: str
    errors: str

    @property
    def text(self) -> str:
        parts = [self.output]
        if self.errors:
            parts.append(f"standard error:\n{self.errors}")
        if self.status:
            parts.append(f"exit status {self.status}\n")
        return "".join(parts)


def command(*arguments: str) -> Printed:
    """``tb-dlprof ARGUMENTS``, called as its console script does."""
    output, errors = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="", write_through=True) for _ in range(2))
    before, status = sys.argv, 0
    sys.argv = ["tb-dlprof", *arguments]
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            try:
                _entry("tb-dlprof")()
            except SystemExit as ended:
                status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
            except Exception as error:  # A crash is an answer, too.
                status = -1
                print(f"{type(error).__name__}: {error}", file=sys.stderr)
    finally:
        sys.argv = before
    texts = []
    for stream in (output, errors):
        held = stream.buffer
        assert isinstance(held, io.BytesIO)
        texts.append(held.getvalue().decode("utf-8", "replace"))
    return Printed(status, *texts)


class Routes:
    """The plugin's routes over some runs, as TensorBoard's server calls them."""

    def __init__(self, logdir: Path, runs: Sequence[str]) -> None:
        from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
        from tensorboard.plugins import base_plugin
        from werkzeug.test import Client

        multiplexer = plugin_event_multiplexer.EventMultiplexer(
            {run: str(logdir / run) for run in runs}, tensor_size_guidance={"tb_dlprof": 0}
        )
        multiplexer.Reload()
        provider = data_provider.MultiplexerDataProvider(multiplexer, str(logdir))
        context = base_plugin.TBContext(data_provider=provider, logdir=str(logdir), multiplexer=multiplexer)
        plugin = _entry("tb_dlprof")().load(context)
        apps = plugin.get_plugin_apps()
        self.names = sorted(name.strip("/") for name in apps if "." not in name)
        self._clients = {name: Client(apps[f"/{name}"]) for name in self.names}

    def get(self, route: str, query: Mapping[str, str]) -> tuple[int, Any]:
        """Status and decoded JSON; None where there is no such route."""
        if route not in self._clients:
            return 404, None
        response = self._clients[route].get(f"/data/plugin/tb_dlprof/{route}", query_string=dict(query))
        return response.status_code, msgspec.json.decode(response.get_data())

    def settled(self, route: str, query: Mapping[str, str]) -> tuple[int, Any]:
        """The answer of a route that reads runs little by little, when it has read all of them."""
        before = self.get(route, query)
        while (after := self.get(route, query)) != before:
            before = after
        return after
