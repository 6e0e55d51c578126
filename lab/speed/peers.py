"""Time and memory of our whole analysis against other profilers' loading, on the same files, in the same run.

Compared, each as a whole process from start to end:

    ours        tb-dlprof import (or analyze): a trace file in, an event file out
    ttp         torch-tb-profiler's loading of the file into what its pages show (its plugin's RunLoader)
    hta         HTA's loading of the file into a DataFrame, without any analysis
    bare        one typed msgspec decode of the file (bare_decode.py), without any analysis
    json        json.load of the file

    python lab/speed/peers.py tests/traces/*.json.gz --sizes 10,50,400

Each TRACE is measured as it is; of the first one, traces of the given sizes are made besides (``big_trace.py``). The
programs alternate, and so does which goes first. The time is that of the CPU in the repeat that took least, the least
disturbed one (the median by the clock is given with it); how memory is measured says ``process_cost.py``. The peers
live in an environment of their own, which the first run makes. ``--write`` puts the figures into docs/measured.md.

A figure that misses its target is a MISS; the script ends with 0 all the same, unless with ``--strict``.
"""

from __future__ import annotations

import argparse
import datetime
import gzip
import itertools
import json
import math
import os
import platform
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path

from peer_environment import PROGRAMS, peer_settings, peer_versions, peers_python
from process_cost import CommandFailed, run

HERE = Path(__file__).resolve().parent
MEGABYTE = 10**6
LINEAR_SIZES = (10.0, 30.0, 100.0, 300.0, 1000.0)

FASTER_THAN_TTP = 10.0
SHARE_OF_TTP_MEMORY = 0.25
FASTER_THAN_HTA = 4.0
TIMES_BARE, START_S = 2.0, 0.15
KILOBYTES_PER_EVENT = 1.0
LARGE_MEGABYTES = 350.0
"""Memory per event is held to its target from this size on: below, the interpreter itself outweighs the events."""
MARKS = "<!-- peers -->", "<!-- end of peers -->"
"""In docs/measured.md."""
GROWTH = 1.1
"""Time may grow with at most this power of the number of events."""


@dataclass(frozen=True, slots=True)
class Program:
    """What is measured: a name, and its command for a trace file and an empty folder."""

    name: str
    title: str
    command: Callable[[Path, Path], list[str | Path]]


@dataclass(slots=True)
class Cost:
    """What a program cost on a file; no seconds where it failed, and why."""

    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    peak_bytes: int = 0
    failed: str = ""

    @property
    def best(self) -> float:
        """CPU time of the least disturbed run (s)."""
        return min(self.cpu_seconds)

    @property
    def median(self) -> float:
        """The middle run by the clock (s)."""
        return statistics.median(self.seconds)


@dataclass(slots=True)
class Measured:
    """A file and what each program cost on it, by the program's name."""

    file: str
    json_bytes: int
    file_bytes: int
    events: int
    costs: dict[str, Cost]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A figure compared with its target."""

    text: str
    met: bool


def programs(peers: Path, ours: list[str | Path]) -> list[Program]:
    """All that is compared; ours first."""
    python = Path(sys.executable)
    versions = peer_versions(peers)

    def into(folder: Path, trace: Path) -> Path:
        # The plugin reads all traces of a directory, by their names.
        suffix = ".gz" if trace.suffix == ".gz" else ""
        (folder / f"worker.pt.trace.json{suffix}").symlink_to(trace.resolve())
        return folder

    return [
        Program("ours", f"tb-dlprof {ours[1]}", lambda trace, folder: [*ours, trace, "--logdir", folder]),
        Program(
            "ttp",
            f"torch-tb-profiler {versions['torch-tb-profiler']}",
            lambda trace, folder: [peers, PROGRAMS / "load_torch_tb_profiler.py", into(folder, trace)],
        ),
        Program(
            "hta",
            f"HTA {versions['HolisticTraceAnalysis']}, loading",
            lambda trace, folder: [peers, PROGRAMS / "load_hta.py", trace.resolve()],
        ),
        Program("bare", "bare msgspec decode", lambda trace, folder: [python, HERE / "bare_decode.py", trace]),
        Program("json", "json.load", lambda trace, folder: [python, PROGRAMS / "load_json.py", trace]),
    ]


def our_command() -> list[str | Path]:
    """``tb-dlprof import``, or ``analyze`` where this version has no ``import``."""
    script = Path(sys.executable).with_name("tb-dlprof")
    if not script.exists():
        sys.exit("tb_dlprof_plugin is not installed here: run `pip install -e .` in the repository first.")
    for name in ("import", "analyze"):
        try:
            run([script, name, "--help"])
        except CommandFailed:
            continue
        return [script, name]
    sys.exit(f"{script} has no command that reads a trace.")


def measure(trace: Path, compared: list[Program], repeats: int, json_bytes: int | None = None) -> Measured:
    """Runs every program on a file: once watched, then ``repeats`` times by the clock, in turns."""
    events = int(run([sys.executable, HERE / "bare_decode.py", trace]).output)
    costs = {program.name: Cost() for program in compared}
    for number in range(repeats + 1):
        turn = number % len(compared)
        for program in compared[turn:] + compared[:turn]:
            cost = costs[program.name]
            if cost.failed:
                continue
            try:
                with tempfile.TemporaryDirectory(prefix="tb_dlprof_peers_") as folder:
                    ended = run(program.command(trace, Path(folder)), peer_settings(), watch=number == 0)
            except CommandFailed as error:
                cost.failed = str(error)
                continue
            cost.peak_bytes = max(cost.peak_bytes, ended.peak_bytes)
            if number:
                cost.seconds.append(ended.seconds)
                cost.cpu_seconds.append(ended.cpu_seconds)
    size = trace.stat().st_size
    return Measured(trace.name, json_bytes or size, size, events, costs)


def json_size(trace: Path) -> int:
    """Bytes of a trace's JSON, gzip or not."""
    if trace.suffix != ".gz":
        return trace.stat().st_size
    with gzip.open(trace) as stream:
        return sum(map(len, iter(lambda: stream.read(MEGABYTE), b"")))


def verdicts(measured: Measured) -> list[Verdict]:
    """The file's figures against the targets; a program that failed has none."""
    costs = {name: cost for name, cost in measured.costs.items() if cost.seconds}
    ours = costs.get("ours")
    if ours is None:
        return [Verdict("our analysis failed", False)]
    result = []

    def hold(text: str, value: float, met: bool) -> None:
        result.append(Verdict(text.format(value), met))

    if "ttp" in costs:
        times, share = costs["ttp"].best / ours.best, ours.peak_bytes / costs["ttp"].peak_bytes
        hold(
            f"{{:.1f}} times as fast as torch-tb-profiler (at least {FASTER_THAN_TTP:g})",
            times,
            times >= FASTER_THAN_TTP,
        )
        hold(
            f"{{:.2f}} of torch-tb-profiler's memory (at most {SHARE_OF_TTP_MEMORY:g})",
            share,
            share <= SHARE_OF_TTP_MEMORY,
        )
    if "hta" in costs:
        times = costs["hta"].best / ours.best
        hold(f"{{:.1f}} times as fast as HTA's loading (at least {FASTER_THAN_HTA:g})", times, times >= FASTER_THAN_HTA)
    if "bare" in costs:
        most, times = TIMES_BARE * costs["bare"].best + START_S, ours.best / costs["bare"].best
        text = f"{{:.2f}} times the time of a bare decode (at most {TIMES_BARE:g} and {START_S:g} s)"
        hold(text, times, ours.best <= most)
    if measured.json_bytes >= LARGE_MEGABYTES * MEGABYTE:
        each = ours.peak_bytes / measured.events / 1000
        hold(f"{{:.2f}} KB of memory an event (at most {KILOBYTES_PER_EVENT:g})", each, each <= KILOBYTES_PER_EVENT)
    return result


def growth(points: Iterable[tuple[int, float]]) -> list[float]:
    """With which power of the events the time grows, from each (events, seconds) to the next: 1 is linear."""
    points = sorted(points)
    return [
        math.log(seconds / seconds_before) / math.log(events / events_before)
        for (events_before, seconds_before), (events, seconds) in itertools.pairwise(points)
    ]


def linearity(measured: list[Measured]) -> list[Verdict]:
    """Whether our time grows linearly over the files."""
    powers = growth((file.events, file.costs["ours"].best) for file in measured)
    worst = max(powers)
    return [
        Verdict(f"time grows with at most the power {worst:.2f} of the events (at most {GROWTH:g})", worst <= GROWTH)
    ]


def describe(measured: Measured, compared: list[Program]) -> list[str]:
    """The table of a file."""
    ours = measured.costs["ours"]
    stored = "" if measured.file_bytes == measured.json_bytes else f" ({measured.file_bytes / MEGABYTE:.1f} MB gzip)"
    lines = [
        "",
        f"{measured.file}: {measured.json_bytes / MEGABYTE:.1f} MB of JSON{stored}, {measured.events:,} events",
        f"  {'':28}{'CPU s':>9}{'median s':>10}{'MB':>8}{'KB/event':>10}{'time':>8}{'memory':>8}  (ours = 1)",
    ]
    for program in compared:
        cost = measured.costs[program.name]
        if cost.failed:
            lines.append(f"  {program.title:28}  failed: {cost.failed.strip().splitlines()[-1][:120]}")
            continue
        lines.append(
            f"  {program.title:28}{cost.best:9.2f}{cost.median:10.2f}{cost.peak_bytes / MEGABYTE:8.0f}"
            f"{cost.peak_bytes / measured.events / 1000:10.2f}"
            + (f"{cost.best / ours.best:8.2f}{cost.peak_bytes / ours.peak_bytes:8.2f}" if ours.seconds else "")
        )
    return lines


def put(page: Path, marks: tuple[str, str], lines: list[str]) -> None:
    """Puts lines between the marks of a page."""
    begin, end = marks
    before, _, rest = page.read_text().partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        sys.exit(f"{page} lacks the lines {begin} and {end}")
    page.write_text(f"{before}{begin}\n" + "\n".join(lines) + f"\n{end}{after}")


def write(page: Path, system: dict[str, str], files: list[Measured], compared: list[Program]) -> None:
    """Puts the figures between the page's marks."""
    date = system["date"].partition(" ")[0]
    named = ", ".join(f"{name} {system[name]}" for name in ("pandas", "numpy", "msgspec"))
    cpus = system["machine"].partition(", Linux")[0]
    head = [f"{one.json_bytes / MEGABYTE:.0f} MB" for one in files]
    lines = [
        f"`lab/speed/peers.py --write`, {date}, {cpus}, Python {system['python']}, {named}.",
        "CPU time of the whole process and peak memory, from a trace's JSON of so many MB:",
        "",
        f"| | {' | '.join(head)} |",
        f"|---|{'--:|' * len(head)}",
    ]
    for program in compared:
        costs = [one.costs[program.name] for one in files]
        cells = [
            "failed" if cost.failed else f"{cost.best:.2f} s, {cost.peak_bytes / MEGABYTE:.0f} MB" for cost in costs
        ]
        lines.append(f"| {program.title} | {' | '.join(cells)} |")
    put(page, MARKS, lines)


def machine(peers: Path) -> dict[str, str]:
    """What the figures were taken on and with."""
    model = platform.processor()
    info = Path("/proc/cpuinfo")
    if info.exists():
        named = [
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        model = named[0] if named else model
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": f"{os.cpu_count()} cores, {model or 'unknown CPU'}, {platform.platform()}",
        "load": " ".join(f"{load:.2f}" for load in os.getloadavg()),
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in ("tb_dlprof_plugin", "msgspec")},
        **peer_versions(peers),
    }


def main(argv: list[str] | None = None) -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description="Our analysis against other profilers' loading: time and memory.")
    parser.add_argument("traces", nargs="+", type=Path, metavar="TRACE", help="*.pt.trace.json[.gz] of a GPU run")
    parser.add_argument("--sizes", default="10,50,400", help="MB of the traces to make of the first; '' for none")
    parser.add_argument("--only-sizes", action="store_true", help="leave out the traces as they are")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--linear", action="store_true", help="ours alone on 10 MB to 1 GB as well")
    parser.add_argument(
        "--peers-python", type=Path, help="a Python with the peers; else one is made in lab/speed/.peers"
    )
    parser.add_argument("--strict", action="store_true", help="end with 1 where a target is missed")
    parser.add_argument("--write", action="store_true", help="put the figures into docs/measured.md")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    args = parser.parse_args(argv)

    peers = peers_python(args.peers_python)
    compared = programs(peers, our_command())
    system = machine(peers)
    for name, value in system.items():
        print(f"{name}: {value}")
    files: list[Measured] = []
    held: list[Verdict] = []

    def report(lines: list[str], found: list[Verdict]) -> None:
        held.extend(found)
        print("\n".join(lines + [f"  {'PASS' if one.met else 'MISS'}  {one.text}" for one in found]), flush=True)

    with tempfile.TemporaryDirectory(prefix="tb_dlprof_big_") as folder:

        def made(megabytes: float) -> Path:
            path = Path(folder) / f"{args.traces[0].name.split('.')[0]}_{megabytes:g}MB.pt.trace.json"
            if not path.exists():
                # In a process of its own: a child's peak memory counts from the size of the process that starts it.
                run([sys.executable, HERE / "big_trace.py", args.traces[0], path, "--megabytes", str(megabytes)])
            return path

        for trace in [] if args.only_sizes else args.traces:
            files.append(measure(trace, compared, args.repeats, json_size(trace)))
            report(describe(files[-1], compared), verdicts(files[-1]))
        for megabytes in map(float, filter(None, args.sizes.split(","))):
            files.append(measure(made(megabytes), compared, args.repeats))
            report(describe(files[-1], compared), verdicts(files[-1]))
        if args.linear:
            line = [measure(made(megabytes), compared[:1], args.repeats) for megabytes in LINEAR_SIZES]
            files += line
            report([text for file in line for text in describe(file, compared[:1])], linearity(line))

    if args.write:
        write(HERE.parents[1] / "docs" / "measured.md", system, files, compared)
    if args.json:
        text = json.dumps({"system": system, "files": [asdict(f) for f in files], "held": [asdict(v) for v in held]})
        args.json.write_text(text)
    failed = [cost for file in files for cost in file.costs.values() if cost.failed]
    missed = sum(not one.met for one in held)
    print(f"\n{len(held) - missed} of {len(held)} targets met")
    sys.exit(1 if failed or (args.strict and missed) else 0)


if __name__ == "__main__":
    main()
