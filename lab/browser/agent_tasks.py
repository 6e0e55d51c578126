"""The ten questions of `user_tasks`, answered through the MCP tools alone, each in at most three calls.

A fixed program stands for the agent: it picks tools and reads figures and rows of their answers, and nothing else. It
asks by the SDK's client in this process.

    python -m lab.browser.agent_tasks
"""

from __future__ import annotations

import asyncio
import csv
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).resolve().parents[2] / "demo" / "recorded"
MOST_CALLS = 3
FP32, AMP, SMALL = "resnet50/fp32", "resnet50/amp-fp16", "lenet/fp32"
Ask = Callable[..., dict[str, Any]]
"""A tool by its name, with its arguments; its answer as JSON."""


def _backward_layer(ask: Ask) -> str:
    rows = ask("table", run=FP32, page="ops", sort="-gpu_ns", limit=10)["rows"]
    largest = next(row for row in rows if row["role"] == "backward")
    return f"{largest['name']}: {largest['gpu_percent']:.1f} % of the GPU time, backward."


def _idle_gpu(ask: Ask) -> str:
    found = ask("table", run=SMALL, page="launches", table="idle_by_cause")
    causes = sorted(found["rows"], key=lambda row: -row["percent"])[:2]
    return f"{found['answer']} Of that: " + ", ".join(f"{row['label']} {row['percent']:.0f} %" for row in causes) + "."


def _amp_worth_it(ask: Ask) -> str:
    forecast = ask("what_if", run=SMALL, precision="bf16")
    return f"{_figure(forecast, 'step')} {_figure(forecast, 'speedup')} {forecast['answer']}"


def _slow_kernel(ask: Ask) -> str:
    op = ask("table", run=FP32, page="ops", sort="-gpu_ns", limit=1)["rows"][0]
    found = ask("explain", run=FP32, subject=op["name"])
    kernel = max(found["rows"], key=lambda row: row["ms_a_step"])
    return f"{kernel['kernel']}: {kernel['ms_a_step']:.3g} ms a step. {found['answer']}"


def _changed(ask: Ask) -> str:
    found = ask("compare", base=FP32, candidate=AMP)
    largest = max(found["rows"], key=lambda row: abs(row["difference_ms"]))
    interval = f"{largest['low_ms']:.3g} to {largest['high_ms']:.3g}"
    return f"{_figure(found, 'speedup')} {largest['part']}: {largest['difference_ms']:+.3g} ms a step ({interval})."


def _trust(ask: Ask) -> str:
    return re.search(r"Recording: .*", ask("summary", run=SMALL)["answer"])[0]  # type: ignore[index]


def _gain(ask: Ask) -> str:
    found = ask("advise", run=FP32, limit=1)
    first = found["rows"][0]
    return f"{_figure(found, 'saving of ' + first['rule'])} {first['change']}\n" + "\n".join(first["code"])


def _op_type(ask: Ask) -> str:
    kind = ask("table", run=FP32, page="op_types", sort="-gpu_ns", limit=1)["rows"][0]
    found = ask("table", run=FP32, page="timeline", table="longest_gpu")
    spot = next(row for row in found["rows"] if row["op"].endswith(f"/{kind['op_type']}"))
    starts = ask("table", run=FP32, page="timeline", columns=["number", "start_ns"])["rows"][0]
    after = (spot["spot_start_ns"] - starts["start_ns"]) / 1e6
    where = f"its longest kernel runs {after:.1f} ms after the start of iteration {starts['number']}"
    return f"{kind['op_type']}: {kind['percent']:.0f} % of the GPU time; {where}, for {spot['op']}."


def _csv(ask: Ask) -> str:
    columns = ["name", "role", "gpu_ns", "gpu_percent", "calls", "using_tc", "precision"]
    rows: list[dict[str, Any]] = []
    offset: int | None = 0
    while offset is not None:
        asked = {"columns": columns, "limit": 1000, "offset": offset, "characters": 50_000}
        found = ask("table", run=FP32, page="ops", **asked)
        rows += found["rows"]
        offset = found["next_offset"]
    assert len(rows) == found["total"]
    text = io.StringIO()
    writer = csv.DictWriter(text, columns)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _fastest(ask: Ask) -> str:
    rows = ask("list_runs", limit=50)["rows"]
    said = []
    for model in dict.fromkeys(row["model"] for row in rows):
        first, *others = sorted((row for row in rows if row["model"] == model), key=lambda row: row["step_ms"])
        rivals = [row["run"] for row in others if row["low_ms"] <= first["high_ms"]]
        unsure = f"; cannot tell from {', '.join(rivals)}" if rivals else ""
        said.append(f"{model}: {first['run']}, {first['step_ms']:.3g} ms a step{unsure}")
    return "\n".join(said)


TASKS: dict[str, Callable[[Ask], str]] = {
    "backward_layer": _backward_layer,
    "idle_gpu": _idle_gpu,
    "amp_worth_it": _amp_worth_it,
    "slow_kernel": _slow_kernel,
    "changed": _changed,
    "trust": _trust,
    "gain": _gain,
    "op_type": _op_type,
    "csv": _csv,
    "fastest": _fastest,
}
"""By the names of `user_tasks`."""


def _figure(answer: dict[str, Any], name: str) -> str:
    """A figure with its interval, or why there is none."""
    found = next(one for one in answer["figures"] if one["name"] == name)
    if found["value"] is None:
        why = next(one["why"] for one in answer["cannot_say"] if one["what"] == name)
        return f"{name} unknown: {why}"
    return f"{name} {found['value']:.3g} {found['unit']} ({found['low']:.3g} to {found['high']:.3g})."


def main() -> None:
    """Prints each question with the calls that it took and its answer; ends with an error where they are too many."""
    import mcp

    from tb_dlprof_plugin.agent_tools.mcp_server import make_server

    from .user_tasks import USER_TASKS

    calls = 0

    async def call(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        async with mcp.Client(make_server(RECORDED)) as client:
            found = await client.call_tool(tool, arguments)
            assert not found.is_error, found.content
            answer: dict[str, Any] = found.structured_content
            return answer

    def ask(tool: str, **arguments: Any) -> dict[str, Any]:
        nonlocal calls
        calls += 1
        return asyncio.run(call(tool, arguments))

    most = 0
    for task in USER_TASKS:
        calls = 0
        answer = TASKS[task.name](ask)
        most = max(most, calls)
        lines = answer.splitlines()
        print(f"{task.question}  ({calls} calls)", *(f"    {line}" for line in lines[:8]), sep="\n")
    print(f"most calls: {most}")
    if most > MOST_CALLS:
        raise SystemExit(f"A task takes more than {MOST_CALLS} calls.")


if __name__ == "__main__":
    main()
