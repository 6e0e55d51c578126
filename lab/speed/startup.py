"""What commands cost before their work begins, against the imports that they cannot do without.

The programs take turns, each a process of its own of the same interpreter. *The floor* imports numpy, msgspec and typer
and does nothing. The run is recorded for the demonstration, the trace has 0.2 MB. A first round, which warms the file
cache, is not counted. Time is that of the CPU (user and system), of the least disturbed round and of the median one.

    python lab/speed/startup.py --rounds 10

``--write`` puts the figures into docs/measured.md.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import statistics
import sys
import tempfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from peers import put
from process_cost import run

ROOT = Path(__file__).resolve().parents[2]
RUN = ROOT / "demo" / "recorded" / "lenet" / "fp32"
TRACE = ROOT / "tests" / "traces" / "cpu_plain.pt.trace.json.gz"
MARKS = "<!-- start -->", "<!-- end of start -->"
"""In docs/measured.md."""
FLOOR = "import numpy, msgspec, typer"
_COUNTED = """
import runpy, sys
from contextlib import redirect_stdout, suppress
with suppress(SystemExit), redirect_stdout(sys.stderr):
    runpy.run_module("tb_dlprof_plugin.cli.main", run_name="__main__")
print(sum(name.startswith("tb_dlprof_plugin") for name in sys.modules))
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds of a program's rounds, and how many modules of ours it imports."""

    name: str
    seconds: list[float]
    modules: int | None

    @property
    def best(self) -> float:
        """Of the least disturbed round (s)."""
        return min(self.seconds)

    @property
    def median(self) -> float:
        """Of the middle round (s)."""
        return statistics.median(self.seconds)


def measure(rounds: int) -> list[Cost]:
    """The cost of each program, the floor first."""
    with tempfile.TemporaryDirectory(prefix="tb_dlprof_startup_") as folder:
        ours: dict[str, list[str | Path]] = {
            "tb-dlprof --help": ["--help"],
            "tb-dlprof ops --help": ["ops", "--help"],
            "tb-dlprof ops RUN": ["ops", RUN],
            "tb-dlprof summary RUN": ["summary", RUN],
            "tb-dlprof import TRACE": ["import", TRACE, "--logdir", folder, "--force"],
        }
        commands: dict[str, list[str | Path]] = {
            FLOOR: ["-c", FLOOR],
            "python -c pass": ["-c", "pass"],
            **{name: ["-m", "tb_dlprof_plugin.cli.main", *words] for name, words in ours.items()},
            "tensorboard --help": ["-m", "tensorboard.main", "--help"],
        }
        seconds: dict[str, list[float]] = {name: [] for name in commands}
        for number in range(rounds + 1):
            for name, words in commands.items():
                ended = run([sys.executable, *words])
                if number:
                    seconds[name].append(ended.cpu_seconds)
        modules = {name: int(run([sys.executable, "-c", _COUNTED, *words]).output) for name, words in ours.items()}
    return [Cost(name, each, modules.get(name)) for name, each in seconds.items()]


def table(costs: list[Cost]) -> list[str]:
    """The figures and what they were taken with, in Markdown."""
    floor = costs[0]
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("typer", "numpy", "msgspec", "tensorboard"))
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
    machine = f"{os.cpu_count()} cores at a load of {os.getloadavg()[0]:.0f}, Python {platform.python_version()}"
    lines = [
        f"`lab/speed/startup.py --write`, {date}, {machine}, {versions}.",
        f"CPU time of the whole process, least of {len(floor.seconds)} in turns:",
        "",
        "| | CPU time | of the first row | modules of ours |",
        "|---|--:|--:|--:|",
    ]
    for cost in costs:
        modules = "" if cost.modules is None else f"{cost.modules}"
        lines.append(f"| `{cost.name}` | {cost.best:.2f} s | {cost.best / floor.best:.2f} | {modules} |")
    return lines


def main(argv: list[str] | None = None) -> None:
    """Prints the table, and writes it where that is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--write", action="store_true", help="put the figures into docs/measured.md")
    args = parser.parse_args(argv)
    costs = measure(args.rounds)
    lines = table(costs)
    print("\n".join(lines))
    for cost in costs[1:]:
        print(f"{cost.name}: {cost.median / costs[0].median:.2f} of the floor by medians")
    if args.write:
        put(ROOT / "docs" / "measured.md", MARKS, lines)


if __name__ == "__main__":
    main()
