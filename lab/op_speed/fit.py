"""Turns the recordings into the table that the forecast looks ops up in.

    python -m lab.op_speed.fit [RECORDING ...] [--table FILE]

Nothing is fitted to a model: what is written are the features of each measured op, its times relative to FP32, and
how much each feature counts (`process`).
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import math
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from tb_dlprof_plugin.names.gpu_peaks import Ceilings, ceilings_of
from tb_dlprof_plugin.planning import features, op_times
from tb_dlprof_plugin.readers.input_text import parse_shapes

from .process import fitted

HERE = Path(__file__).resolve().parent
NAMES = ("h200", "h200_edges", "h200_common", "h100_irregular", "h100_irregular_more")
RECORDINGS = tuple(HERE / f"{name}.json.xz" for name in NAMES)
TABLE = Path(op_times.__file__).with_name("op_times.json.gz")
LEAST_OPS = 4
"""A kind with fewer measured ops is left out. So few say little of another op, and the process knows: its spread is
wide."""
_HARDLY_LARGER = 1.1
_DIGITS = 3
_NOT_OF_A_MODEL = ("AccumulateGrad",)
"""In mixed precision the gradients of parameters stay FP32, unlike those of the single ops measured here."""
_PRECISIONS = ("tf32", "fp16", "bf16")


Rows = list[tuple[features.Features, dict[str, float]]]
"""Measured ops of one kind: features, and times relative to FP32 by precision."""


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("recordings", nargs="*", type=Path, default=RECORDINGS)
    parser.add_argument("--table", type=Path, default=TABLE, help="where to write, by default into the package")
    args = parser.parse_args()
    gpus, kinds = measured_ops(args.recordings)
    kept = json.loads(gzip.decompress(args.table.read_bytes()))["kinds"] if args.table.exists() else {}
    table = {
        "about": "kernel times relative to FP32, by python -m lab.op_speed.fit",
        "kinds": {
            kind: columns(rows, kept.get(kind)) | {"gpus": sorted(gpus[kind])}
            for kind, rows in sorted(kinds.items())
            if len(rows) >= LEAST_OPS
        },
    }
    with args.table.open("wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, filename="") as file:
        file.write(json.dumps(table, separators=(",", ":")).encode())
    for kind, rows in sorted(kinds.items()):
        print(f"{kind:32} {len(rows):5}" + ("" if len(rows) >= LEAST_OPS else "  left out"))
    print(f"{args.table}: {args.table.stat().st_size / 1e3:.0f} kB")


def measured_ops(recordings: Iterable[Path]) -> tuple[dict[str, set[str]], dict[str, Rows]]:
    """The ops of the recordings by kind, and the GPUs that each kind was measured on."""
    kinds: dict[str, Rows] = defaultdict(list)
    gpus: dict[str, set[str]] = defaultdict(set)
    for number, path in enumerate(recordings):
        recording = json.loads(lzma.decompress(path.read_bytes()))
        ceilings = ceilings_of(recording["device"])
        assert ceilings is not None, f"{recording['device']} is not in the table of ceilings"
        for unit in _units(recording["rows"], number).values():
            found = _row(unit, ceilings)
            if found is not None:
                kinds[found[0]].append(found[1:])
                gpus[found[0]].add(recording["device"])
    return gpus, kinds


def columns(rows: Rows, kept: dict[str, Any] | None = None) -> dict[str, Any]:
    """A kind as it stands in the table; one that is hardly larger than in an earlier table keeps its processes."""
    precisions = [name for name in _PRECISIONS if any(name in ratios for _, ratios in rows)]
    found: dict[str, Any] = {
        "features": [[round(value, _DIGITS) for value in one] for one, _ in rows],
        "ratios": {name: [ratios.get(name) for _, ratios in rows] for name in precisions},
    }
    if kept and len(kept["features"]) <= len(rows) <= _HARDLY_LARGER * len(kept["features"]):
        return found | {"processes": kept["processes"]}
    return found | {"processes": {name: _process(rows, name) for name in precisions}}


def _process(rows: Rows, precision: str) -> list[float]:
    """Lengths, amplitude, trend and noise."""
    known = [(found, ratios[precision]) for found, ratios in rows if precision in ratios]
    process = fitted(np.array([found for found, _ in known]), np.log([ratio for _, ratio in known]))
    return [float(f"{value:.4g}") for value in (*process.lengths, process.amplitude, process.trend, process.noise)]


def _units(rows: list[dict[str, Any]], recording: int) -> dict[tuple[Any, ...], dict[str, dict[str, Any]]]:
    """The same op in all precisions, by case, direction, op and (of products) shapes."""
    units: dict[tuple[Any, ...], dict[str, dict[str, Any]]] = defaultdict(dict)
    for row in rows:
        if row["matrix"]:
            what = features.matrix_kind(row["op"], parse_shapes(row["shapes"]) or (), row["flops"])
            key = (what, row["shapes"] if "product" in what else "")
        else:
            key = (row["op"], "")
        units[(recording, row["case"], row["backward"], row["matrix"], *key)][row["precision"]] = row
    return units


def _row(unit: dict[str, dict[str, Any]], ceilings: Ceilings) -> tuple[str, features.Features, dict[str, float]] | None:
    base = unit.get("fp32")
    if base is None or base["ns"] <= 0 or base["op"] in _NOT_OF_A_MODEL:
        return None
    ratios = {name: round(unit[name]["ns"] / base["ns"], _DIGITS) for name in _PRECISIONS if name in unit}
    ratios = {name: ratio for name, ratio in ratios.items() if ratio > 0}
    last = base["layout"] == "nhwc"
    if base["matrix"]:
        shapes = parse_shapes(base["shapes"]) or ()
        if base["flops"] <= 0 or base["bytes"] <= 0:
            return None
        kind = features.matrix_kind(base["op"], shapes, base["flops"])
        if not kind:
            return None
        found = features.matrix_features(base["op"], shapes, base["flops"], base["bytes"], base["ns"], ceilings, last)
        return kind, found, ratios
    kind = other_kind(base["op"], base["backward"])
    shape = re.search(r"of ([\dx]+)$", base["about"])
    per_channel = 1.0
    if base["op"] == "batch_norm" and shape:
        sizes = [int(size) for size in shape.group(1).split("x")]
        per_channel = math.prod(sizes) / sizes[1]
    return kind, features.other_features(base["ns"], per_channel, last), ratios


def other_kind(op: str, backward: bool) -> str:
    """As the forecast names it."""
    return f"{op.rstrip('_')} {'bprop' if backward else 'fprop'}"


if __name__ == "__main__":
    main()
