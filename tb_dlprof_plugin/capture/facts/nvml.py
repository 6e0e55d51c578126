"""Reads GPU state through NVML, the library that comes with every NVIDIA driver: no package is needed.

Each value is read separately: one that the driver or its version refuses is None.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

_SUCCESS, _INSUFFICIENT_SIZE = 0, 7
_CLOCK_SM = 1
_TEMPERATURE_GPU = 0
_LIMITS = {
    0x02: "clocks set by hand",
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x20: "thermal slowdown",
    0x40: "thermal slowdown by hardware",
    0x80: "power brake",
}
"""Bits of nvmlClocksEventReasons; idle clocks, and reasons due to other GPUs or a display, are left out."""


_MOST_PROCESSES = 256


class _Process(ctypes.Structure):
    """nvmlProcessInfo_t."""

    _fields_ = [
        ("pid", ctypes.c_uint),
        ("bytes", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


class NvmlError(Exception):
    """NVML is not available, or has no such GPU."""


class NvmlDevice:
    """One GPU by its UUID, such as "GPU-7ac2...".

    Raises:
        NvmlError: there is no such GPU, or no NVML.
    """

    def __init__(self, uuid: str) -> None:
        self._library = _library()
        self._handle = ctypes.c_void_p()
        if self._library.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(self._handle)) != _SUCCESS:
            raise NvmlError(f"no GPU {uuid}")

    @property
    def sm_clock_mhz(self) -> int | None:
        """Current clock of the multiprocessors."""
        return self._number("nvmlDeviceGetClockInfo", _CLOCK_SM)

    @property
    def max_sm_clock_mhz(self) -> int | None:
        """Maximum clock of the multiprocessors."""
        return self._number("nvmlDeviceGetMaxClockInfo", _CLOCK_SM)

    @property
    def temperature_c(self) -> int | None:
        """Temperature of the GPU in degrees Celsius."""
        return self._number("nvmlDeviceGetTemperature", _TEMPERATURE_GPU)

    @property
    def energy_mj(self) -> int | None:
        """What the board has consumed since the driver was loaded (mJ); changes ten times a second on an H200."""
        return self._number("nvmlDeviceGetTotalEnergyConsumption", kind=ctypes.c_ulonglong)

    @property
    def power_limit_mw(self) -> int | None:
        """The limit in force (mW): above it the driver lowers the clocks."""
        return self._number("nvmlDeviceGetEnforcedPowerLimit")

    @property
    def clock_limits(self) -> list[str]:
        """What limits the clock now."""
        bits = self._number("nvmlDeviceGetCurrentClocksThrottleReasons", kind=ctypes.c_ulonglong) or 0
        return [name for bit, name in _LIMITS.items() if bits & bit]

    @property
    def processes(self) -> int | None:
        """With a CUDA context on it, this one among them, whatever their container; None where none is seen."""
        function = getattr(self._library, "nvmlDeviceGetComputeRunningProcesses_v3", None)
        count = ctypes.c_uint(0)
        # With room for none, the call returns how many there are.
        if function is None or function(self._handle, ctypes.byref(count), None) not in (_SUCCESS, _INSUFFICIENT_SIZE):
            return None
        return count.value or None

    @property
    def process_bytes(self) -> list[tuple[int, int | None]]:
        """Process id and GPU memory of each with a CUDA context; in a container, ids may be those of the host."""
        function = getattr(self._library, "nvmlDeviceGetComputeRunningProcesses_v3", None)
        rows = (_Process * _MOST_PROCESSES)()
        count = ctypes.c_uint(_MOST_PROCESSES)
        if function is None or function(self._handle, ctypes.byref(count), rows) != _SUCCESS:
            return []
        # All bits set where the driver does not say.
        return [
            (int(row.pid), int(row.bytes) if row.bytes < 1 << 62 else None)
            for row in rows[: min(count.value, _MOST_PROCESSES)]
        ]

    def _number(self, name: str, *choice: int, kind: Any = ctypes.c_uint) -> int | None:
        function, value = getattr(self._library, name, None), kind(0)
        if function is None or function(self._handle, *choice, ctypes.byref(value)) != _SUCCESS:
            return None
        return int(value.value)


def driver_version() -> str:
    """Such as "580.159.04".

    Raises:
        NvmlError: NVML is not available.
    """
    text = ctypes.create_string_buffer(80)
    if _library().nvmlSystemGetDriverVersion(text, len(text)) != _SUCCESS:
        raise NvmlError("NVML does not tell the driver's version")
    return text.value.decode(errors="replace")


@functools.cache
def _library() -> Any:
    """Opened once: the first call takes milliseconds."""
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError as error:
        raise NvmlError(str(error)) from None
    if library.nvmlInit_v2() != _SUCCESS:
        raise NvmlError("NVML cannot be initialized")
    return library
