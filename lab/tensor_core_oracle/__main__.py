"""Do the verdicts on kernels agree with the hardware's counters? Records workloads on a GPU, matches them, scores.

python -m lab.tensor_core_oracle record DIRECTORY   # needs an NVIDIA GPU and ncu
python -m lab.tensor_core_oracle match DIRECTORY RESULT  # the same, done
python -m lab.tensor_core_oracle score [RESULT]     # needs neither
"""

from __future__ import annotations

import argparse
from pathlib import Path


def main(argv: list[str] | None = None) -> int:
    """Run one command; the exit code is 1 where a verdict is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.tensor_core_oracle", description=(__doc__ or "").splitlines()[0]
    )
    commands = parser.add_subparsers(dest="command", required=True)
    record = commands.add_parser("record", help="run the workloads under torch.profiler and under ncu")
    record.add_argument("directory", type=Path)
    record.add_argument("--groups", nargs="+", help="default: all")
    record.add_argument("--seconds", type=float, default=3600, help="stop counting after about this long")
    match = commands.add_parser("match", help="join what was recorded")
    match.add_argument("directory", type=Path)
    match.add_argument("result", type=Path)
    match.add_argument("--groups", nargs="+", help="default: all that were recorded")
    score = commands.add_parser("score", help="hold the verdicts to the counters")
    score.add_argument("results", nargs="*", type=Path, help="default: the recordings kept with the tests")
    arguments = parser.parse_args(argv)
    if arguments.command == "record":
        return _record(arguments.groups, arguments.directory, arguments.seconds)
    if arguments.command == "match":
        return _match(arguments.directory, arguments.result, arguments.groups)
    return _score(arguments.results)


def _record(groups: list[str] | None, directory: Path, seconds: float) -> int:
    from .record import record
    from .workloads import GROUPS

    record(groups or list(GROUPS), directory, seconds)
    return 0


def _match(directory: Path, path: Path, groups: list[str] | None) -> int:
    from .match import match
    from .result import Workload, write
    from .workloads import WORKLOADS

    known = {w.name: Workload(w.name, w.group, w.tf32, w.model, w.precision) for w in WORKLOADS}
    result = match(directory, known.__getitem__, print, groups)
    write(result, path)
    print(f"{path}: {len(result.rows)} rows, {len(result.workloads)} workloads, {path.stat().st_size} bytes")
    return 0


def _score(paths: list[Path]) -> int:
    from .report import report
    from .result import KEPT, read

    wrong = 0
    seen: frozenset[str] = frozenset()
    for path in paths or KEPT:
        result = read(path)
        wrong += report(path.name, result, seen)
        seen |= {row.name for row in result.rows}
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
