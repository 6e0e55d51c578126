"""One training in a process of its own: recorded, or its step measured with some numbers of workers.

    python -m lab.loader.process record NUMBER DIRECTORY
    python -m lab.loader.process measure NUMBER WORKERS,... ROUNDS

The second prints the step in ms by the number of workers, as JSON. The samples and their order are the same each time,
so the shortest of several rounds is the one that other programs disturbed least.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import torch

from .subjects import SUBJECTS, Subject, loader_of

_BATCHES = 130


def train(model: Any, step_ms: float) -> None:
    """A step whose length does not depend on the cores."""
    until = time.perf_counter() + step_ms / 1e3
    model(torch.ones(4, 4)).sum().backward()
    time.sleep(max(until - time.perf_counter(), 0.0))


def record(subject: Subject, directory: str) -> None:
    """Writes a profile of it."""
    import tb_dlprof_plugin

    model = torch.nn.Linear(4, 4)
    schedule = {"wait": 90, "warmup": 2, "active": 3}
    loader = loader_of(subject, subject.recorded)
    with tb_dlprof_plugin.profile(
        directory, model=model, schedule=schedule, wait=True, quiet=True, keep_trace=False
    ) as profile:
        for step, _ in enumerate(loader):
            train(model, subject.step_ms)
            profile.step()
            if step == 95:
                break


def measure(subject: Subject, workers: int) -> float:
    """The step in ms without any hook, once as many batches were given as are loaded ahead."""
    model = torch.nn.Linear(4, 4)
    first = 4 + 4 * workers
    began = 0.0
    for step, _ in enumerate(loader_of(subject, workers)):
        if step == first:
            began = time.perf_counter()
        if step == first + _BATCHES:
            return 1e3 * (time.perf_counter() - began) / _BATCHES
        train(model, subject.step_ms)
    raise RuntimeError("the data set is too short")


def main() -> None:
    """Of the command line."""
    torch.set_num_threads(1)
    what, number, where, *more = sys.argv[1:]
    subject = SUBJECTS[int(number)]
    if what == "record":
        record(subject, where)
    else:
        counts = where.split(",")
        rounds = [{count: measure(subject, int(count)) for count in counts} for _ in range(int(more[0]))]
        print(json.dumps({count: min(one[count] for one in rounds) for count in counts}))


if __name__ == "__main__":
    main()
