"""Forecasts the step with 0 to 8 DataLoader workers, then measures it.

    python -m lab.loader.forecasts [--out DIRECTORY] [--held-out SET] [--only NAME ...] [--rounds 2] [--deadline S]

Each subject is recorded once, with one number of workers; the forecast is written to a file before anything is
measured. Subjects of a held-out set, such as "first", run only where it is named. Prints per subject the errors,
whether the measured step is in the interval, and what the advised number of workers loses against the best; then the
same of all. "as recorded" is the recorded step over the one measured later with the same number of workers: so much the
machine itself changed. Pinned memory needs a GPU. Each number of workers is measured in so many rounds, of which the
shortest step counts. With --again the recordings and measured steps that DIRECTORY holds are compared with forecasts
of today, and nothing runs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tb_dlprof_plugin import read_profiles
from tb_dlprof_plugin.metrics.loader.batches import measured_step
from tb_dlprof_plugin.metrics.loader.forecast import loader_forecast, why_no_forecast
from tb_dlprof_plugin.profile_view import ProfileView

from .subjects import SUBJECTS, Subject

_COUNTS = range(9)


def main() -> None:
    """Of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--held-out", metavar="SET", default="")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--deadline", type=float, default=3600.0)
    parser.add_argument("--again", action="store_true")
    given = parser.parse_args()
    out = given.out or Path(tempfile.mkdtemp(prefix="loader_forecasts_"))
    out.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + given.deadline
    rows = []
    for number, subject in enumerate(SUBJECTS):
        if subject.held_out != given.held_out or (given.only and subject.name not in given.only):
            continue
        if time.monotonic() > until:
            break
        try:
            row = _again(number, out) if given.again else _row(number, out, given.rounds)
            rows += [] if row is None else [row]
        except subprocess.CalledProcessError as error:
            print(f"{subject.name}: failed: {error.stderr[-500:]}", flush=True)
        except RuntimeError as error:
            print(f"{subject.name}: no forecast: {error}", flush=True)
    print(f"\n{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; results in {out}")
    if not rows:
        return
    errors = [error for row in rows for error in row["errors"].values()]
    inside = [hit for row in rows for hit in row["inside"].values()]
    losses = [row["loss"] for row in rows]
    print(
        f"{len(rows)} subjects, {len(errors)} steps: median error {100 * statistics.median(errors):.1f} %, "
        f"{100 * sum(error > 0.1 for error in errors) / len(errors):.0f} % of them above 10 %, "
        f"in the interval {100 * sum(inside) / len(inside):.0f} %, loss of the advised number: median "
        f"{100 * statistics.median(losses):.1f} %, worst {100 * max(losses):.1f} %"
    )


def _row(number: int, out: Path, rounds: int) -> dict[str, Any]:
    subject = SUBJECTS[number]
    folder = out / f"{number}_{time.time_ns()}"
    _run("record", number, str(folder))
    forecast = _forecast(folder)
    (out / f"{number}_forecast.json").write_text(json.dumps(forecast))
    measured = {
        int(count): ms
        for count, ms in json.loads(_run("measure", number, ",".join(map(str, _COUNTS)), str(rounds))).items()
    }
    row = _compared(subject, forecast, measured)
    (out / f"{number}_row.json").write_text(json.dumps(row))
    return row


def _again(number: int, out: Path) -> dict[str, Any] | None:
    """The forecast of an earlier recording, with the steps that were measured then."""
    known = out / f"{number}_row.json"
    if not known.exists():
        return None
    measured = {int(count): ms for count, ms in json.loads(known.read_text())["measured"].items()}
    return _compared(SUBJECTS[number], _forecast(max(out.glob(f"{number}_[0-9]*"))), measured)


def _compared(subject: Subject, forecast: dict[str, Any], measured: dict[int, float]) -> dict[str, Any]:
    steps = {int(count): step for count, step in forecast["steps"].items()}
    errors = {count: abs(steps[count][0] / measured[count] - 1) for count in measured}
    inside = {count: steps[count][1] <= measured[count] <= steps[count][2] for count in measured}
    advised = min(forecast["best"], max(_COUNTS))
    loss = measured[advised] / min(measured.values()) - 1
    recorded = forecast["recorded"]
    changed = "" if recorded is None else f", as recorded {recorded / measured[subject.recorded]:.2f}"
    cells = " ".join(
        f"{steps[count][0]:6.1f}/{measured[count]:6.1f}{' ' if inside[count] else '*'}" for count in measured
    )
    print(
        f"{subject.name:34} from {subject.recorded}: {cells} median {100 * statistics.median(errors.values()):5.1f} %, "
        f"advised {advised} loses {100 * loss:.1f} %{changed}",
        flush=True,
    )
    return {
        "name": subject.name, "measured": measured, "forecast": forecast, "errors": errors, "inside": inside,
        "loss": loss,
    }  # fmt: skip


def _forecast(folder: Path) -> dict[str, Any]:
    (found,) = read_profiles(folder)
    view = ProfileView(found.profile)
    forecast, recorded_ns = loader_forecast(view), measured_step(view)
    if forecast is None:
        raise RuntimeError(why_no_forecast(view))
    ms = {one.workers: (one.ns / 1e6, one.low_ns / 1e6, one.high_ns / 1e6) for one in forecast.steps}
    return {"steps": {count: ms[count] for count in _COUNTS}, "best": forecast.best.workers,
            "recorded": None if recorded_ns is None else recorded_ns / 1e6}  # fmt: skip


def _run(what: str, number: int, *more: str) -> str:
    command = [sys.executable, "-m", "lab.loader.process", what, str(number), *more]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    return done.stdout


if __name__ == "__main__":
    main()
