"""What a user can say about how a recording is read."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path


class Markers(str, Enum):
    """Which convention the ranges (NVTX) of a recording follow: it tells which of them are ops."""

    AUTO = "auto"
    """The convention that the names of the ranges show."""
    EMIT_NVTX = "emit_nvtx"
    """``torch.autograd.profiler.emit_nvtx``: "aten::mm, seq = 5, op_id = 7"."""
    PYPROF = "pyprof"
    """PyProf's and DLProf's Python dicts."""
    TENSORFLOW = "tensorflow"
    """NVIDIA's TensorFlow, and nvtx-plugins."""
    TENSORRT = "tensorrt"
    """TensorRT's layers."""
    XLA = "xla"
    """XLA's modules and thunks: JAX, and TensorFlow with jit_compile."""
    RANGES = "ranges"
    """Every range of the program is an op."""
    NONE = "none"
    """Ranges are ignored: kernels and CUDA calls alone."""

    def __str__(self) -> str:
        """The word that a user types."""
        return self.value


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How a recording is read."""

    markers: Markers = Markers.AUTO
    engine: Path | None = None
    """A file that trtexec wrote of the engine that ran: its layers are joined by name."""
    torch_trace: Path | None = None
    """The folder of TORCH_TRACE of the run: it explains the kernels of torch.compile."""


DEFAULT = ReadOptions()
