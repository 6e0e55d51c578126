"""Times the variants of each family of `pairs` in one process, in many short turns, without recording them."""

from __future__ import annotations

import fcntl
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from compiled import record, variants

TOGETHER = {
    "gpt_small.training": "default eager graphs cuts item breaks blocks mutated dynamic",
    "mlp.training": "default eager graphs cuts breaks mutated dynamic",
    "gpt_large.training": "default eager graphs cuts mutated dynamic",
    "gpt.inference": "default eager graphs cuts breaks mutated",
    "unet.training": "default eager graphs",
    "bert.training": "default eager graphs",
    "resnet.training": "default eager graphs cuts breaks",
}
TINY = {"mlp.training": "default eager cuts guard", "gpt.inference": "default item breaks"}
WITHOUT = dict.fromkeys(("item", "cuts", "breaks", "dynamic", "guard", "eager", "blocks", "graphs"), "default")
WITHOUT |= {"mutated": "graphs"}
"""By variant the one that it is held to."""
SCRIPT = str(Path(__file__).with_name("pairs.py"))
SHORT_TURNS, SHORT_TURN_S = 30, 0.06


def work_together(family: str, out: Path, tiny: bool) -> None:
    """Time the variants of a family in one process, in turns, while no other process does so."""
    workers = {}
    for variant in (TINY if tiny else TOGETHER)[family].split():
        # Dynamo keeps what it compiled with the code: each variant has code of its own.
        spec = importlib.util.spec_from_file_location(f"variants_{variant}", variants.__file__)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        print(f"{variant} is prepared", file=sys.stderr, flush=True)
        try:
            worker = module.Worker(family, variant, out / "runs" / variant, tiny)
            worker.prepare()
        except Exception as error:
            print(f"{variant}: {error!r}", file=sys.stderr)
            continue
        workers[variant] = worker
    turns: dict[str, list[float]] = {variant: [] for variant in workers}
    with (out.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for turn in range(SHORT_TURNS):
            for variant in list(workers) if turn % 2 == 0 else list(workers)[::-1]:
                turns[variant].append(workers[variant].time(SHORT_TURN_S))
    (out / "turns.json").write_text(json.dumps(turns))


def together(out: Path, only: list[str], tiny: bool, seconds: float) -> None:
    """Time all families, each in a process, and print the table."""
    until = time.monotonic() + seconds
    processes: dict[str, subprocess.Popen[bytes]] = {}
    for family in (one for one in (TINY if tiny else TOGETHER) if not only or one in only):
        folder = out / family
        folder.mkdir(parents=True, exist_ok=True)
        environment = {
            **os.environ,
            "TORCHINDUCTOR_CACHE_DIR": str(out / "cache"),
            "TRITON_CACHE_DIR": str(out / "cache" / "triton"),
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
            "OMP_NUM_THREADS": "2",
        }
        # A process that ends by a signal says where.
        command = [
            sys.executable,
            "-X",
            "faulthandler",
            SCRIPT,
            "work-together",
            family,
            str(folder),
            *(["--tiny"] if tiny else []),
        ]
        with (folder / "log.txt").open("w") as log:
            processes[family] = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    for family, process in processes.items():
        try:
            status: int | None = process.wait(max(until - time.monotonic(), 0.1))
        except subprocess.TimeoutExpired:
            process.kill()
            status = None
        if not (out / family / "turns.json").is_file():
            print(f"missing: {family}: {record.how_it_ended(status, out / family / 'log.txt')}")
    for file in sorted(out.glob("*/turns.json")):
        turns = json.loads(file.read_text())
        for variant, own in turns.items():
            line = f"{file.parent.name:20s} {variant:10s} {statistics.median(own):8.3f} ms"
            base = WITHOUT.get(variant, "")
            if base in turns:
                more = sorted(one - other for one, other in zip(own, turns[base], strict=True))
                low, middle, high = (more[len(more) * part // 4] for part in (1, 2, 3))
                line += f"  more than {base} by {middle:+.3f} ms [{low:+.3f} to {high:+.3f}]"
            print(line)
