"""Each planted script with and without its remedy, in processes of their own: is the planted fault one?

    python -m lab.trying.planted_pairs --deadline 300 [--only cpu_anomaly_mode ...]

What `tb-dlprof try` measures by interleaved blocks is measured here by whole processes, one after the other.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tb_dlprof_plugin.trial.inside.remedies import make
from tb_dlprof_plugin.trial.inside.remedy import environment_of

from .planted import GOOD, PLANTED, Script

_TIMED = Path(__file__).parent / "timed_script.py"
_LONGEST_S = 90


def measure(script: Path, remedies: tuple[str, ...], seconds: float = 2.0, warmup: int = 15) -> dict[str, Any]:
    """What `timed_script` prints, or ``{"error": ...}``."""
    return _result(_started(script, {"remedies": remedies, "warmup": warmup, "seconds": seconds}))


def measure_together(
    scripts: Sequence[tuple[Path, tuple[str, ...]]], seconds: float = 0.3, warmup: int = 12, rounds: int = 6
) -> list[dict[str, Any]]:
    """The same for several scripts and sets, whose processes start together and are timed in turns, there and back, so
    that what drifts slowly cancels; the step is the mean of all rounds."""
    request = {"warmup": warmup, "seconds": seconds, "rounds": rounds}
    processes = [_started(script, {"remedies": one, **request}) for script, one in scripts]
    for process in processes:
        _line(process, lambda line: line == "ready")
    said: list[list[dict[str, Any]]] = [[] for _ in processes]
    for number in range(rounds):
        turns = list(zip(processes, said, strict=True))
        for process, rows in turns if number % 2 == 0 else reversed(turns):
            rows += _timed(process)
    found = []
    for process, rows in zip(processes, said, strict=True):
        row = _result(process)
        if len(rows) == rounds:
            row = {**rows[-1], "step_ms": statistics.fmean(one["step_ms"] for one in rows)}
            row["rounds_ms"] = [one["step_ms"] for one in rows]
        found.append(row)
    return found


def _timed(process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    """What a process says of its next round; nothing where it has ended."""
    assert process.stdin is not None
    try:
        # Nothing stays in a buffer of a process that has ended.
        os.write(process.stdin.fileno(), b"\n")
    except OSError:
        return []
    line = _line(process, lambda line: line.startswith("{"))
    return [json.loads(line)] if line else []


def _line(process: subprocess.Popen[str], is_wanted: Callable[[str], bool]) -> str:
    """The first of its output that is wanted; "" where it ends before."""
    assert process.stdout is not None
    while line := process.stdout.readline():
        if is_wanted(line.strip()):
            return line
    return ""


def _started(script: Path, request: Mapping[str, Any]) -> subprocess.Popen[str]:
    command = [sys.executable, str(_TIMED), json.dumps(request), str(script)]
    environment = {**os.environ, **environment_of(map(make, request["remedies"]))}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=subprocess.PIPE, text=True)


def _result(process: subprocess.Popen[str]) -> dict[str, Any]:
    try:
        out, err = process.communicate(timeout=_LONGEST_S)
        return dict(json.loads(out.splitlines()[-1]))
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return {"error": f"more than {_LONGEST_S} s"}
    except (ValueError, IndexError):
        lines = err.strip().splitlines()
        return {"error": lines[-1][:300] if lines else f"exit code {process.returncode}"}


def rows_of(script: Script, remedies: tuple[str, ...], until: float) -> list[dict[str, Any]]:
    """The baseline, then each remedy."""
    rows: list[dict[str, Any]] = []
    for one in ((), *((name,) for name in remedies)):
        if time.monotonic() > until:
            break
        rows.append({"script": script.name, "remedies": one, **measure(script.path, one)})
        base, last = rows[0].get("step_ms"), rows[-1].get("step_ms")
        gain = f"{100 * (1 - last / base):6.1f} %" if base and last else ""
        said = rows[-1].get("error") or " ".join(rows[-1].get("no_effect", {}).values())
        print(f"{script.name:30} {'+'.join(one) or '-':26} {last or float('nan'):9.2f} ms {gain} {said}", flush=True)
    return rows


def main() -> None:
    """See the module's docstring."""
    import torch

    options = argparse.ArgumentParser()
    options.add_argument("--deadline", type=float, default=300.0, help="seconds after which no process is started")
    options.add_argument("--only", nargs="*", default=[])
    options.add_argument("--first", action="store_true", help="of each script only the first remedy of its fault")
    options.add_argument("--good", nargs="*", default=[], help="remedies that the good scripts are measured with")
    chosen = options.parse_args()
    until = time.monotonic() + chosen.deadline
    gpu = torch.cuda.is_available()
    rows = []
    for script in (*PLANTED, *(GOOD if chosen.good else ())):
        if script.needs_gpu == gpu and (not chosen.only or script.name in chosen.only):
            remedies = script.remedies[:1] if chosen.first else script.remedies
            rows += rows_of(script, remedies or tuple(chosen.good), until)
    out = os.environ.get("OUT")
    if out:
        Path(out, "planted_pairs.json").write_text(json.dumps(rows))


if __name__ == "__main__":
    main()
