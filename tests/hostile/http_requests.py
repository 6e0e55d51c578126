"""Requests that no page of ours makes, and what must hold of every answer to them."""

from __future__ import annotations

import functools
import json
import logging
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tensorboard.backend.event_processing.data_provider import MultiplexerDataProvider
from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
from tensorboard.plugins import base_plugin
from werkzeug.test import Client

from tb_dlprof_plugin.model.request import is_request, request_fields
from tb_dlprof_plugin.plugin import DlprofPlugin
from tb_dlprof_plugin.web.respond import MAX_RESPONSE_BYTES
from tb_dlprof_plugin.web.routes import ROUTES

_METHODS = ("GET",) * 20 + ("HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "get")
_VALUES = (
    "", "0", "1", "-1", "7", "007", "1e3", "0.5", "9" * 18, "9" * 19, "9" * 5_000, "nan", "inf", "null", "true", "[]",
    "{}", "a", "x" * 4_000, "x" * 4_001, "../../../../etc/passwd", "/etc/passwd", "\x00", "\x1b]0;x\x07", "\r\nX: y",
    "\u202e", "٣", "<script>alert(1)</script>", "' OR 1=1 --", "%s%s%n", "op", "kernel", "op_type", "module", "fp16",
    "bf16", "tf32", "step_time", "share", "batch_size", "auto", "cpu", "aten::mm", "conv2d", "NVIDIA A100-SXM4-80GB",
    "ops", "json", "csv", ",", ",,,", "0,1,2", "9,9,9", "0-3", "\ud800",
)  # fmt: skip
_FEW = ("op", "kernel", "op_type", "module", "0", "1")
_STATUSES = {200, 304, 400, 404, 405, 410, 413, 415, 422, 503}


class Server:
    """The plugin over a log directory, called in this process: what TensorBoard's server calls for a request."""

    def __init__(self, logdir: Path) -> None:
        multiplexer = EventMultiplexer(tensor_size_guidance={"tb_dlprof": 0})
        multiplexer.AddRunsFromDirectory(str(logdir))
        multiplexer.Reload()
        self.runs = sorted(multiplexer.Runs())
        context = base_plugin.TBContext(
            logdir=str(logdir), data_provider=MultiplexerDataProvider(multiplexer, str(logdir))
        )
        self.apps: dict[str, Callable[..., Any]] = DlprofPlugin(context).get_plugin_apps()

    def fault(self, source: random.Random) -> str:
        """Sends one request; what is wrong with its answer, "" if nothing is."""
        path, method, query, headers = self._drawn(source)
        shown = f"{method} {path}?{query}"[:300]
        failed: list[str] = []

        class Handler(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                failed.append(f"{record.getMessage()}: {record.exc_info and record.exc_info[1]!r}")

        logger, handler = logging.getLogger("tb_dlprof_plugin"), Handler(logging.ERROR)
        logger.addHandler(handler)
        try:
            response = Client(self.apps[path]).open(path, method=method, query_string=query, headers=headers)
            body = response.get_data()
        finally:
            logger.removeHandler(handler)
        if failed:
            return f"{failed[0]}, {shown}"[:600]
        if response.status_code not in _STATUSES:
            return f"{shown} is answered with {response.status_code}: {body[:200]!r}"
        if len(body) > MAX_RESPONSE_BYTES and path.lstrip("/") in ROUTES:
            return f"{shown} has an answer of {len(body)} bytes"
        if any("\r" in value or "\n" in value for _, value in response.headers):
            return f"{shown} writes a line end into a header"
        if path.lstrip("/") in ROUTES and body and response.mimetype == "application/json":
            try:
                json.loads(response.get_data() if not response.headers.get("Content-Encoding") else "{}")
            except ValueError:
                return f"{shown} is answered with what is no JSON: {body[:100]!r}"
        return ""

    def _drawn(self, source: random.Random) -> tuple[str, str, str, dict[str, str]]:
        path = source.choice(list(self.apps))
        route = ROUTES.get(path[1:])
        names = [*_parameters(route.name)] if route else []
        names += [source.choice(("run", "offset", "a.run", "b.run", "x" * 50, ""))]
        pairs = []
        for name in names:
            if source.random() < 0.25 and not name.endswith("run"):
                continue
            if name.endswith("run") and source.random() < 0.9:
                value = source.choice(self.runs)
            elif name in ("kind", "id", "first", "last", "iteration", "chunk") and source.random() < 0.6:
                value = source.choice(_FEW)
            else:
                value = source.choice(_VALUES)
            pairs.append(f"{quote(name)}={quote(value, errors='surrogatepass')}")
        source.shuffle(pairs)
        if source.random() < 0.05:
            pairs.append(source.choice(("%", "%zz=%ff", "run=%c3%28", "&&&&", "=", "a" * 20_000)))
        headers = {"Accept-Encoding": source.choice(("gzip", "identity", "", "gzip;q=0", "\x01", "*"))}
        if source.random() < 0.2:
            headers["If-None-Match"] = source.choice(('"x"', "*", "", "x" * 5_000))
        return path, source.choice(_METHODS), "&".join(pairs), headers


@functools.cache
def _parameters(route: str) -> tuple[str, ...]:
    """The parameters of a route, those of its parts with the part's name before them."""

    def names(query: type[Any]) -> list[str]:
        found = []
        for item in request_fields(query):
            found += [f"{item.name}.{name}" for name in names(item.type)] if is_request(item.type) else [item.name]
        return found

    return tuple(names(ROUTES[route].load_query()))
