"""Baselines in a JSON file: steps that earlier runs measured, for the same device, driver, torch and batch.

Between two runs of the same code lies more than noise within one: other hosts, clocks, neighbours. So the file holds a
step for each run, and a new one is compared with what the next run of the same code may take.
"""

from __future__ import annotations

import math
import statistics
from pathlib import Path
from typing import Any

import msgspec

from tb_dlprof_plugin.model.regression import RegressionVerdict, judge
from tb_dlprof_plugin.model.whole_file import whole_file
from tb_dlprof_plugin.pytest_plugin.base_checkout import BaseError
from tb_dlprof_plugin.trial.statistics import student

FEWEST = 4
"""Runs without which nothing is known of how they differ."""
_MOST = 20
"""Runs of one key that are kept, the newest."""
_OUTSIDE = 0.05


class Baseline(msgspec.Struct):
    """Steps of a test, in ms, one for each run; all else is the key."""

    test: str
    device: str
    driver: str
    torch: str
    batch: int | None
    step_ms: list[float]

    @property
    def key(self) -> tuple[object, ...]:
        """What has to be equal."""
        return self.test, self.device, self.driver, self.torch, self.batch


class _File(msgspec.Struct):
    schema_version: int = 1
    baselines: list[Baseline] = []


def read_baselines(path: Path) -> list[Baseline]:
    """Those of a file; none where there is no file.

    Raises:
        BaseError: it is no such file.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=_File).baselines
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise BaseError(f"{path} is no file of baselines ({error}); remove it and measure them again") from None


def verdict_by_file(path: Path, measured: Baseline, limit_percent: float) -> RegressionVerdict:
    """Whether the step takes longer than the next run of the baseline would, at 95 %.

    Raises:
        BaseError: the file cannot be read.
    """
    found = [one for one in read_baselines(path) if one.key == measured.key]
    logs = [math.log(step) for one in found for step in one.step_ms]
    count = len(logs)
    if count < FEWEST:
        torch = measured.torch and f"torch {measured.torch}"
        where = " ".join(filter(None, (measured.device, measured.driver, torch)))
        batch = "" if measured.batch is None else f" with batch {measured.batch}"
        known = f"{path.name} has {count} of {FEWEST} runs that are needed on {where}{batch}"
        why = f"{known}; --dlprof-update-baselines adds one"
        return judge(limit_percent, "step", None, None, None, why)
    difference = math.log(measured.step_ms[0]) - statistics.fmean(logs)
    # The prediction interval of one more run.
    half = student(1 - _OUTSIDE / 2, count - 1) * statistics.stdev(logs) * math.sqrt(1 + 1 / count)
    low, middle, high = (100 * math.expm1(difference + offset) for offset in (-half, 0.0, half))
    return judge(limit_percent, "step", middle, low, high, "")


def add_to_files(measured: list[dict[str, Any]]) -> None:
    """Add the steps that were measured to their files. Raises BaseError, or OSError."""
    for one in measured:
        path = Path(one.pop("file"))
        new = msgspec.convert(one, Baseline)
        baselines = read_baselines(path)
        same = next((old for old in baselines if old.key == new.key), None)
        if same is None:
            baselines.append(new)
        else:
            same.step_ms = [*same.step_ms, *new.step_ms][-_MOST:]
        with whole_file(path) as file:
            file.write(msgspec.json.format(msgspec.json.encode(_File(baselines=baselines)), indent=1) + b"\n")
