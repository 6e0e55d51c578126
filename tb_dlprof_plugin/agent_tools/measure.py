"""The tool that runs code: `tb-dlprof try` on a command, in the background, one at a time."""

from __future__ import annotations

import contextlib
import shlex
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

from tb_dlprof_plugin.agent_tools.reply import CannotSay, Figure, Reply, ToolFailure, estimated, fitted
from tb_dlprof_plugin.model.trial_result import BestSet, TrialResult, TriedRemedy, decode_trial
from tb_dlprof_plugin.pages.tried import headline

_LONGEST_ERROR = 2_000


class Measure:
    """Jobs of `tb-dlprof try`, in the server's working directory."""

    def __init__(self) -> None:
        self._jobs: dict[str, subprocess.Popen[str]] = {}
        self._results: dict[str, tuple[int, str, str]] = {}
        self._lock = threading.Lock()

    def measure(self, command: str = "", remedies: Sequence[str] = (), budget_s: int = 120, job: str = "") -> Reply:
        """Measure remedies on a training script, which is run several times; what it writes is thrown away.

        Without ``job`` it starts and answers at once with the job's name; with it, it answers with its state, and its
        result once it is there.

        Args:
            command: the script with its arguments, such as "train.py --epochs 1".
            remedies: names, as findings have them; all that fit by default.
            budget_s: seconds for all measurements.
            job: the name of a job.
        """
        if job:
            return self._state(job)
        arguments = shlex.split(command)
        if not arguments or arguments[0].startswith("-"):
            raise ToolFailure('The command names no script; give one such as "train.py --epochs 1".')
        with self._lock:
            running = next((name for name, one in self._jobs.items() if one.poll() is None), None)
            if running is not None:
                raise ToolFailure(f"{running} still runs, and they take turns: ask for its state with job={running!r}.")
            name = f"job-{len(self._jobs) + 1}"
            chosen = ["--remedies", ",".join(remedies)] if remedies else []
            program = [sys.executable, "-m", "tb_dlprof_plugin.cli.main", "try", "--format", "json"]
            options = [*chosen, "--budget", f"{max(budget_s, 1)}s"]
            pipe = subprocess.PIPE
            process = subprocess.Popen(
                [*program, *options, "--", *arguments], stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True
            )
            self._jobs[name] = process
        threading.Thread(target=self._wait, args=(name, process), daemon=True).start()
        return self._state(name)

    def end(self) -> None:
        """End a job that still runs, as Ctrl-C would."""
        for process in self._jobs.values():
            if process.poll() is None:
                process.terminate()
        for process in self._jobs.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)

    def _wait(self, name: str, process: subprocess.Popen[str]) -> None:
        out, err = process.communicate()
        self._results[name] = (process.returncode, out, err)

    def _state(self, name: str) -> Reply:
        if name not in self._jobs:
            known = ", ".join(self._jobs) or "none yet"
            raise ToolFailure(f"There is no job {name!r}; there is {known}.")
        if name not in self._results:
            return fitted(f"{name} runs. Ask again with job={name!r}.", figures=[], cannot_say=[], evidence=[])
        status, out, err = self._results[name]
        tried = decode_trial(out.encode())
        if tried is None:
            raise ToolFailure(f"{name} ended with status {status}: {err.strip()[-_LONGEST_ERROR:]}")
        return _reply(name, tried)


def _reply(name: str, tried: TrialResult) -> Reply:
    """The rows of `try` in the envelope."""
    figures: list[Figure] = []
    unknown: list[CannotSay] = []
    rows: list[dict[str, Any]] = []

    def add(label: str, row: BestSet | TriedRemedy, why: str, **more: Any) -> None:
        ends = row.low_percent, row.high_percent
        figures.append(estimated(label, row.gain_percent, *ends, "% of the step saved", "measured"))
        if figures[-1].value is not None:
            rows.append({"remedy": label, "training": row.verdict or "not checked", **more})
        else:
            unknown.append(CannotSay(label, why or "it was not measured"))

    if tried.best.remedies:
        best, patch = tried.best, tried.best.patch.splitlines()
        add("best set", best, "", set=best.remedies, patch=patch, confirmed=best.confirmed)
    for row in tried.rows:
        add(row.remedy, row, row.error or row.not_tried or row.no_effect or row.stopped, title=row.title)
    return fitted(
        f"{name} ended. {headline(tried)}",
        figures=figures,
        cannot_say=unknown,
        evidence=[],
        rows=rows,
        rows_are="Measured in turns with the unchanged script. `training` compares the first steps with the script's.",
    )
