"""Measures what faults of torch.compile cost: a model with one and without, in turns, each in a process of its own.

    python lab/compiled/pairs.py record --out DIRECTORY [--seconds 500] [--only gpt_small.training,mlp.training]  # GPU
    python lab/compiled/pairs.py record --out DIRECTORY --tiny                                                  # CPU
    python lab/compiled/pairs.py flops DIRECTORY
    python lab/compiled/pairs.py report DIRECTORY [--only gpt_small.training]
    python lab/compiled/pairs.py prices RECORDINGS TOGETHER
    python lab/compiled/pairs.py together --out DIRECTORY [--seconds 400] [--only gpt_small.training]             # GPU

A family is a model, a batch and a pass; its variants are ways to run it: eager, compiled, as CUDA graphs, with one of
``PLANTED``. Each variant is a process with the hook, so that what a recording says of compilations is of this variant
alone. All of them compile at once and then wait. Then one family after the other is timed without the profiler, its
variants in turns while all others wait, and recorded. ``report`` sets what advice says of each recording against the
difference that was timed. Graphs that are captured by hand are recorded with their capture, too. Files are packed as
tar, each at most 15 MiB; what was not done in time is named.

Processes differ in the speed of their cores, by up to a third on a shared machine. ``together`` times the variants of a
family in one process, in many short turns, and so tells differences of a few percent; it records nothing. ``prices``
holds what advice says of the recordings of ``record`` to these differences, as shares of the step.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import selectors
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "lab")]
from compiled import pairs_report, together, variants  # noqa: E402
from compiled import record as recording  # noqa: E402

FAMILIES = {
    "gpt_small.training": "default eager graphs item cuts breaks mutated cpu_tensor dynamic guard whole blocks hand "
    "graphed",
    "mlp.training": "default eager graphs cuts breaks mutated hand",
    "gpt_large.training": "default eager graphs cuts mutated",
    "gpt.inference": "default eager graphs cuts breaks mutated",
    "unet.training": "default eager graphs graphed",
    "bert.training": "default eager graphs",
    "resnet.training": "default eager breaks",
    "gpt.training": "default item autotune",
}
"""By family its variants; ``default`` first, whose kernels the others find in Triton's cache."""
TINY = {"mlp.training": "default eager cuts guard", "gpt.inference": "default item breaks"}
TRACED = ("unet.training", "bert.training", "resnet.training", "mlp.training")
"""Families whose compiled variants leave the logs of TORCH_TRACE, and a trace without the hook."""
TURNS = 6
READY_SHARE = 0.6
"""Of all the time, that for compiling."""
AT_ONCE = 16


def work(family: str, variant: str, out: Path, tiny: bool) -> None:
    """Prepare the variant, say so, and do what stdin says, each line with a line of JSON as answer."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    worker = variants.Worker(family, variant, out, tiny)
    worker.prepare()
    answers.write('"ready"\n')
    for line in sys.stdin:
        answer: Any = None
        if line.strip() == "time":
            answer = worker.time()
        elif line.strip() == "record":
            answer = worker.record()
            worker.result |= answer
        elif line.strip() == "trace":
            worker.trace()
        else:
            worker.result["turns_ms"] = json.loads(line)
            (out / "result.json").write_text(json.dumps(worker.result))
        answers.write(json.dumps(answer) + "\n")


class Process:
    """A worker from outside."""

    def __init__(self, family: str, variant: str, out: Path, tiny: bool) -> None:
        self.family, self.variant, self.out = family, variant, out / family / variant
        self.out.mkdir(parents=True, exist_ok=True)
        own = self.out if variant in ("whole", "blocks") else out
        environment = {
            **os.environ,
            "TORCHINDUCTOR_CACHE_DIR": str(own / "cache"),
            "TRITON_CACHE_DIR": str(own / "cache" / "triton"),
            # Many processes compile at once: each on its own thread.
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
            # On a CPU, kernels leave no event without it.
            "TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE": "1",
            "OMP_NUM_THREADS": "2",
        }
        if family in TRACED and variant in ("default", "graphs", "breaks"):
            environment["TORCH_TRACE"] = str(self.out / "torch_trace")
        with (self.out / "log.txt").open("w") as log:
            # One that ends by a signal says where.
            command = [sys.executable, "-X", "faulthandler", __file__, "work", family, variant, str(self.out)]
            self.process = subprocess.Popen(
                [*command, *(["--tiny"] if tiny else [])],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=environment, text=True,
            )  # fmt: skip
        self.ended = False
        self.turns: list[float] = []

    @property
    def answers(self) -> IO[str]:
        assert self.process.stdout is not None
        return self.process.stdout

    def read(self, until: float) -> str | None:
        """The next line; None where the process ends or the time does."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.answers, selectors.EVENT_READ)
            if not selector.select(max(until - time.monotonic(), 0.05)):
                return None
        return self.answers.readline() or None

    def ask(self, what: str, until: float) -> Any:
        """Let it do something. Raises TimeoutError where it does not answer in time, or is gone."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(what + "\n")
            self.process.stdin.flush()
        except OSError:
            raise TimeoutError(self.how_it_ended()) from None
        line = self.read(until)
        if line is None:
            raise TimeoutError(f"no answer to {what[:20]}: {self.how_it_ended()}")
        return json.loads(line)

    def how_it_ended(self) -> str:
        """Its exit status or signal, and what it said last; one that still runs is ended."""
        status = self.process.returncode if self.stop(1) else None
        return recording.how_it_ended(status, self.out / "log.txt")

    def stop(self, seconds: float) -> bool:
        """Let it end, and its analysis; kill it after a while. Whether it ended by itself."""
        if self.process.stdin is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.close()
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return False
        return True


def record(out: Path, families: dict[str, str], tiny: bool, seconds: float) -> None:
    """Prepare all variants, time and record one family after the other, pack the files, print the table."""
    began = time.monotonic()
    until = began + seconds
    missing: dict[str, str] = {}
    pairs = [(family, variant) for family, variants in families.items() for variant in variants.split()]
    # `default` of all families first, and what compiles longest.
    pairs.sort(key=lambda pair: ("default", "autotune").index(pair[1]) if pair[1] in ("default", "autotune") else 2)
    processes = prepared(out, pairs, tiny, began + READY_SHARE * seconds, missing)
    print(f"{len(processes)} variants are ready after {time.monotonic() - began:.0f} s", flush=True)
    done = []
    for family in families:
        members = [one for one in processes if one.family == family]
        for turn in range(TURNS):
            # Each second turn runs backwards, so that a drift of the clock is no difference.
            for one in members if turn % 2 == 0 else members[::-1]:
                attempt(one, "time", until, missing)
        for one in members:
            attempt(one, "record", until, missing)
            if family in TRACED and one.variant in ("default", "graphs", "breaks"):
                attempt(one, "trace", until, missing)
            attempt(one, json.dumps(one.turns), until, missing)
            if one.process.stdin is not None:
                one.process.stdin.close()
            done.append(one)
        print(f"{family} after {time.monotonic() - began:.0f} s", flush=True)
    for one in done:
        one.stop(max(until + 20 - time.monotonic(), 0.1))
    (out / "missing.json").write_text(json.dumps(missing, indent=1))
    pack(out)
    pairs_report.report(out, [], advised=False)


def prepared(
    out: Path, pairs: list[tuple[str, str]], tiny: bool, until: float, missing: dict[str, str]
) -> list[Process]:
    """The variants that got ready in time, at most `AT_ONCE` of them compiling at once; the others are ended."""
    waiting, running, ready = list(pairs), list[Process](), list[Process]()
    at_once = 2 if tiny else AT_ONCE
    while (waiting or running) and time.monotonic() < until:
        while waiting and len(running) < at_once:
            running.append(Process(*waiting.pop(0), out, tiny))
        with selectors.DefaultSelector() as selector:
            for one in running:
                selector.register(one.answers, selectors.EVENT_READ, one)
            for key, _ in selector.select(1.0):
                one = key.data
                running.remove(one)
                if one.answers.readline().strip() == '"ready"':
                    ready.append(one)
                else:
                    missing[f"{one.family}.{one.variant}"] = one.how_it_ended()
    for one in running:
        missing[f"{one.family}.{one.variant}"] = f"not compiled in time: {one.how_it_ended()}"
    missing |= {f"{family}.{variant}": "no time was left" for family, variant in waiting}
    order = {pair: number for number, pair in enumerate(pairs)}
    return sorted(ready, key=lambda one: order[one.family, one.variant])


def attempt(one: Process, what: str, until: float, missing: dict[str, str]) -> None:
    """Let a variant do something; note why it could not."""
    if one.ended:
        return
    try:
        answer = one.ask(what, min(until, time.monotonic() + 60))
    except TimeoutError as error:
        one.ended = True
        missing[f"{one.family}.{one.variant}"] = str(error)
        return
    if what == "time":
        one.turns.append(answer)


def pack(out: Path) -> None:
    """Files of the runs as ``files_N.tar``; caches stay out, and the logs of TORCH_TRACE are one archive a variant."""
    for cache in out.rglob("cache"):
        shutil.rmtree(cache, ignore_errors=True)
    for logs in sorted(out.rglob("torch_trace")):
        if logs.is_dir():
            shutil.make_archive(str(logs), "gztar", logs)
            shutil.rmtree(logs)
    recording.pack(out)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("record")
    command.add_argument("--out", type=Path, required=True)
    command.add_argument("--only", default="")
    command.add_argument("--seconds", type=float, default=500)
    command.add_argument("--tiny", action="store_true")
    command = commands.add_parser("report")
    command.add_argument("out", type=Path)
    command.add_argument("--only", default="")
    command = commands.add_parser("flops")
    command.add_argument("out", type=Path)
    command = commands.add_parser("prices")
    command.add_argument("recordings", type=Path)
    command.add_argument("turns", type=Path)
    command = commands.add_parser("together")
    command.add_argument("--out", type=Path, required=True)
    command.add_argument("--only", default="")
    command.add_argument("--seconds", type=float, default=400)
    command.add_argument("--tiny", action="store_true")
    command = commands.add_parser("work-together")
    command.add_argument("family")
    command.add_argument("out", type=Path)
    command.add_argument("--tiny", action="store_true")
    command = commands.add_parser("work")
    command.add_argument("family")
    command.add_argument("variant")
    command.add_argument("out", type=Path)
    command.add_argument("--tiny", action="store_true")
    given = parser.parse_args()
    only = list(filter(None, getattr(given, "only", "").split(",")))
    if given.command == "work":
        work(given.family, given.variant, given.out, given.tiny)
        return
    if given.command == "work-together":
        together.work_together(given.family, given.out, given.tiny)
        return
    if given.command == "prices":
        pairs_report.prices(given.recordings, given.turns, together.WITHOUT)
        return
    if given.command == "flops":
        pairs_report.flops(given.out)
        return
    if given.command == "together":
        together.together(given.out.resolve(), only, given.tiny, given.seconds)
        return
    if given.command == "report":
        pairs_report.report(given.out, only)
        return
    families = TINY if given.tiny else FAMILIES
    record(given.out.resolve(), {name: one for name, one in families.items() if not only or name in only},
           given.tiny, given.seconds)  # fmt: skip


if __name__ == "__main__":
    main()
