"""Measures the kernel time of single ops, forward and backward, in each precision.

    python -m lab.op_speed.record RESULT.json.xz [--draw broad] [--cases 2400] [--skip 0] [--seconds 300]

Cases run in chunks, each once per precision below torch.profiler; the trace is analysed as that of a training would be,
and what is kept is the unit that the forecast knows: a matrix routine, or an op of the model, with its inputs'
shapes and its kernel time. The order is random: a run that ``--seconds`` cuts short has measured a smaller sample.
"""

from __future__ import annotations

import argparse
import bisect
import datetime
import gc
import json
import lzma
import sys
import tempfile
import time
from collections import defaultdict
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile, record_function

from tb_dlprof_plugin.analysis.build import analyze_trace
from tb_dlprof_plugin.metrics.flops import matrix_calls
from tb_dlprof_plugin.model.profile import CallKind, Profile
from tb_dlprof_plugin.model.shapes import inputs_text
from tb_dlprof_plugin.profile_view import ProfileView

from .case import Case
from .cases import DRAWS, draw

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "demo"))
from training import allow_tf32

PRECISIONS = {"fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
CHUNK = 40
REPEATS = 3
_LABEL = "case "


def _run(case: Case, dtype: torch.dtype, device: str, repeats: int, label: str = "") -> None:
    forward = case.build(dtype, device)
    output = forward()
    gradient = torch.randn_like(output)
    output.backward(gradient)  # type: ignore[no-untyped-call]
    for _ in range(repeats):
        with record_function(label):
            forward().backward(gradient)  # type: ignore[no-untyped-call]


def _measure(cases: dict[int, Case], precision: str, device: str, path: Path) -> None:
    """Traces the cases in one precision; a case that cannot run in it is left out."""
    allow_tf32(precision == "tf32")
    dtype = PRECISIONS[precision]
    failed = set()
    for index, case in cases.items():
        try:
            _run(case, dtype, device, 1)
        except RuntimeError as error:
            failed.add(index)
            print(f"    {precision} {case.kind} {case.about}: {str(error).splitlines()[0][:100]}")
        torch.cuda.empty_cache()
    activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA] if device == "cuda" else [ProfilerActivity.CPU]
    with profile(activities=activities, record_shapes=True) as prof:
        for index, case in cases.items():
            if index not in failed:
                _run(case, dtype, device, REPEATS, f"{_LABEL}{index}")
        if device == "cuda":
            torch.cuda.synchronize()
    prof.export_chrome_trace(str(path))


def _analysed(path: Path, draw_of: tuple[int, str], indices: range, precision: str) -> list[dict[str, Any]]:
    """Rows of the units of these cases of a draw, from their trace, which is deleted."""
    cases = draw(*draw_of)
    rows = _rows(analyze_trace(path), {index: cases[index] for index in indices}, precision)
    path.unlink()
    return rows


def _rows(summary: Profile, cases: dict[int, Case], precision: str) -> list[dict[str, Any]]:
    """The units of each case: kernel time (ns), the mean of the repeats."""
    view = ProfileView(summary)
    calls, ops, launches, strings = summary.calls, summary.ops, summary.launches, summary.strings
    work = matrix_calls(view, view.selection())
    starts, stops, numbers = _labels(summary)
    units: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for row in range(len(launches)):
        call, group = int(launches.call[row]), int(view.launch_group[row])
        if call < 0 or group < 0:
            continue
        at = bisect.bisect_right(starts, int(calls.start_ns[call])) - 1
        if at < 0 or calls.start_ns[call] > stops[at]:
            continue
        matrix = int(work.of_call[call])
        op = int(ops.op_type[calls.op[view.call_top[call]]]) if matrix < 0 else int(calls.op[work.call[matrix]])
        key = (numbers[at], group, matrix >= 0, op)
        units[key].append(row)
    result = []
    for (number, group, is_matrix, op), rows in units.items():
        case = cases[number]
        unit: dict[str, Any] = {
            "case": number,
            "kind": case.kind,
            "layout": case.layout,
            "precision": precision,
            "backward": int(view.groups.role[group]) == 2,
            "op": strings[ops.name[op]] if is_matrix else strings[op],
            "matrix": is_matrix,
            "ns": int(launches.duration_ns[rows].sum()) / REPEATS,
            "kernels": len(rows) / REPEATS,
        }
        if is_matrix:
            found = np.flatnonzero(calls.op[work.call] == op)
            unit["shapes"] = inputs_text(summary.shapes_of(op))
            unit["flops"], unit["bytes"] = int(work.flops[found[0]]), int(work.bytes[found[0]])
        else:
            unit["about"] = case.about
        result.append(unit)
    return result


def _labels(summary: Profile) -> tuple[list[int], list[int], list[int]]:
    """Starts, stops and case numbers of the annotations around the repeats, by time."""
    calls, ops, strings = summary.calls, summary.ops, summary.strings
    found = []
    for row in np.flatnonzero(ops.kind[calls.op] == CallKind.ANNOTATION).tolist():
        name = strings[ops.name[calls.op[row]]]
        if name.startswith(_LABEL):
            start = int(calls.start_ns[row])
            found.append((start, start + int(calls.duration_ns[row]), int(name.removeprefix(_LABEL))))
    found.sort()
    return [f[0] for f in found], [f[1] for f in found], [f[2] for f in found]


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("result", type=Path)
    parser.add_argument("--cases", type=int, default=2400)
    parser.add_argument("--seconds", type=float, default=3600, help="begin no chunk after about this long")
    parser.add_argument("--skip", type=int, default=0, help="leave out this many, measured before")
    parser.add_argument("--draw", choices=list(DRAWS), default="broad")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--jobs", type=int, default=2, help="processes that analyse traces")
    args = parser.parse_args()
    cases = draw(args.cases, args.draw)
    begin = time.monotonic()
    found: list[Future[list[dict[str, Any]]]] = []
    done = 0
    with (
        tempfile.TemporaryDirectory() as scratch,
        ProcessPoolExecutor(args.jobs, mp_context=get_context("spawn")) as pool,
    ):
        for first in range(args.skip, args.cases, CHUNK):
            if time.monotonic() - begin > args.seconds:
                print(f"{args.seconds:.0f} s are over: {args.cases - args.skip - done} cases were not measured.")
                break
            indices = range(first, min(first + CHUNK, args.cases))
            for precision in PRECISIONS:
                path = Path(scratch) / f"{first}-{precision}.pt.trace.json"
                _measure({index: cases[index] for index in indices}, precision, args.device, path)
                found.append(pool.submit(_analysed, path, (args.cases, args.draw), indices, precision))
                gc.collect()
                if args.device == "cuda":
                    torch.cuda.empty_cache()
            done += len(indices)
            print(f"{time.monotonic() - begin:6.1f} s  {done} cases", flush=True)
        rows = [row for future in found for row in future.result()]
    result = {
        "command": f"python -m lab.op_speed.record RESULT --draw {args.draw} --cases {args.cases}",
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "device": torch.cuda.get_device_name(0) if args.device == "cuda" else "cpu",
        "torch": torch.__version__,
        "cudnn": torch.backends.cudnn.version(),  # type: ignore[no-untyped-call]
        "cases": done,
        "rows": rows,
    }
    with lzma.open(args.result, "wt") as file:
        json.dump(result, file, separators=(",", ":"))
    print(f"{args.result}: {len(rows)} rows, {args.result.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
