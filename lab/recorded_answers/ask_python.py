"""Runs in, what the package's names answer about them in Python out."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

import tb_dlprof_plugin
from recorded_answers.ask_commands import PRECISIONS
from recorded_answers.ask_pages import REPORTS

Said = tuple[str, str, str]
"""Kind, question, text."""


def about_runs(folder: Path, names: Sequence[str]) -> Iterator[tuple[str, str, str, str]]:
    """Pages, tables, reports, comparisons and forecasts of runs: subject, kind, question, text."""
    runs = {name: tb_dlprof_plugin.read_profiles(folder / name) for name in names}
    for name, profiles in runs.items():
        for place, run in enumerate(profiles):
            for said in _about(run):
                yield (f"{name} #{place}" if len(profiles) > 1 else name, *said)
    first = {name: profiles[0] for name, profiles in runs.items() if profiles}
    base = first[names[0]]
    for name in names[1:]:
        for kind, made in (
            ("api run.compare", lambda: base.compare(first[name]).to_json()),  # noqa: B023
            ("api compare", lambda: canonical(tb_dlprof_plugin.compare(base.profile, first[name].profile))),  # noqa: B023
        ):
            yield name, kind, names[0], _answered(made)
    every = list(first.values())
    for kind, of_all in (
        ("many_runs", tb_dlprof_plugin.many_runs),
        ("by_model", tb_dlprof_plugin.by_model),
        ("sweep", tb_dlprof_plugin.sweep),
    ):
        yield "", f"api {kind}", "", _answered(lambda of_all=of_all: of_all(every).to_json())  # type: ignore[misc]


def about_trace(path: Path) -> Iterator[Said]:
    """`analyze` of a trace, by what its pages and reports then say."""
    try:
        profile = tb_dlprof_plugin.analyze(path)
    except Exception as error:
        yield "api analyze", "", f"{type(error).__name__}: {error}"
        return
    for name in ("ops", "kernels"):
        made = tb_dlprof_plugin.page(profile, name, run="trace")
        yield f"api page {name}", "analyze", made.to_json()
    for name in ("detail", "kernel"):
        yield f"api report {name}", "analyze", tb_dlprof_plugin.report(profile, name, run="trace").to_json()


def about_kernels(names: Sequence[str]) -> Iterator[Said]:
    """`classify_kernel` of kernel names, in several settings."""
    for title, options in (
        ("", {}),
        ("convolution", {"op": "aten::convolution_backward", "input_types": '["c10::Half", "c10::Half"]'}),
        ("mm, old GPU", {"op": "aten::mm", "input_types": '["float", "float"]', "compute_capability": (6, 1)}),
    ):
        lines = [f"{name}\t{canonical(tb_dlprof_plugin.classify_kernel(name, **options))}" for name in names]  # type: ignore[arg-type]
        yield "api classify_kernel", title, "\n".join(lines)


def canonical(value: Any) -> str:
    """JSON of records, arrays and enumerations."""
    return msgspec.json.encode(_plain(value), order="sorted").decode()


def _about(run: Any) -> Iterator[Said]:
    yield "api repr", "", repr(run)
    for name in _pages(run):
        try:
            page = run.page(name)
        except Exception as error:
            yield f"api page {name}", "", f"{type(error).__name__}: {error}"
            continue
        yield f"api page {name}", "", page.to_json()
        yield f"api page {name}", "repr", repr(page)
        for table in page.tables:
            yield f"api page {name}", table, _answered(lambda page=page, table=table: page.table(table).to_csv())  # type: ignore[misc]
    yield "api op", "no such op", _answered(lambda: run.op("no such op").to_json())
    for name in REPORTS:
        yield f"api report {name}", "", _answered(lambda name=name: run.report(name).to_csv())  # type: ignore[misc]
        yield f"api report {name}", "repr", _answered(lambda name=name: repr(run.report(name)))  # type: ignore[misc]
    for precision in PRECISIONS:
        yield "api run.predict", precision, _answered(lambda p=precision: run.predict(p).to_json())  # type: ignore[misc]
    yield "api predict", "bf16", _answered(lambda: canonical(tb_dlprof_plugin.predict(run.profile, "bf16")))


def _pages(run: Any) -> list[str]:
    """The pages that a run names when it is asked for one that there is not."""
    refused = _answered(lambda: run.page("no such page").to_json())
    return refused.partition("there are ")[2].split(", ")


def _answered(made: Callable[[], str]) -> str:
    """A text, or the error in its place."""
    try:
        return made()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _plain(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, msgspec.Struct):
        return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: _plain(getattr(value, name)) for name in value._fields}
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in (sorted(value) if isinstance(value, set | frozenset) else value)]
    return value
