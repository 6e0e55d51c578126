"""Nsight Compute's command line and its answer: matrix instructions of each kernel launch, in order of launch.

The metrics, and why these: the pipe's total also counts the HFMA2 instructions with which ordinary kernels move halves,
so they are subtracted; ``hmma`` includes Hopper's ``wgmma`` for every 8 to 32 bit type; INT8 and FP64 have pipes of
their own. All fit one pass, so no kernel is replayed.
"""

from __future__ import annotations

import csv
import ctypes
import functools
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

HMMA = "sm__inst_executed_pipe_tensor_op_hmma.sum"
HFMA2 = "sm__inst_executed_pipe_tensor_op_hmma_type_hfma2.sum"
IMMA = "sm__inst_executed_pipe_tensor_op_imma.sum"
DMMA = "sm__inst_executed_pipe_tensor_op_dmma.sum"
DURATION = "gpu__time_duration.sum"
METRICS = (HMMA, HFMA2, IMMA, DMMA, DURATION)


@dataclass(frozen=True, slots=True)
class CountedLaunch:
    """``hmma`` without the HFMA2 moves; instructions per warp, summed over the multiprocessors."""

    name: str
    hmma: int
    imma: int
    dmma: int
    duration_ns: int

    @property
    def matrix_instructions(self) -> int:
        return self.hmma + self.imma + self.dmma


def ncu_command() -> str:
    """Path of ``ncu``.

    Raises:
        FileNotFoundError: it is not installed.
    """
    found = shutil.which("ncu") or next(
        (str(path) for path in sorted(Path("/opt/nvidia/nsight-compute").glob("*/ncu"), reverse=True)), None
    )
    found = found or ("/usr/local/cuda/bin/ncu" if os.path.exists("/usr/local/cuda/bin/ncu") else None)
    if found is None:
        raise FileNotFoundError("ncu (Nsight Compute) is not installed: it comes with the CUDA toolkit.")
    return found


def metrics_of_this_gpu(ncu: str) -> list[str]:
    """Those of `METRICS` that the GPU has: not each has every pipe.

    Raises:
        RuntimeError: it has no counter of the instructions that 16 bit products are made of.
    """
    listed = subprocess.run([ncu, "--query-metrics"], capture_output=True, text=True, check=False).stdout
    known = frozenset(re.findall(r"^(\w+__\w+)\s", listed, re.MULTILINE))
    metrics = [name for name in METRICS if not known or name.split(".")[0] in known]
    if HMMA not in metrics:
        raise RuntimeError(f"this GPU has no counter {HMMA}: its Tensor Cores cannot be counted this way.")
    return metrics


def command(ncu: str, metrics: Iterable[str], csv_path: Path, program: list[str]) -> list[str]:
    """How ``program`` is run so that each launch between cudaProfilerStart and Stop is counted."""
    return [
        ncu, "--metrics", ",".join(metrics), "--clock-control", "none", "--cache-control", "none",
        "--profile-from-start", "off", "--target-processes", "application-only", "--print-kernel-base", "mangled",
        "--print-units", "base", "--csv", "--page", "raw", "--log-file", str(csv_path), *program,
    ]  # fmt: skip


def read_counts(lines: Iterable[str]) -> Iterator[CountedLaunch]:
    """The launches of ``ncu --csv --page raw``, in order; messages around the table are passed over."""
    rows = csv.DictReader(line for line in lines if line.startswith('"'))
    for row in rows:
        if not row.get("ID"):  # the row of units
            continue
        value = {name: float((row.get(name) or "0").replace(",", "")) for name in METRICS}
        yield CountedLaunch(
            name=demangled(row["Kernel Name"]),
            hmma=round(value[HMMA] - value[HFMA2]),
            imma=round(value[IMMA]),
            dmma=round(value[DMMA]),
            duration_ns=round(value[DURATION]),
        )


@functools.lru_cache(maxsize=100_000)
def demangled(name: str) -> str:
    """The C++ name as Kineto writes it: ``abi::__cxa_demangle``, which is what it calls."""
    if not name.startswith("_Z"):
        return name
    library = ctypes.CDLL("libstdc++.so.6")
    demangle = library.__cxa_demangle
    demangle.restype = ctypes.c_void_p
    demangle.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
    status = ctypes.c_int()
    result = demangle(name.encode(), None, None, ctypes.byref(status))
    if not result:
        return name
    try:
        return ctypes.string_at(result).decode()
    finally:
        libc = ctypes.CDLL(None)
        libc.free.argtypes = [ctypes.c_void_p]
        libc.free(result)
