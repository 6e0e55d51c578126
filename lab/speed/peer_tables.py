"""Are our figures those of other profilers, where others are right? One table per peer: ours, theirs, why they differ.

    python lab/speed/peer_tables.py --tracelens TraceLens/tests/traces/h100 \\
        --hta HolisticTraceAnalysis/tests/data/ns_resolution_trace/*.json.gz \\
        --torch-tb-profiler kineto/tb_plugin/samples/resnet50_num_workers_0/worker0.1623143089861.pt.trace.json.gz

The traces are those that the projects publish for their own tests; get them with ``git clone``:

    TraceLens           https://github.com/AMD-AGI/TraceLens, tests/traces/h100: traces, and in NAME_perf_report_csvs
                        with each the tables that TraceLens makes of it (here also accepted: expected_csvs)
    HTA                 https://github.com/facebookresearch/HolisticTraceAnalysis, tests/data
    torch-tb-profiler   https://github.com/pytorch/kineto, tb_plugin/samples (at or before release 0.4.3)

Of TraceLens the published tables are read; HTA and torch-tb-profiler run on the files, in an environment of their own
that the first run makes. Any other trace can be given to them too.

A figure is *equal* within 1e-6 relative. A difference is *explained* where our data, computed by the peer's rule, gives
the peer's figure; the rules stand at the head of ``compare_tracelens.py``, ``compare_hta.py`` and
``compare_torch_tb_profiler.py``. Everything else DIFFERS, and the script ends with 1.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import compare_hta
import compare_torch_tb_profiler
import compare_tracelens
from big_trace import read
from comparison_rows import DIFFERS, EQUAL, EXPLAINED, Row, table
from peer_environment import PROGRAMS, peer_settings, peer_versions, peers_python

from tb_dlprof_plugin.analysis import analyze_trace
from tb_dlprof_plugin.profile_view import ProfileView

Tables = Iterator[tuple[str, list[Row]]]


def tracelens(folder: Path) -> Iterator[tuple[Path, Tables]]:
    """Each trace of a folder that has published tables, and its comparison."""
    for trace in sorted([*folder.glob("*.json"), *folder.glob("*.json.gz")]):
        name = trace.name.removesuffix(".gz").removesuffix(".json")
        for tables in (folder / f"{name}_perf_report_csvs", folder / "expected_csvs"):
            if tables.is_dir():
                yield trace, compare_tracelens.compare(read(trace), tables, ProfileView(analyze_trace(trace)))
                break


def hta(trace: Path, python: Path, keep: Path | None) -> Tables:
    """HTA's comparison of a trace."""
    return compare_hta.compare(read(trace), ProfileView(analyze_trace(trace)), _printed(python, "hta", trace, keep))


def torch_tb_profiler(trace: Path, python: Path, keep: Path | None) -> Tables:
    """torch-tb-profiler's comparison of a trace."""
    theirs = _printed(python, "torch_tb_profiler", trace, keep)
    return compare_torch_tb_profiler.compare(read(trace), ProfileView(analyze_trace(trace)), theirs)


def _printed(python: Path, peer: str, trace: Path, keep: Path | None) -> Any:
    done = subprocess.run(
        [python, PROGRAMS / f"tables_{peer}.py", trace.resolve()], capture_output=True, text=True, env=peer_settings()
    )
    if done.returncode:
        raise PeerFailed(done.stderr.strip().rsplit("\n", 1)[-1])
    figures = json.loads(done.stdout)
    if keep is not None:
        (keep / f"{trace.name.split('.', 1)[0]}.{peer}.json").write_text(json.dumps(figures, indent=1) + "\n")
    return figures


class PeerFailed(Exception):
    """The peer could not read the trace; the message is its own."""


class Report:
    """Prints comparisons and counts verdicts."""

    def __init__(self, everything: bool) -> None:
        self.everything = everything
        self.counts = dict.fromkeys((EQUAL, EXPLAINED, DIFFERS), 0)

    def add(self, peer: str, trace: Path, tables: Tables) -> None:
        """Prints the tables of one trace."""
        print(f"\n== {peer}: {trace.parent.name}/{trace.name}")
        for name, rows in tables:
            print("\n".join(table(name, rows, everything=self.everything)), flush=True)
            for row in rows:
                self.counts[row.verdict] += 1


def main(argv: list[str] | None = None) -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(
        description="Hold our figures against those of other profilers.",
        epilog=(__doc__ or "").split("\n\n", 1)[1],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--tracelens", nargs="+", type=Path, default=[], metavar="DIR", help="traces with their tables")
    parser.add_argument("--hta", nargs="+", type=Path, default=[], metavar="TRACE")
    parser.add_argument("--torch-tb-profiler", nargs="+", type=Path, default=[], metavar="TRACE")
    parser.add_argument(
        "--peers-python", type=Path, help="a Python with the peers; else one is made in lab/speed/.peers"
    )
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="write what HTA and torch-tb-profiler compute into DIR"
    )
    parser.add_argument("--all", action="store_true", help="print equal rows too")
    args = parser.parse_args(argv)
    if not (args.tracelens or args.hta or args.torch_tb_profiler):
        parser.error("name at least one trace: see --help for where to get them")

    report = Report(args.all)
    for folder in args.tracelens:
        for trace, tables in tracelens(folder):
            report.add("TraceLens, published tables", trace, tables)
    if args.hta or args.torch_tb_profiler:
        python = peers_python(args.peers_python)
        versions = peer_versions(python)
        runs = [(f"HTA {versions['HolisticTraceAnalysis']}", hta, trace) for trace in args.hta]
        runs += [
            (f"torch-tb-profiler {versions['torch-tb-profiler']}", torch_tb_profiler, trace)
            for trace in args.torch_tb_profiler
        ]
        for peer, compare, trace in runs:
            try:
                report.add(peer, trace, compare(trace, python, args.keep))
            except PeerFailed as error:
                print(f"\n== {peer}: {trace.name} cannot be compared, {peer} fails on it: {error}")
    total = sum(report.counts.values())
    print(f"\n{total} figures: " + ", ".join(f"{count} {verdict}" for verdict, count in report.counts.items()))
    sys.exit(1 if report.counts[DIFFERS] or not total else 0)


if __name__ == "__main__":
    main()
