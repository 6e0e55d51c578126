"""Reads samples of "Tensor Active" from ``GPU_METRICS``, which ``nsys profile --gpu-metrics-devices`` records.

A sample is the mean of the counter since the one before, in percent of its peak, over all SMs of the GPU. The lowest
byte of ``typeId`` is the GPU's id (as in ``TARGET_INFO_GPU``). On GPUs of compute capability 7.5 and 8.6 the counter is
that of "Tensor Active / FP16 Active": their FP16 arithmetic without Tensor Cores counts, too.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_dlprof_plugin.model.timeline import CounterSamples, Ints
from tb_dlprof_plugin.readers.sqlite_tables import MISSING, Database, integers

_METRIC = "Tensor Active"
_COLUMNS = ("timestamp", "typeId", "metricId", "value")
_LONGEST_NAME = 100
_MOST_SAMPLES = 50_000_000
_GPU = 0xFF
_LATEST_NS = 2**61


def read_tensor_samples(database: Database) -> CounterSamples:
    """The samples of all GPUs by their ids, on the file's clock, sorted; none where they were not recorded."""
    names = _metrics(database)
    if not names:
        return CounterSamples.none()
    numbers = np.array(sorted({metric for _, metric in names}), dtype=np.int64)
    parts: list[tuple[Ints, Ints, Ints, npt.NDArray[np.float64]]] = []
    count = 0
    for timestamps, kinds, metric, value in database.batches(
        "GPU_METRICS", ("timestamp", "typeId", "metricId", "value")
    ):
        metrics = integers(metric)
        kept = np.flatnonzero(np.isin(metrics, numbers))
        if not len(kept) or count > _MOST_SAMPLES:
            continue
        percent = np.array([_number(value[row]) for row in kept.tolist()], dtype=np.float64)
        parts.append((integers(timestamps)[kept], integers(kinds)[kept], metrics[kept], percent))
        count += len(kept)
    if not parts:
        return CounterSamples.none()
    time, kind, number = (np.concatenate([part[column] for part in parts]) for column in range(3))
    percent = np.concatenate([part[3] for part in parts])
    types = {key for key, _ in names}
    of_name = np.array(
        [(k if k in types else MISSING, m) in names for k, m in zip(kind.tolist(), number.tolist(), strict=True)],
        dtype=np.bool_,
    )
    sound = of_name & (time > -_LATEST_NS) & (time < _LATEST_NS) & (percent >= 0) & (percent <= 100)
    gpu = np.where(kind == MISSING, 0, kind & _GPU)
    order = np.flatnonzero(sound)
    order = order[np.lexsort((time[order], gpu[order]))]
    return CounterSamples(time[order], gpu[order], percent[order], next(iter(names.values())))


def _metrics(database: Database) -> dict[tuple[int, int], str]:
    """The name of the counter by type and metric; of a table without types `MISSING` stands for all."""
    found: dict[tuple[int, int], str] = {}
    for kinds, metrics, names in database.batches("TARGET_INFO_GPU_METRICS", ("typeId", "metricId"), ("metricName",)):
        for kind, metric, name in zip(integers(kinds).tolist(), integers(metrics).tolist(), names, strict=True):
            if isinstance(name, str) and name.startswith(_METRIC) and metric != MISSING:
                found[kind, metric] = name[:_LONGEST_NAME]
    return found


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) and abs(value) < 1e9 else -1.0
