"""Traces of a training of which one thing is there n times: all else stays as it is, or grows along as it must."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from support.trace_builder import BACKWARD_THREAD, MAIN_THREAD, TraceBuilder

_GEMM = "ampere_sgemm_128x64_tn"
_POINTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)"
_ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
_KERNEL_US = 30
_STEPS = 4
_MODULES = 8


@dataclass(frozen=True, slots=True)
class Layer:
    """What a layer of the model does in a step: an op in a module, its kernel, and its backward node."""

    module: str = "layers.0"
    op: str = "aten::linear"
    rows: int = 64
    kernel: str = _GEMM
    stream: int = 7
    thread: int = MAIN_THREAD
    annotation: str = ""
    wrapped: int = 0
    """Ops around the op, each with a kernel of its own before the next one begins."""
    recursion: int = 0
    """Ops of one name around the op, each the only one in the one before."""
    bytes: int = 0
    """Allocated in the op and freed at once."""
    graph: bool = False
    """The op launches a CUDA graph of four kernels."""


@dataclass(frozen=True, slots=True)
class Collective:
    """An all-reduce after the backward pass; ``elements`` is 0 where its size is not recorded."""

    elements: int = 0


class Training(TraceBuilder):
    """A recording whose steps come one after the other; its CPU and its GPU have clocks (µs)."""

    def __init__(self, folder: Path, rank: int = 0, ranks: int = 1) -> None:
        super().__init__(folder, baseTimeNanoseconds=1_700_000_000_000_000_000)
        self.gpu()
        self._all_ranks = f"[{', '.join(map(str, range(ranks)))}]"
        if ranks > 1:
            group = {"pg_name": "0", "pg_desc": "default_pg", "pg_size": ranks, "ranks": list(range(ranks))}
            self.rest["distributedInfo"] = {
                "backend": "nccl", "rank": rank, "world_size": ranks, "pg_count": 1, "pg_config": [group],
            }  # fmt: skip
        self._ranks = ranks
        self._late = rank % 3
        self._cpu = self._gpu_free = 0.0
        self._steps, self._sequence, self._graphs = itertools.count(5), itertools.count(), itertools.count(10_000_000)

    def train(self, layers: Sequence[Layer], collectives: Sequence[Collective] = ()) -> None:
        """One step: forward, backward, reductions, optimizer; the loss is read at its end."""
        begin = self._cpu
        self.loader(begin, 20)
        self._cpu += 25 + 5 * self._late
        sequences = [self._forward(layer) for layer in layers]
        for layer, sequence in zip(reversed(layers), reversed(sequences), strict=True):
            self._backward(layer, sequence)
        for number, one in enumerate(collectives):
            self._reduce(one, number)
        self.optimizer(self._cpu, 20)
        self.op("aten::_foreach_add_", self._cpu + 1, 18, types=["TensorList", "TensorList"])
        self._kernel(_POINTWISE, self._cpu + 5)
        self._cpu += 25
        waiting = max(10.0, self._gpu_free - self._cpu + 5)
        self.op("aten::item", self._cpu, waiting)
        self.runtime(self._cpu + 1, waiting - 2, name="cudaStreamSynchronize")
        self._cpu += waiting + 5
        self.step(next(self._steps), begin, self._cpu - begin)
        self._cpu += 10

    def _kernel(self, name: str, call: float, stream: int = 7, tid: int = MAIN_THREAD, **args: object) -> None:
        start = max(self._gpu_free, call + 5)
        self.launch(name, call, start, _KERNEL_US, stream=stream, tid=tid, **args)
        self._gpu_free = start + _KERNEL_US + 1

    def _forward(self, layer: Layer) -> int:
        at, around = self._cpu, 10 * layer.wrapped + layer.recursion + 2
        length, sequence = 42 + 11 * layer.wrapped + 2 * layer.recursion, next(self._sequence)
        shapes = [[layer.rows, 512], [512, 512]]
        if layer.annotation:
            self.annotation(layer.annotation, at, length + 4, tid=layer.thread)
        if layer.thread == MAIN_THREAD:
            self.module(layer.module, at + 1, length + 2)
        for level in range(layer.wrapped):
            self.op("mine::wrap", at + 2 + 10 * level, length - 2 - 11 * level, tid=layer.thread)
            self.op("aten::mul", at + 3 + 10 * level, 8, tid=layer.thread, dims=[shapes[0]] * 2, types=["float"] * 2)
            self._kernel(_POINTWISE, at + 4 + 10 * level, tid=layer.thread)
        for level in range(layer.recursion):
            self.op("mine::recurse", at + 2 + level, length - 2 - 2 * level, tid=layer.thread)
        inner = at + around
        self.op(layer.op, inner, 38, tid=layer.thread, seq=sequence, dims=shapes, types=["float", "float"])
        if layer.op == "aten::linear":
            self.op("aten::mm", inner + 1, 34, tid=layer.thread, dims=shapes, types=["float", "float"])
        if layer.bytes:
            address = 4096 * (sequence + 1)
            self.memory(inner + 2, layer.bytes, address, allocated=2**20 + layer.bytes, reserved=2**21, device=0)
            self.memory(inner + 20, -layer.bytes, address, allocated=2**20, reserved=2**21, device=0)
        if layer.stream != 7:
            self.runtime(inner + 4, 1, name="cudaStreamWaitEvent", tid=layer.thread)
        if layer.graph:
            graph = next(self._graphs)
            self.runtime(inner + 6, 8, graph, name="cudaGraphLaunch", tid=layer.thread)
            for _ in range(4):
                start = max(self._gpu_free, inner + 8)
                self.kernel(layer.kernel, start, _KERNEL_US, graph, stream=layer.stream)
                self._gpu_free = start + _KERNEL_US + 1
        else:
            self._kernel(layer.kernel, inner + 6, layer.stream, layer.thread)
        self._cpu += length + 10
        return sequence

    def _backward(self, layer: Layer, sequence: int) -> None:
        node = "MmBackward0" if layer.op == "aten::linear" else "AddBackward0"
        at = self._cpu
        self.backward(node, at, 30, sequence)
        self.op(node, at + 1, 27, tid=BACKWARD_THREAD, seq=sequence, fwd=layer.thread)
        if layer.op == "aten::linear":
            shapes = [[512, layer.rows], [layer.rows, 512]]
            self.op("aten::mm", at + 2, 24, tid=BACKWARD_THREAD, dims=shapes, types=["float", "float"])
        self._kernel(layer.kernel, at + 6, tid=BACKWARD_THREAD)
        self._cpu += 35

    def _reduce(self, one: Collective, number: int) -> None:
        at = self._cpu
        recorded: dict[str, object] = {}
        if one.elements:
            shapes: dict[str, object] = {"dims": [[[one.elements]]], "types": ["TensorList"]}
            recorded = {
                "Collective name": "allreduce", "In msg nelems": one.elements, "Out msg nelems": one.elements,
                "Group size": self._ranks, "dtype": "Float", "Process Group Name": "0",
                "Process Group Description": "default_pg", "Process Group Ranks": self._all_ranks, "Seq": number,
            }  # fmt: skip
            self.event("record_param_comms", "cpu_op", at + 2, 26, **recorded)
        else:
            shapes = {}
        self.op("c10d::allreduce_", at, 30, **shapes)
        self.annotation("nccl:all_reduce", at + 3, 22)
        self._kernel(_ALL_REDUCE, at + 6, stream=20, **recorded)
        self._cpu += 35


def _one(folder: Path, steps: Iterable[Sequence[Layer]], collectives: Sequence[Collective] = ()) -> list[Path]:
    trace = Training(folder, ranks=2 if collectives else 1)
    for layers in steps:
        trace.train(layers, collectives)
    return [trace.write()]


def _layers(of: Callable[[int], Layer], steps: int = _STEPS) -> Callable[[int, Path], list[Path]]:
    """n layers in each of a few steps."""
    return lambda n, folder: _one(folder, [[of(i) for i in range(n)]] * steps)


def _few() -> list[Layer]:
    return [Layer(f"layers.{number}") for number in range(_MODULES)]


def _steps(n: int, folder: Path) -> list[Path]:
    return _one(folder, [_few()[:4]] * n, [Collective(1 << 20)] * 2)


def _ops(n: int, folder: Path) -> list[Path]:
    """As many modules as types of ops."""
    side = math.ceil(math.sqrt(n))
    layers = [Layer(f"layers.{i // side}", f"mine::op{i % side}", kernel=_POINTWISE) for i in range(n)]
    return _one(folder, [layers] * _STEPS)


def _collectives(elements: int) -> Callable[[int, Path], list[Path]]:
    return lambda n, folder: _one(folder, [_few()] * _STEPS, [Collective(elements)] * n)


def _ranks(n: int, folder: Path) -> list[Path]:
    paths = []
    for rank in range(n):
        trace = Training(folder, rank, n)
        for _ in range(_STEPS):
            trace.train(_few(), [Collective(1 << 20)] * 4)
        paths.append(trace.write(f"rank{rank}.pt.trace.json"))
    return paths


DIMENSIONS: dict[str, Callable[[int, Path], list[Path]]] = {
    "events": _layers(lambda i: Layer(f"layers.{i % _MODULES}")),
    "steps": _steps,
    "ops": _ops,
    "shapes": _layers(lambda i: Layer(f"layers.{i % _MODULES}", rows=64 + i)),
    "kernels": _layers(lambda i: Layer(f"layers.{i % _MODULES}", kernel=f"ampere_sgemm_{64 + i}x64_tn")),
    "op names": _layers(lambda i: Layer(op=f"mine::op{i}", kernel=_POINTWISE)),
    "collectives": _collectives(1 << 20),
    "collectives without bytes": _collectives(0),
    "modules": _layers(lambda i: Layer(f"layers.{i}")),
    "depth": lambda n, folder: _one(folder, [[*_few(), Layer(wrapped=n)]] * _STEPS),
    "recursion": lambda n, folder: _one(folder, [[*_few(), Layer(recursion=n)]] * _STEPS),
    "streams": _layers(lambda i: Layer(f"layers.{i % _MODULES}", stream=7 + i)),
    "threads": _layers(lambda i: Layer(thread=100 + i, op="mine::op", kernel=_POINTWISE)),
    "memory events": _layers(lambda i: Layer(f"layers.{i % _MODULES}", bytes=512 * (1 + i % 50))),
    "annotations": _layers(lambda i: Layer(f"layers.{i % _MODULES}", annotation=f"part {i}")),
    "graph launches": _layers(lambda i: Layer(f"layers.{i % _MODULES}", graph=True)),
    "ranks": _ranks,
}
"""Each writes the traces of a recording with n of one thing, one per rank."""
