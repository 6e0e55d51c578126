"""What a database says about the machine: its GPUs by CUDA's ordinal in each process, driver, CPU, ranks and processes.

Ids of threads and processes are

    globalTid = hardware (8 bits) | virtual machine (8) | process (24) | thread (24)

The key of a process is the globalTid without the thread, which NVIDIA's own reports join by, too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tb_dlprof_plugin.model.run_facts import System
from tb_dlprof_plugin.model.timeline import DeviceProperties, Ints
from tb_dlprof_plugin.readers.cupti.occupancy import SmLimits
from tb_dlprof_plugin.readers.sqlite_tables import MISSING, Database

_GPU = (
    "id", "cuDevice", "computeMajor", "computeMinor", "smCount", "totalMemory", "maxWarpsPerSm", "maxBlocksPerSm",
    "maxRegistersPerSm", "maxShmemPerSm", "threadsPerWarp", "smMajor", "smMinor",
)  # fmt: skip
_CUDA_GPU = {
    "deviceId": "id", "computeCapabilityMajor": "computeMajor", "computeCapabilityMinor": "computeMinor",
    "numMultiprocessors": "smCount", "globalMemorySize": "totalMemory", "numThreadsPerWarp": "threadsPerWarp",
    "maxWarpsPerMultiprocessor": "maxWarpsPerSm", "maxBlocksPerMultiprocessor": "maxBlocksPerSm",
    "maxRegistersPerMultiprocessor": "maxRegistersPerSm", "maxSharedMemoryPerMultiprocessor": "maxShmemPerSm",
}  # fmt: skip
"""CUPTI's names of the same (``CUpti_ActivityDevice``), which the older table has, by those of the newer one."""
_DRIVER = re.compile(r"\A\d{6,8}\Z")
_LATEST_UNIX_NS = 2**62
_MOST_GPUS = 4096


_BITS = 24
_MASK = (1 << _BITS) - 1


def process_key(global_id: Ints) -> Ints:
    """The process's key of each globalTid or globalPid; `MISSING` stays."""
    return np.where(global_id == MISSING, MISSING, global_id & ~np.int64(_MASK))


def pid_of(key: int) -> int:
    """The process's number on its machine."""
    return (key >> _BITS) & _MASK


@dataclass(frozen=True, slots=True)
class Machine:
    """By the key of a process its devices, CUDA's ordinal there of each GPU's id, and its rank."""

    devices: dict[int, list[DeviceProperties]] = field(default_factory=dict)
    ordinals: dict[int, dict[int, int]] = field(default_factory=dict)
    ranks: dict[int, int] = field(default_factory=dict)
    limits: SmLimits | None = None
    epoch_unix_ns: int = 0
    system: System = field(default_factory=System)
    cuda_driver_version: int | None = None


def read_machine(database: Database, processes: Sequence[int]) -> Machine:
    """The machine of a report, as far as its tables tell."""
    gpus = _gpus(database)
    about = database.pairs("TARGET_INFO_SYSTEM_ENV", "name", "value")
    cores = about.get("CpuCores", "")
    cuda = about.get("CudaDriverVersion", "")
    of_process = _gpus_of_processes(database, gpus, processes)
    return Machine(
        devices={
            key: [_properties(ordinal, gpu) for ordinal, gpu in sorted(own.items())] for key, own in of_process.items()
        },
        ordinals={
            key: {gpu["id"]: ordinal for ordinal, gpu in own.items() if gpu["id"] is not None}
            for key, own in of_process.items()
        },
        ranks=_ranks(database),
        limits=_limits(gpus),
        epoch_unix_ns=_epoch(database),
        system=System(
            cpu_model=about.get("CpuDescription") or None,
            cpu_count=int(cores) if cores.isdigit() and len(cores) < 7 else None,
            os=about.get("OsVersion") or about.get("OsRelease") or None,
            driver_version=driver_version(about.get("NvDriverVersion", "")) or None,
            hostname=about.get("Hostname") or None,
        ),
        cuda_driver_version=int(cuda) if cuda.isdigit() and len(cuda) < 7 else None,
    )


def driver_version(text: str) -> str:
    """ "525.105.17" of "52510517", which some versions write without its dots."""
    return f"{text[:3]}.{text[3:-2]}.{text[-2:]}" if _DRIVER.match(text) else text.strip()


def _epoch(database: Database) -> int:
    columns = database.columns("TARGET_INFO_SESSION_START_TIME", ("utcEpochNs",))
    found = [epoch for epoch in columns["utcEpochNs"].tolist() if 0 < epoch < _LATEST_UNIX_NS]
    return found[0] if found else 0


def _gpus(database: Database) -> list[dict[str, Any]]:
    """The GPUs of ``TARGET_INFO_GPU``; in reports from before mid 2021, of ``TARGET_INFO_CUDA_GPU``."""
    return _rows(database, "TARGET_INFO_GPU", _GPU) or [
        dict.fromkeys(_GPU) | {ours: gpu[theirs] for theirs, ours in _CUDA_GPU.items()} | {"name": gpu["name"]}
        for gpu in _rows(database, "TARGET_INFO_CUDA_GPU", tuple(_CUDA_GPU))
    ]


def _rows(database: Database, table: str, columns: tuple[str, ...]) -> list[dict[str, Any]]:
    """The rows with their names; None for what a report lacks, or what is no number."""
    gpus: list[dict[str, Any]] = []
    for batch in database.batches(table, columns, ("name",)):
        for row in zip(*batch, strict=True):
            gpu = dict(zip((*columns, "name"), row, strict=True))
            for key in columns:
                gpu[key] = gpu[key] if type(gpu[key]) is int and 0 <= gpu[key] < 2**53 else None
            gpus.append(gpu)
    return gpus[:_MOST_GPUS]


def _properties(ordinal: int, gpu: dict[str, Any]) -> DeviceProperties:
    major, minor = gpu["computeMajor"], gpu["computeMinor"]
    if major is None:
        major, minor = gpu["smMajor"], gpu["smMinor"]
    name = gpu["name"] if isinstance(gpu["name"], str) else ""
    # A column that holds 0 for "unknown", as exports of old reports do, is no capability.
    known = bool(major)
    return DeviceProperties(
        ordinal, name, major if known else None, (minor or 0) if known else None, gpu["smCount"] or None,
        gpu["totalMemory"] or None,
    )  # fmt: skip


def _gpus_of_processes(
    database: Database, gpus: list[dict[str, Any]], processes: Sequence[int]
) -> dict[int, dict[int, dict[str, Any]]]:
    """By process the GPUs by CUDA's ordinals: of ``TARGET_INFO_CUDA_DEVICE``, else ``cuDevice``, else the GPU's id."""
    by_id = {gpu["id"]: gpu for gpu in gpus if gpu["id"] is not None}
    mapped: dict[int, dict[int, dict[str, Any]]] = {}
    columns = database.columns("TARGET_INFO_CUDA_DEVICE", ("pid", "cudaId", "gpuId"))
    for pid, ordinal, gpu_id in zip(*(columns[name].tolist() for name in ("pid", "cudaId", "gpuId")), strict=True):
        if gpu_id in by_id and 0 <= ordinal < _MOST_GPUS:
            mapped.setdefault(pid, {})[ordinal] = by_id[gpu_id]
    usual = {gpu["cuDevice"] if gpu["cuDevice"] is not None else gpu["id"]: gpu for gpu in gpus}
    if len(usual) < len(gpus) or None in usual:
        usual = dict(enumerate(gpus))
    return {key: mapped.get(pid_of(key)) or mapped.get(key) or usual for key in processes}


def _limits(gpus: list[dict[str, Any]]) -> SmLimits | None:
    """The limits of an SM, where every GPU has the same."""
    found = {
        SmLimits(
            sm_count=gpu["smCount"] or 0, warps=gpu["maxWarpsPerSm"] or 0, blocks=gpu["maxBlocksPerSm"] or 0,
            registers=gpu["maxRegistersPerSm"] or 0, shared_bytes=gpu["maxShmemPerSm"] or 0,
            threads_of_warp=gpu["threadsPerWarp"] or 32, compute_major=gpu["computeMajor"] or 0,
        )
        for gpu in gpus
    }  # fmt: skip
    one = next(iter(found)) if len(found) == 1 else None
    return one if one is not None and one.warps and one.blocks and one.registers and one.sm_count else None


def _ranks(database: Database) -> dict[int, int]:
    columns = database.columns("MPI_RANKS", ("globalTid", "rank"))
    mask = (1 << 24) - 1
    found: dict[int, int] = {}
    for thread, rank in zip(columns["globalTid"].tolist(), columns["rank"].tolist(), strict=True):
        if 0 <= rank < 2**31:
            found.setdefault(thread & ~mask, rank)
    return found
