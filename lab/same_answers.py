"""Whether every page, report and command answers the same about recorded runs before and after a change.

    python lab/same_answers.py record --out before.answers
    PYTHONPATH=OTHER_TREE python lab/same_answers.py record --out after.answers
    python lab/same_answers.py compare before.answers after.answers --words words.txt

The recordings are those of this script's repository, so that both are asked about the same runs; the code under test is
what ``import tb_dlprof_plugin`` finds, and its ``pyproject.toml`` names the entry points. ``record`` asks the plugin's
routes in this process, the ``tb-dlprof`` command in every format, the reports as files, the names of the Python package
and the answers inside an exported file; `recorded_answers` has the questions and what is left out. What depends on the
place, the version or the time of recording is replaced by a word for it.

``compare`` ends with 1 where anything differs. ``--words`` names a file of replacements, ``old => new`` in a line, that
are applied to the first file: names and sentences that were meant to change.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; its exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="write the answers of the tree that Python imports")
    recording.add_argument("--out", type=Path, required=True, metavar="FILE")
    recording.add_argument("--quick", action="store_true", help="12 runs and 7 traces, one or two of each kind")
    recording.add_argument("--data", type=Path, default=ROOT, help="repository whose recordings are read")
    recording.add_argument("--logdirs", type=Path, nargs="*", default=[], help="more recorded runs")
    recording.add_argument("--traces", type=Path, nargs="*", default=[], help="more traces: directories")
    recording.add_argument("--only", default="", metavar="TEXT", help="only what has this in its path")
    comparing = commands.add_parser("compare", help="show what differs between two files")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    comparing.add_argument("--words", type=Path, metavar="FILE", help="replacements in the first file: old => new")
    comparing.add_argument("--only", default="", metavar="TEXT", help="only what has this in its key")
    chosen = parser.parse_args(arguments)
    return _record(chosen) if chosen.command == "record" else _compare(chosen)


def _record(chosen: argparse.Namespace) -> int:
    # Comparing needs nothing of the tree under test.
    from recorded_answers import snapshot
    from recorded_answers.ask_commands import EXCLUDED
    from recorded_answers.product import package_directory
    from recorded_answers.record import record
    from recorded_answers.recordings import parts

    places = [[path.resolve() for path in paths] for paths in (chosen.logdirs, chosen.traces)]
    found = [part for part in parts(chosen.data.resolve(), chosen.quick, *places) if chosen.only in part.subject]
    asked = sum(len(part.names) for part in found)
    print(f"asking {package_directory()} about {asked} runs and traces", file=sys.stderr)
    answers = record(found)
    snapshot.write(chosen.out, answers)
    left_out = "; ".join(f"{name}: {why}" for name, why in EXCLUDED.items())
    print(
        f"{len(answers):,} answers in {chosen.out} ({chosen.out.stat().st_size / 1e6:.1f} MB). Not asked: {left_out}."
    )
    return 0


def _compare(chosen: argparse.Namespace) -> int:
    from recorded_answers import snapshot
    from recorded_answers.differences import read_words, report

    words = read_words(chosen.words) if chosen.words else ()
    before, after = (
        {key: one for key, one in snapshot.read(path).items() if chosen.only in key}
        for path in (chosen.before, chosen.after)
    )
    lines, differs = report(before, after, words)
    print("\n".join(lines))
    return int(differs)


if __name__ == "__main__":
    raise SystemExit(main())
