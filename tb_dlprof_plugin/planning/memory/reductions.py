"""The memory in which a reduction collects what several thread blocks found for the same output.

A sum over many rows, such as the gradient of a bias, is divided among thread blocks until each thread has some 16
numbers or the GPU is full. Their partial sums lie in global memory, often more than the input takes, and the size
follows neither the batch nor anything fixed: it is that of `setReduceConfig` and
`ReduceConfig::global_memory_size` in torch 2.11, `aten/src/ATen/native/cuda/Reduce.cuh`. Which dimensions are reduced
is not recorded: those are taken for which the formula gives the recorded size.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

_THREADS, _WARP = 512, 32
_LEAST_VALUES, _MOST_VALUES = 16, 256
"""Numbers of a thread: below the first it is not worth dividing further, above the second it is divided."""
_VECTOR, _ACCUMULATOR = 4, 4
"""Outputs that a thread loads together, and bytes of a partial sum (FP32 for half precision, too)."""
_THREADS_PER_SM = {(7, 5): 1024, (8, 6): 1536, (8, 7): 1536, (8, 9): 1536, (12, 0): 1536, (12, 1): 1536}
"""Resident threads of a multiprocessor by compute capability where not 2048: CUDA C++ Programming Guide, "Technical
Specifications per Compute Capability"."""


def threads_per_sm(capability: tuple[int, int] | None) -> int:
    """Resident threads of a multiprocessor; those of data center GPUs where the capability is not known."""
    return _THREADS_PER_SM.get(capability, 2048) if capability is not None else 2048


@dataclass(frozen=True, slots=True)
class Reduction:
    """A reduction to ``outputs`` numbers, each of ``inputs``.

    Attributes:
        inputs: numbers per output.
        outputs: results.
        contiguous: whether the fastest dimension is among the reduced ones.
        threads: that the GPU holds at once.
        scales: whether the reduced dimensions have the batch.
    """

    inputs: int
    outputs: int
    contiguous: bool
    threads: int
    scales: bool = True

    def bytes(self, ratio: float = 1.0) -> int:
        """Bytes of the partial sums with ``ratio`` times the batch, 0 where one thread block makes each output."""
        inputs = max(1, round(self.inputs * ratio)) if self.scales else self.inputs
        vector = 1
        if not self.contiguous:
            vector = next(size for size in (_VECTOR, 2, 1) if self.outputs % size == 0)
        first, second = (inputs, self.outputs) if self.contiguous else (self.outputs // vector, inputs)
        most = _THREADS // vector
        first, second = min(_power_of_two(first), most), min(_power_of_two(second), most)
        height = min(second, most // min(first, _WARP))
        width = min(first, most // height)
        step_in, step_out = (width, 1) if self.contiguous else (1, width)
        if _up(inputs, step_in) < min(16 * height, _MOST_VALUES):
            # Each warp makes outputs of its own.
            return 0
        step_in *= height
        values, grid = _up(inputs, step_in), _up(self.outputs // vector, step_out)
        full = self.threads // (width * height)
        if values < _MOST_VALUES or grid > full:
            return 0
        blocks = max(min(_up(full, grid), _up(values, _LEAST_VALUES)), _up(values, _MOST_VALUES))
        if blocks <= 1:
            return 0
        return _ACCUMULATOR * self.outputs * blocks * (1 if self.contiguous else width * vector)


def reductions_of(shape: tuple[int, ...], batch: int, threads: int) -> list[Reduction]:
    """The reductions of a tensor over its first dimensions, or over all but one.

    Args:
        shape: of the input.
        batch: samples, to tell whether the first dimension grows with them.
        threads: that the GPU holds at once.
    """
    if len(shape) < 2 or not all(shape):
        return []
    scales = bool(batch) and shape[0] % batch == 0
    total = prod(shape)
    outputs = [prod(shape[kept:]) for kept in range(1, len(shape))]
    reductions = [Reduction(total // count, count, False, threads, scales) for count in outputs]
    for kept in range(1, len(shape)):
        reductions += [Reduction(total // shape[kept], shape[kept], way, threads, scales) for way in (True, False)]
    return reductions


def _power_of_two(value: int) -> int:
    """The largest power of two that is not above a value."""
    return 1 << max(value, 1).bit_length() - 1


def _up(value: int, by: int) -> int:
    return -(-value // by)
