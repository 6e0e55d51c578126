"""``tb-dlprof try`` with and without processes that wait with their imports done, in turns.

    python -m lab.trying.prepared_tries [--turns 2] [--budget 60] [--deadline 500] [--out FOLDER] [SCRIPT ARGUMENT ...]

A row for each: seconds until the script's first step, from there to the end, how many sets and remedies were measured,
the best set, and whether it was confirmed in fresh processes. The script is demo/train.py where none is named.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from .try_command import try_result

_MORE_S = 120.0
_PROGRAM = "from tb_dlprof_plugin.cli.main import main; main()"
_WITHOUT = f"from tb_dlprof_plugin.trial.variant import Laboratory; Laboratory.prepare = lambda self: None; {_PROGRAM}"
_DEMO = ("demo/train.py", "--model", "mlp", "--quick", "--device", "cpu", "--timed-steps", "1000000", "--logdir")


def tried(command: list[str], budget_s: float, *, waits: bool) -> dict[str, Any]:
    """The result, with ``wall_s``."""
    program = ["-c", _PROGRAM if waits else _WITHOUT]
    began_s = time.monotonic()
    arguments = ["--record", "none", "--budget", f"{budget_s:.0f}s", *command]
    return {**try_result(arguments, budget_s + _MORE_S, program=program), "wall_s": time.monotonic() - began_s}


def row(found: dict[str, Any], *, waits: bool) -> str:
    """Of the table."""
    kind = "waiting" if waits else "without"
    if "error" in found:
        return f"{kind} {found['wall_s']:7.1f}  {found['error']}"
    measured = sum(one["gain_percent"] is not None for one in (*found["rows"], *found["sets"]))
    best, end_s = found["best"], found["seconds"] - found["first_step_s"]
    said = f"{'+'.join(best['remedies'])} {best['gain_percent']:.1f} %" if best["remedies"] else "nothing"
    confirmed = "confirmed" if best["remedies"] and best["confirmed"] else ""
    return f"{kind} {found['wall_s']:7.1f} {found['first_step_s']:11.1f} {end_s:8.1f} {measured:9}  {said} {confirmed}"


def main() -> None:
    """See the module's docstring."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--turns", type=int, default=2)
    options.add_argument("--budget", type=float, default=60.0, help="seconds of each")
    options.add_argument("--deadline", type=float, default=500.0, help="seconds after which none begins")
    options.add_argument("--out", type=Path, help="folder for the results")
    options.add_argument("command", nargs=argparse.REMAINDER)
    chosen = options.parse_args()
    began_s = time.monotonic()
    kept: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as logs:
        command = chosen.command or [*_DEMO, logs]
        print(f"{command[0]}\n           wall  first step   to end  measured  best")
        for number in range(2 * chosen.turns):
            if time.monotonic() - began_s > chosen.deadline:
                break
            # One first, then the other one.
            waits = number % 4 in (0, 3)
            found = tried(command, chosen.budget, waits=waits)
            kept.append({"waits": waits, **found})
            print(row(found, waits=waits), flush=True)
    if chosen.out is not None:
        chosen.out.mkdir(parents=True, exist_ok=True)
        (chosen.out / "prepared_tries.json").write_text(json.dumps(kept))
    sys.exit(1 if any("error" in one for one in kept) else 0)


if __name__ == "__main__":
    main()
