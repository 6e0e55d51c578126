"""Finds where one question has two answers: fields, shares, parts, headlines and sentences about one recording.

A page names the quantity that a field shows (`pages.quantities`); the field must hold what the quantity's one function
says. What is no field, a sentence or a line of a command, is compared by its words.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from support.all_answers import REF, ask, commands, wrong_shares

from tb_dlprof_plugin.metrics.iterations import step_totals
from tb_dlprof_plugin.model.formatting import duration
from tb_dlprof_plugin.pages import energy, kernels, launch_rows, memory_tables, modules, op_types, quantities, work_rows
from tb_dlprof_plugin.pages.columns import Quantity, quantities_of, unit_of
from tb_dlprof_plugin.pages.common import OpRow, Slice
from tb_dlprof_plugin.pages.compare import compare_page
from tb_dlprof_plugin.pages.compare_metrics import METRICS, CompareInput
from tb_dlprof_plugin.pages.memory import MemoryFigures
from tb_dlprof_plugin.pages.recorded_run import recorded_run
from tb_dlprof_plugin.pages.runs import many_runs_page
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.web.routes import PAGES

REGISTRY: dict[str, Quantity] = {name: value for name, value in vars(quantities).items() if isinstance(value, Quantity)}
_COMMANDS = {
    f"command {name} text"
    for name in ("summary", "launches", "timeline", "tensor-cores", "memory", "energy", "ops", "op-types", "kernels")
}


@dataclass(frozen=True, slots=True)
class Contradiction:
    """``kind`` is what was compared; ``where`` the page, table or command."""

    kind: str
    where: str
    what: str

    def __str__(self) -> str:
        return f"[{self.kind}] {self.where}: {self.what}"


def contradictions(view: ProfileView, path: Path, *, printed: bool) -> Iterator[Contradiction]:
    """Where a recording's answers differ from each other; ``printed`` asks the commands, too."""
    selection = view.selection()
    pages = {route.name: route.load_page()(view, REF, selection) for route in PAGES.values()}
    for name, page in pages.items():
        yield from _of_page(name, page, view, selection)
    yield from _of_tables_of_runs(view, selection)
    yield from first_rows(pages)
    yield from _sentences(pages, view, selection)
    for name, answer in _answers(view, path, printed):
        yield from (Contradiction("share", name, wrong) for wrong in wrong_shares(answer))
        if name.startswith("command "):
            yield from printed_values(name, answer, view, selection)


def _answers(view: ProfileView, path: Path, printed: bool) -> Iterator[tuple[str, Any]]:
    for question in commands(view, path) if printed else ():
        if question[0] in _COMMANDS:
            yield question[0], ask(question)


def _of_page(name: str, page: msgspec.Struct, view: ProfileView, selection: Selection) -> Iterator[Contradiction]:
    yield from (Contradiction("share", name, wrong) for wrong in wrong_shares(msgspec.to_builtins(page)))
    for path, struct in structs(page, name):
        if "[]" not in path:
            yield from values(path, struct, view, selection)
    for path, rows in tables(page, name):
        yield from of_base(path, rows)


# ---- values of quantities


def values(path: str, struct: msgspec.Struct, view: ProfileView, selection: Selection) -> Iterator[Contradiction]:
    """Fields that do not hold what their quantity says."""
    if isinstance(struct, MemoryFigures) and (struct.relative or not view.profile.iterations.gpu_ids):
        return  # Counted from its lowest moment, or of the CPU: neither is the quantity of a GPU.
    for field, quantity in quantities_of(type(struct)).items():
        shown, value = getattr(struct, field), _of(quantity, view, selection)
        if not same(None if shown is None else shown * unit_of(field)[1], value):
            yield Contradiction("value", f"{path}.{field}", f"shows {shown}, {quantity.label} is {value}")


def _of(quantity: Quantity, view: ProfileView, selection: Selection) -> float | None:
    return quantity.value(view, selection)


def same(shown: float | None, value: float | None) -> bool:
    """Whether both are unknown, or equal but for the rounding of a whole unit."""
    if shown is None or value is None:
        return shown is value
    return math.isclose(shown, value, rel_tol=1e-6, abs_tol=1.0 if abs(value) > 1e3 else 1e-6)


def _of_tables_of_runs(view: ProfileView, selection: Selection) -> Iterator[Contradiction]:
    """The run in the table of runs, and both sides of a comparison with itself."""
    row = many_runs_page([recorded_run(view, REF, selection)]).rows[0]
    yield from values("many_runs.rows[]", row, view, selection)
    side = CompareInput(view, REF, selection)
    for metric in compare_page(side, side).metrics:
        quantity = METRICS[metric.key].quantity
        value = _of(quantity, view, selection)
        if not same(metric.a, value) or not same(metric.b, value):
            yield Contradiction("value", f"compare.{metric.key}", f"shows {metric.a}, {quantity.label} is {value}")


# ---- shares and their bases

BASES: dict[type[msgspec.Struct], tuple[str, ...]] = {
    Slice: ("value_ns", "percent"),
    kernels.KernelRow: ("total_ns", "percent"),
    op_types.OpTypeRow: ("gpu_ns", "percent", "cpu_total_ns"),
    OpRow: ("gpu_ns", "gpu_percent"),
    energy.EnergyPart: ("joules", "percent"),
    launch_rows.SyncRow: ("time_ns", "percent"),
    memory_tables.MemoryCategory: ("bytes", "percent"),
    modules.ModuleRow: ("gpu_sum_ns", "gpu_percent"),
    work_rows.OpKernel: ("total_ns", "percent"),
}
"""Per row struct its part, its share, and the part of a recording without a GPU: one whole for the rows of a table."""
_WHOLE = {"account", "parts", "kernel_time", "tensor_core_efficiency", "by_precision", "by_family", "by_type",
          "gpu_utilization", "resource_usage", "idle_by_cause", "idle_by_activity", "idle_by_kind"}  # fmt: skip
"""Tables whose rows make up their whole."""


def of_base(path: str, rows: list[Any]) -> Iterator[Contradiction]:
    """Shares of a table that are of different wholes, and parts that do not make up theirs."""
    base = BASES.get(type(rows[0]))
    if base is None:
        return
    part, percent = base[0], base[1]
    if len(base) > 2 and all(getattr(row, part) is None for row in rows):
        part = base[2]
    pairs = [(getattr(row, part), getattr(row, percent)) for row in rows]
    known = [(value, share) for value, share in pairs if value is not None and share is not None and value > 0]
    if not known:
        return
    value, share = max(known, key=lambda pair: pair[1])
    whole = 100 * value / share if share else math.inf
    for value, share in known:
        # A share of a table is of one whole; 100 % is where a part of several threads is cut.
        if share < 100 and not math.isclose(100 * value / whole, share, rel_tol=1e-3, abs_tol=0.02):
            yield Contradiction(
                "base", path, f"{part} {value} is {share:.2f} %, but {100 * value / whole:.2f} of {whole:.0f}"
            )
            break
    total = sum(share for _, share in known)
    if path.rsplit(".", 1)[-1] in _WHOLE and not math.isclose(total, 100, abs_tol=0.1):
        yield Contradiction("parts", path, f"the parts are {total:.2f} % of their whole")


# ---- headlines and first rows


def first_rows(pages: dict[str, Any]) -> Iterator[Contradiction]:
    """Headlines that call another row the largest than the page's table does."""
    for name, kind, of in (("ops", "op", "id"), ("op_types", "op_type", "op_type"), ("kernels", "kernel", "id")):
        page = pages[name]
        named = [part for part in page.headline_parts if part.kind == kind]
        if named and page.rows and named[0].id != getattr(page.rows[0], of):
            yield Contradiction("first row", name, f"{page.headline} The first row is {page.rows[0]}")
    named = [part.id for part in pages["ops"].headline_parts if part.kind == "op_type"]
    rows = pages["op_types"].rows
    if named and rows and named[0] != rows[0].op_type:
        yield Contradiction("first row", "ops", f"{pages['ops'].headline} The first type is {rows[0].op_type}")
    launches = pages["launches"]
    op = launches.gaps[0].op if launches.gaps and "longest gap" in launches.headline else ""
    if op not in launches.headline:
        yield Contradiction("first row", "launches", f"{launches.headline} The first gap is of {op}")
    yield from _shares_of_first_rows(pages)


def _shares_of_first_rows(pages: dict[str, Any]) -> Iterator[Contradiction]:
    """The share that a headline gives its first name is that of the first row."""
    for name, row_share in (("op_types", "percent"), ("kernels", "percent"), ("ops", "gpu_percent")):
        page = pages[name]
        kinds = ("kernel", "op") if name != "op_types" else ("op_type",)
        for place, part in enumerate(page.headline_parts[:-1]):
            told = re.match(r" takes (?:most, )?(\d+(?:\.\d+)?) %", page.headline_parts[place + 1].text)
            share = getattr(page.rows[0], row_share) if page.rows else None
            if part.kind in kinds and told and share is not None and abs(float(told[1]) - share) > 0.51:
                yield Contradiction("first row", name, f"{page.headline} The first row has {share:.1f} %")


# ---- sentences

_SPOKEN = {
    quantities.GPU_IDLE: r"idle (\d+(?:\.\d+)?) % of (?!the record)",
    quantities.GPU_BUSY: r"\bworks (\d+(?:\.\d+)?) %",
    quantities.TENSOR_CORE_UTILIZATION: r"Tensor Cores run for (\d+(?:\.\d+)?) % of the kernel time that could",
    quantities.TENSOR_CORE_SHARE: r"Tensor Core kernels(?: take)? (\d+(?:\.\d+)?) %|(\d+(?:\.\d+)?) % on Tensor Cores",
}
"""What a headline says of a quantity, as a percentage."""


def _sentences(pages: dict[str, Any], view: ProfileView, selection: Selection) -> Iterator[Contradiction]:
    for name, page in pages.items():
        yield from spoken(name, getattr(page, "headline", ""), view, selection)
    yield from overheads(
        [*(one.text for one in pages["trust"].reasons), *(one.title for one in pages["advice"].findings)]
    )


def overheads(texts: list[str]) -> Iterator[Contradiction]:
    """The verdict of a recording and its advice say how many times as long the recorded step is."""
    told = [
        found[1] for text in texts if (found := re.search(r"([\d.]+) times as long as (?:one )?without the pro", text))
    ]
    if len(set(told)) > 1:
        yield Contradiction("sentence", "trust", f"the recorded step is {' and '.join(told)} times as long")


def spoken(where: str, text: str, view: ProfileView, selection: Selection) -> Iterator[Contradiction]:
    """Numbers in a sentence that are not those of the quantity."""
    for quantity, pattern in _SPOKEN.items():
        for found in re.finditer(pattern, text):
            told, value = float(next(filter(None, found.groups()))), _of(quantity, view, selection)
            if value is None or abs(told - value) > 0.51:
                yield Contradiction("sentence", where, f"{text!r}: {quantity.label} is {value}")
    step = duration(step_totals(view, selection).average_ns)
    for found in re.finditer(r"(?:the|each) ([\d.,]+ (?:ns|us|µs|ms|s)) step", text):
        if found[1] != step:
            yield Contradiction("sentence", where, f"{text!r}: a step is {step}")


_SHOWN = {"percent": lambda value: f"{value:.1f} %", "ns": lambda value: duration(round(value))}


def printed_values(where: str, text: str, view: ProfileView, selection: Selection) -> Iterator[Contradiction]:
    """Lines of a command that begin with the name of a quantity and show another value."""
    for quantity in (quantities.STEP, quantities.RECORDED_STEP, quantities.GPU_BUSY, quantities.GPU_IDLE,
                     quantities.TENSOR_CORE_UTILIZATION, quantities.TENSOR_CORE_SHARE):  # fmt: skip
        line = re.search(rf"^ *{quantity.label} {{2,}}(\S.*?)(?: {{2,}}|$)", text, re.MULTILINE)
        value = _of(quantity, view, selection)
        shown = _SHOWN["ns" if "step" in quantity.label.lower() else "percent"]
        if line and line[1] != ("unknown" if value is None else shown(value)):
            yield Contradiction("command", where, f"{line[0].strip()!r}: {quantity.label} is {value}")
    yield from spoken(where, text.split("\n\n")[0].replace("\n", " "), view, selection)


# ---- walking


def structs(value: Any, path: str) -> Iterator[tuple[str, msgspec.Struct]]:
    """All structs of a page with their path; those of a list are below ``[]``."""
    if isinstance(value, msgspec.Struct):
        yield path, value
        for name in value.__struct_fields__:
            yield from structs(getattr(value, name), f"{path}.{name}")
    elif isinstance(value, list):
        for item in value:
            yield from structs(item, f"{path}[]")


def tables(value: Any, path: str) -> Iterator[tuple[str, list[Any]]]:
    """All lists of structs of a page."""
    if isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from tables(getattr(value, name), f"{path}.{name}")
    elif isinstance(value, list) and value and isinstance(value[0], msgspec.Struct):
        yield path, value
