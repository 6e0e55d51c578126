"""Ctrl-C in `tb-dlprof try` at any time: is a file, a folder or a process left?

    python -m lab.trying.interrupted [--times 30] [--longest 60]

Each time SIGINT comes after a random time, from the start of Python on. The script writes a file, loads by a worker and
starts programs in sessions of their own. A row for each; ends with 1 where anything is left.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_SCRIPT = """
import subprocess
import torch
from torch.utils.data import DataLoader

model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
subprocess.run(["sh", "-c", "setsid sleep 1000 &"])
for batch in DataLoader(torch.ones(10_000_000, 8), batch_size=4, num_workers=1):
    optimizer.zero_grad()
    model(batch).sum().backward()
    optimizer.step()
    open("notes.txt", "a").write("step")
"""
_GONE_WITHIN_S = 5.0


def state(folder: Path) -> dict[str, bytes]:
    """Files below the folder with their contents; folders with none."""
    return {str(one.relative_to(folder)): one.read_bytes() if one.is_file() else b"" for one in folder.rglob("*")}


def processes(mark: str) -> list[str]:
    """Command lines of those that have this in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:80])
        except OSError:
            continue
    return found


def interrupt(after_s: float, records: bool) -> tuple[str, str]:
    """What was left after Ctrl-C at that time, "" for nothing, and what the command was doing."""
    with tempfile.TemporaryDirectory() as made:
        work, scratch = Path(made, "work"), Path(made, "tmp")
        work.mkdir()
        scratch.mkdir()
        (work / "train.py").write_text(_SCRIPT)
        (work / "notes.txt").write_text("mine")
        before = state(work)
        command = [sys.executable, "-W", "ignore", "-m", "tb_dlprof_plugin.cli.main", "try", "train.py"]
        command[6:6] = ["--remedies", "foreach_optimizer", "--record", "gains" if records else "none"]
        process = subprocess.Popen(
            command, cwd=work, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "TRIED": made, "TMPDIR": str(scratch), "XDG_DATA_HOME": str(Path(made, "data"))},
        )  # fmt: skip
        time.sleep(after_s)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
        until = time.monotonic() + _GONE_WITHIN_S
        while processes(f"TRIED={made}") and time.monotonic() < until:
            time.sleep(0.1)
        left = [f"process {one}" for one in processes(f"TRIED={made}")]
        left += [f"scratch {one.name}" for one in scratch.iterdir()]
        # Complete runs of the log directory are a result.
        after = {name: content for name, content in state(work).items() if not (records and name.startswith("runs"))}
        left += [f"file {name}" for name in before.keys() ^ after.keys()]
        left += [f"changed {name}" for name in before.keys() & after.keys() if before[name] != after[name]]
        if records and (work / "runs").is_dir() and not any((work / "runs").rglob("events.out.tfevents*")):
            left.append("an incomplete run")
        lines = [one for one in said.splitlines() if one.startswith("tb-dlprof")]
        return ", ".join(left), f"status {process.returncode}, {lines[-1] if lines else 'start of Python'}"


def main() -> None:
    """See the module's docstring."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--times", type=int, default=30)
    options.add_argument("--longest", type=float, default=60.0, help="seconds until Ctrl-C")
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args()
    # Ignored where this runs in the background of a shell, and then by what is started as well.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    draw = random.Random(chosen.seed)
    bad = 0
    for number in range(chosen.times):
        # As many in the first seconds as in the rest.
        after_s = chosen.longest * draw.random() ** 2
        left, where = interrupt(after_s, records=number % 2 == 1)
        bad += bool(left)
        print(f"{number + 1:3} after {after_s:5.1f} s: {left or 'nothing left'} ({where})", flush=True)
    print(f"{chosen.times} times Ctrl-C: {bad} left something")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
