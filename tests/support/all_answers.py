"""Every page, part of a page, report and command about a view, called without a server: what they answer and print."""

from __future__ import annotations

import contextlib
import functools
import importlib
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
from typer.testing import CliRunner

from tb_dlprof_plugin.cli.main import app
from tb_dlprof_plugin.cli.open_profile import Chosen
from tb_dlprof_plugin.metrics.key_node import with_key_node
from tb_dlprof_plugin.metrics.roofline import MOST_OF_ROOF
from tb_dlprof_plugin.model.plan_request import PlanError
from tb_dlprof_plugin.model.run_choice import KeyNodeError
from tb_dlprof_plugin.pages.by_model import by_model_page
from tb_dlprof_plugin.pages.compare import compare_op, compare_page
from tb_dlprof_plugin.pages.compare_metrics import CompareInput
from tb_dlprof_plugin.pages.forecast import forecast_page
from tb_dlprof_plugin.pages.kernels import kernels_of
from tb_dlprof_plugin.pages.key_nodes import key_nodes_page
from tb_dlprof_plugin.pages.memory import memory_page
from tb_dlprof_plugin.pages.recorded_run import recorded_run
from tb_dlprof_plugin.pages.related import related
from tb_dlprof_plugin.pages.runs import many_runs_page
from tb_dlprof_plugin.pages.search import search_page
from tb_dlprof_plugin.pages.sweep import SweepError, SweepRequest, sweep_page
from tb_dlprof_plugin.pages.timeline.columns import timeline_chunk
from tb_dlprof_plugin.pages.timeline.event import timeline_event
from tb_dlprof_plugin.pages.timeline.matches import timeline_matches
from tb_dlprof_plugin.pages.work_detail import work_detail
from tb_dlprof_plugin.pages.work_tree import work_tree
from tb_dlprof_plugin.planning import ForecastError
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.reports.page import report_page
from tb_dlprof_plugin.reports.registry import REPORTS
from tb_dlprof_plugin.reports.table import to_csv, to_json
from tb_dlprof_plugin.store.run_ref import RunRef
from tb_dlprof_plugin.web.routes import PAGES

REF = RunRef("run", "trace", 0, 0)
_OWN_ERRORS = (ForecastError, KeyNodeError, PlanError, SweepError)
"""What a page says where it has nothing to show; a route makes a sentence of it."""
_PRINTED = (
    "summary", "ops", "op-types", "modules", "kernels", "launches", "timeline", "tensor-cores", "roofline", "memory",
    "advise", "info", "energy", "tried",
)  # fmt: skip
_PLANS = (
    ("--batch-size", "64"),
    ("--precision", "bf16", "--checkpoint", "auto", "--memory", "1GiB"),
    ("--optimizer", "adam", "--shard", "fsdp2", "--gpus", "4"),
    ("--image-size", "64", "--accumulate", "3", "--offload", "optimizer", "--gpu", "A100 80GB"),
)
_CHOOSERS = ("advise", "compare", "page_command", "plan", "timeline")


Question = tuple[str, Callable[[], Any]]
"""What is asked, and what answers it."""


def ask(question: Question) -> Any:
    """The answer as JSON or text; None where there is nothing to show.

    Raises:
        Exception: the product's fault.
    """
    try:
        answer = question[1]()
    except _OWN_ERRORS:
        return None
    if isinstance(answer, bytes):
        return answer.decode()
    return answer if isinstance(answer, str) else msgspec.json.decode(msgspec.json.encode(answer))


def pages(view: ProfileView) -> Iterator[Question]:
    """The pages of a run, by their routes."""
    selection = view.selection()
    for route in PAGES.values():
        yield route.name, functools.partial(route.load_page(), view, REF, selection)


def reports(view: ProfileView) -> Iterator[Question]:
    """All reports, as the page shows them and as files."""
    selection = view.selection()
    for name, make in REPORTS.items():
        yield f"report {name}", lambda name=name: report_page(view, REF, selection, name)
        for form in (to_csv, to_json):
            yield f"report {name} {form.__name__}", lambda make=make, form=form: form(make(view, REF, selection))


def parts(view: ProfileView, answered: dict[str, Any]) -> Iterator[Question]:
    """What a page offers to open, from the pages' answers."""
    selection = view.selection()
    ops = [row["id"] for row in answered.get("ops", {}).get("rows", [])]
    ops = ops[:2] + ops[-1:]
    types = [row["op_type"] for row in answered.get("op_types", {}).get("rows", [])[:2]]
    kernels = [row["id"] for row in answered.get("kernels", {}).get("rows", [])[:2]]
    modules = [row["path"] for row in answered.get("modules", {}).get("rows", [])[:2] if row.get("path")]
    for op in ops:
        yield "kernels of an op", lambda op=op: kernels_of(view, REF, selection, "op", op)
    yield "work_tree", lambda: work_tree(view, REF, selection)
    for kind, ids in (("op", ops), ("op_type", types), ("kernel", kernels), ("module", modules)):
        for one in ids[:2]:
            yield f"work_detail {kind}", lambda kind=kind, one=one: _found(work_detail, view, kind, one)
            yield f"related {kind}", lambda kind=kind, one=one: _found(related, view, kind, one)
    yield "search", lambda: search_page(view, REF, selection, "a")
    yield "key_nodes", lambda: key_nodes_page(view, REF)
    for node in answered.get("key_nodes", {}).get("rows", [])[:1]:
        yield "key node", lambda node=node: key_nodes_page(_cut(view, node["key_node"]), REF)
    for device in [one["key"] for one in answered.get("memory", {}).get("devices", [])][:3]:
        yield "memory of a device", lambda device=device: memory_page(view, REF, selection, device)
    for precision in ("tf32", "fp16", "bf16"):
        yield f"forecast {precision}", lambda p=precision: forecast_page(view, REF, p, None, None)
    yield "forecast batch", lambda: forecast_page(view, REF, "bf16", 64, "NVIDIA A100-SXM4-80GB")
    shown = answered.get("timeline", {})
    for iteration in {shown["iteration"]["index"]} if shown else ():
        for chunk in range(len(shown["chunks"])):
            yield "timeline_events", lambda i=iteration, c=chunk: timeline_chunk(view, selection, i, c)
        yield (
            "timeline_matches",
            lambda i=iteration: timeline_matches(view, selection, i, text="a", op=None, kernel=None),
        )
    for table in ("longest_gaps", "longest_gpu", "longest_ops"):
        for row in shown.get(table, [])[:2]:
            index, spot = shown["iteration"]["index"], row["spot"]["id"]
            yield "timeline_event", lambda i=index, s=spot: timeline_event(view, REF, selection, i, s)


def _found(page: Callable[..., Any], view: ProfileView, kind: str, subject: str) -> Any:
    try:
        return page(view, REF, view.selection(), kind, subject)
    except KeyError as error:
        # A module in which no op ran has no details.
        if error.args != (subject,):
            raise
        return ""


def _cut(view: ProfileView, key_node: str) -> ProfileView:
    return ProfileView(with_key_node(view.profile, key_node))


def together(view: ProfileView, other: ProfileView) -> Iterator[Question]:
    """Pages of two runs and more."""
    first = CompareInput(view, REF, view.selection())
    second = CompareInput(other, RunRef("other", "trace", 0, 0), other.selection())
    for name, a, b in (("itself", first, first), ("a sound run", second, first), ("this one", first, second)):
        yield f"compare with {name}", lambda a=a, b=b: compare_page(a, b)
    yield "compare_op", lambda: [
        compare_op(second, first, op.id) for op in compare_page(second, first).ops[:2]
    ]  # fmt: skip
    runs = [recorded_run(*(one.view, one.ref, one.selection)) for one in (first, second)]
    yield "many_runs", lambda: many_runs_page(runs, None, [], 2)
    yield "by_model", lambda: by_model_page(runs, [], 2)
    for measure in ("step_time", "gpu_utilization", "memory"):
        yield (
            f"sweep {measure}",
            lambda m=measure: sweep_page(runs, SweepRequest("batch_size", m), [], 2),
        )


def commands(view: ProfileView, path: Path) -> Iterator[Question]:
    """What commands print of the view, in all formats; ``path`` is a file that is there."""
    chosen = Chosen(view, REF, view.selection())

    def printed(*arguments: str) -> str:
        with _opened(chosen):
            done = CliRunner().invoke(app, list(arguments))
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.output

    for name in _PRINTED:
        for form in ("text", "json", "csv"):
            yield f"command {name} {form}", lambda n=name, f=form: printed(n, str(path), "--format", f)
    for number, options in enumerate(_PLANS):
        yield f"command plan {number}", lambda options=options: printed("plan", str(path), *options)
    yield "command predict", lambda: printed("predict", str(path), "--precision", "bf16")
    yield "command compare", lambda: printed("compare", str(path), str(path))


def _opened(chosen: Chosen) -> contextlib.ExitStack:
    """Commands open this in place of their argument."""
    stack = contextlib.ExitStack()
    for name in _CHOOSERS:
        module = importlib.import_module(f"tb_dlprof_plugin.cli.{name}")
        stack.enter_context(mock.patch.object(module, "choose", return_value=chosen))
    return stack


_PERCENT_KEY = re.compile(r"(?:^|_)(?:percent|shares?|utilization)(?:_percent)?$")
_CHANGES = re.compile(
    r"efficiency_percent|(?:low|high)_percent|change|error|saving|saved|residual|gain|slack|roof|ceiling|possible|deviation|late|short|batch"
)
"""Percentages of what is no part: of a difference, of another time, of a ceiling that can be surpassed."""


def most_printed(question: str) -> float:
    """The largest percentage that the text of an answer may show: of a roof, which can be surpassed, more, and of
    efficiency, which twice the GPUs can more than double, any."""
    if question.startswith("command scaling"):
        return math.inf
    return MOST_OF_ROOF if question.startswith(("command roofline", "command compare")) else 100.0


def wrong_shares(answer: Any, path: str = "", most: float = 100.0) -> Iterator[str]:
    """Shares below 0 or above 100 in an answer, by their names; ``most`` is that of a share in a text."""
    if isinstance(answer, dict):
        for key, value in answer.items():
            inner = f"{path}.{key}"
            if isinstance(value, (int, float)) and _PERCENT_KEY.search(key) and not _CHANGES.search(inner):
                if not -1e-6 <= value <= 100 + 1e-6:
                    yield f"{inner}={value}"
            else:
                yield from wrong_shares(value, inner, most)
    elif isinstance(answer, list):
        for one in answer:
            yield from wrong_shares(one, path + "[]", most)
    elif isinstance(answer, str):
        for found in _PRINTED_SHARE.finditer(answer):
            number = float(found[1].replace(",", ""))
            if number > most:
                yield f"{path} prints {answer[max(0, found.start() - 60) : found.end() + 30]!r}"


_PRINTED_SHARE = re.compile(
    r"(?<![\w.+±−-])(\d[\d,]*(?:\.\d+)?) ?%"
    r"(?!\)? (?:efficiency|slower|faster|more|less|longer|shorter|higher|lower|too long|too short|off|of the median"
    r"|of that))"
)
"""Without a sign, which a difference has, and without a word for one; efficiency can be above 100 %, of caches."""
