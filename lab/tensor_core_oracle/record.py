"""Runs every group twice, below torch.profiler and below Nsight Compute, and keeps what they wrote in one directory.

Profiler runs of small groups share the GPU; whole models, whose durations are used, have it to themselves. Counted runs
come one after another, because the counters are the whole GPU's. Each has a limit of its own: what is done is kept.
"""

from __future__ import annotations

import datetime
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from .counters import command, metrics_of_this_gpu, ncu_command

ALONE = frozenset({"demo", "images", "texts", "holdout-models"})
MODULE = "lab.tensor_core_oracle.child"
REPOSITORY = Path(__file__).resolve().parents[2]
PROFILE_BUILD_S = 300
COUNT_BUILD_S = 200
"""Time in which a group builds its workloads; what comes later is left out. Compiled code is cached in between."""
GRACE_S = 40
"""What ncu and the interpreter need beyond the workloads' own deadline."""


def _environment(directory: Path) -> dict[str, str]:
    cache = directory / "cache"
    cache.mkdir(exist_ok=True)
    return {
        **os.environ,
        "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"),
        "TRITON_CACHE_DIR": str(cache / "triton"),
        "PYTHONUNBUFFERED": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }


def _start(
    group: str, mode: str, directory: Path, build_s: float, measure_s: float, prefix: list[str]
) -> subprocess.Popen[bytes]:
    with (directory / f"{group}.{mode}.out").open("wb") as output:
        return subprocess.Popen(
            [*prefix, sys.executable, "-m", MODULE, group, mode, str(directory), str(build_s), str(measure_s)],
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=REPOSITORY,
            env=_environment(directory),
            start_new_session=True,
        )


def _wait(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None


def record(groups: list[str], directory: Path, seconds: float) -> None:
    """Record the groups within about ``seconds``; leaves logs, traces and tables of counts in ``directory``.

    Raises:
        FileNotFoundError: ``ncu`` is not installed.
        RuntimeError: this GPU has other counters.
    """
    start = time.monotonic()
    directory.mkdir(parents=True, exist_ok=True)

    def left() -> float:
        return seconds - (time.monotonic() - start)

    def say(text: str) -> None:
        print(f"{time.monotonic() - start:6.1f} s  {text}", flush=True)

    ncu = ncu_command()
    (directory / "machine.json").write_text(json.dumps(_machine(ncu), indent=1))
    metrics = metrics_of_this_gpu(ncu)
    say(f"counted: {', '.join(metrics)}")

    small = [group for group in groups if group not in ALONE]
    running = {group: _start(group, "profile", directory, PROFILE_BUILD_S, 0, []) for group in small}
    for group, process in running.items():
        say(f"{group}: profiled, exit {_wait(process, PROFILE_BUILD_S + 60)}")
    for group in groups:
        if group in ALONE:
            process = _start(group, "profile", directory, PROFILE_BUILD_S, 0, [])
            say(f"{group}: profiled, exit {_wait(process, PROFILE_BUILD_S + 60)}")
    _count_all(groups, directory, ncu, metrics, left, say)


def _count_all(
    groups: list[str],
    directory: Path,
    ncu: str,
    metrics: list[str],
    left: Callable[[], float],
    say: Callable[[str], None],
) -> None:
    """All groups get ready in parallel; then each in turn starts, while the others do nothing on the GPU."""
    limit = left() - GRACE_S
    counting = {}
    for group in groups:
        prefix = command(ncu, metrics, directory / f"{group}.counts.csv", [])
        counting[group] = _start(group, "count", directory, COUNT_BUILD_S, limit, prefix)
    for group, process in counting.items():
        while not _is_prepared(directory / f"{group}.count.log") and process.poll() is None and left() > GRACE_S:
            time.sleep(0.2)
    say("all groups are ready to be counted")
    for group, process in counting.items():
        (directory / f"{group}.go").touch()
        code = _wait(process, max(left() - 5, 5))
        say(f"{group}: counted, exit {code}; {_summary(directory / f'{group}.count.log')}")


def _is_prepared(log: Path) -> bool:
    return log.exists() and '"prepared"' in log.read_text()


def _summary(log: Path) -> str:
    lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    failed = [line for line in lines if line.get("error")]
    measured = sum(1 for line in lines if line.get("stage") == "measured")
    text = f"{measured} measured, {len(failed)} failed"
    return text + "".join(f"\n    {line['workload']}: {line['error'].splitlines()[-1][:150]}" for line in failed[:12])


def _machine(ncu: str) -> dict[str, object]:
    import torch

    def output(*arguments: str) -> str:
        return subprocess.run(arguments, capture_output=True, text=True, check=False).stdout.strip()

    return {
        "gpu": torch.cuda.get_device_name(0),
        "compute_capability": list(torch.cuda.get_device_capability(0)),
        "driver": output("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader").splitlines()[:1],
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
        "ncu": output(ncu, "--version").splitlines()[-1:],
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
    }
