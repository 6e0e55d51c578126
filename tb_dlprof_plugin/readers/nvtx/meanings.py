"""What the ranges of a recording mean, by the conventions that it follows: columns, a row for each text and domain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tb_dlprof_plugin.model.dtypes import InputDtypes
from tb_dlprof_plugin.model.profile import Bools
from tb_dlprof_plugin.model.shapes import InputShapes, InputTable
from tb_dlprof_plugin.model.string_table import StringTable
from tb_dlprof_plugin.model.timeline import HostKind, Ints, StatedOp
from tb_dlprof_plugin.readers.nvtx import emit_nvtx, pyprof, tensorflow, tensorrt, xla
from tb_dlprof_plugin.readers.nvtx.emit_nvtx import Emitted
from tb_dlprof_plugin.readers.nvtx.ranges import Meaning
from tb_dlprof_plugin.readers.options import Markers

LEFT_OUT = -1
"""In the column of kinds: the range is left out."""

_OF_LIBRARIES = (
    "NCCL", "MPI", "cuBLAS", "cuDNN", "cuSOLVER", "cuSPARSE", "cuFFT", "cuTENSOR", "CCCL", "UCX", "NVSHMEM", "myelin",
    "Python", "PyTorch profiler", tensorflow.MEMORY_DOMAIN,
)  # fmt: skip
"""Beginnings of domains whose ranges are calls inside of ops, never ops."""


@dataclass(slots=True)
class Tables:
    """What the columns point at; they grow while recordings are read."""

    strings: StringTable = field(default_factory=StringTable)
    shapes: InputTable[InputShapes] = field(default_factory=lambda: InputTable[InputShapes](()))
    dtypes: InputTable[InputDtypes] = field(default_factory=lambda: InputTable[InputDtypes](()))
    stated: dict[str, StatedOp] = field(default_factory=dict)
    places: StringTable = field(default_factory=StringTable)


@dataclass(frozen=True, slots=True)
class Meanings:
    """A row for each pair that was asked about. ``name`` and ``module`` index the strings, ``place`` the places.

    ``users`` marks ranges of the program itself, which no convention and no library claims. ``conventions`` are those
    that were seen.
    """

    kind: Ints
    name: Ints
    sequence_number: Ints
    op_id: Ints
    backward: Bools
    shapes: Ints
    dtypes: Ints
    module: Ints
    place: Ints
    users: Bools
    conventions: frozenset[Markers]


def meanings(pairs: Sequence[tuple[str | Emitted, str]], markers: Markers, tables: Tables) -> Meanings:
    """The meaning of texts in domains.

    Args:
        pairs: of a text, or what is the same in texts of PyTorch's, and the name of its domain, "" for the default one.
        markers: the convention that counts; by default every one.
        tables: receive the names, shapes and data types.
    """
    find = _Conventions(pairs, markers)
    rows: list[tuple[int, ...]] = []
    strings, shapes, dtypes, places = tables.strings, tables.shapes, tables.dtypes, tables.places
    nothing = (LEFT_OUT, 0, -1, -1, 0, 0, 0, 0, 0, 0)
    for text, domain in pairs:
        users = 0
        one = find.meaning(text, domain)
        if one is None:
            users = int(not domain.startswith(_OF_LIBRARIES))
            plain = text.name if isinstance(text, Emitted) else text
            one = Meaning(HostKind.ANNOTATION, f"{domain}:{plain}" if domain else plain)
        if one.kind is None:
            rows.append(nothing)
            continue
        if one.stated is not None:
            tables.stated.setdefault(one.name, one.stated)
        rows.append(
            (
                int(one.kind), strings.add(one.name), one.sequence_number, one.op_id, one.backward,
                shapes.add(one.shapes), dtypes.add(one.dtypes), strings.add(one.module), places.add(one.place), users,
            )
        )  # fmt: skip
    columns = np.array(rows or [nothing], dtype=np.int64)[: len(rows)].T
    kind, name, sequence, op_id, backward, shape, dtype, module, place, users_column = columns
    return Meanings(
        kind, name, sequence, op_id, backward.astype(np.bool_), shape, dtype, module, place,
        users_column.astype(np.bool_), frozenset(find.seen),
    )  # fmt: skip


class _Conventions:
    """The conventions that count for one recording."""

    def __init__(self, pairs: Sequence[tuple[str | Emitted, str]], markers: Markers) -> None:
        self.seen: set[Markers] = set()
        names = [text.name if isinstance(text, Emitted) else text for text, _ in pairs]
        self._of_xla = xla.Xla(names)
        namespaces = any(name.startswith(("aten::", "autograd::", "c10")) for name in names)
        self._emitted = emit_nvtx.EmitNvtx(namespaces)
        self._counts: Callable[[Markers], bool] = (
            (lambda one: True) if markers is Markers.AUTO else (lambda one: one is markers)
        )
        self._pytorch = self._counts(Markers.EMIT_NVTX) or markers is Markers.PYPROF
        self._pyprof, self._tensorflow = self._counts(Markers.PYPROF), self._counts(Markers.TENSORFLOW)
        self._tensorrt, self._xla = self._counts(Markers.TENSORRT), self._counts(Markers.XLA)

    def meaning(self, text: str | Emitted, domain: str) -> Meaning | None:
        """What a text says by the conventions; None where none claims it."""
        if isinstance(text, Emitted):
            if self._pytorch and not domain:
                self.seen.add(Markers.EMIT_NVTX)
                return self._emitted.meaning_of(text)
            text = text.name
        if not domain:
            if self._pytorch and emit_nvtx.is_emitted(text):
                found = self._emitted.meaning(text)
                if found is not None:
                    self.seen.add(Markers.EMIT_NVTX)
                    return found
            if self._pyprof and pyprof.is_dict(text):
                self.seen.add(Markers.PYPROF)
                return pyprof.meaning_of_dict(text)
            if self._pyprof and text.startswith(pyprof.LAYER):
                self.seen.add(Markers.PYPROF)
                return pyprof.meaning_of_layer(text)
        if self._tensorflow and (domain == tensorflow.DOMAIN or tensorflow.is_detailed(text)):
            self.seen.add(Markers.TENSORFLOW)
            return tensorflow.meaning(text)
        if self._tensorrt and domain == tensorrt.DOMAIN:
            self.seen.add(Markers.TENSORRT)
            return tensorrt.meaning(text)
        if self._xla and (domain == xla.DOMAIN or xla.is_xla(text)):
            self.seen.add(Markers.XLA)
            return self._of_xla.meaning(text)
        return None


_KERNELS = (
    ("at::native::", "pytorch"), ("at::cuda::", "pytorch"), ("at_cuda_detail", "pytorch"),
    ("triton_poi_fused", "pytorch"), ("triton_red_fused", "pytorch"), ("tensorflow::", "tensorflow"),
    ("Eigen::GpuDevice", "tensorflow"), ("onnxruntime::", "onnxruntime"),
)  # fmt: skip
_JAX_MODULES = ("hlo_module=jit_", "hlo_module=pjit", "hlo_module=pmap")


def framework_of(conventions: Iterable[Markers], kernels: Iterable[str], texts: Iterable[str]) -> str:
    """A word of `Timeline.framework`; "" where nothing tells."""
    seen = set(conventions)
    if seen & {Markers.EMIT_NVTX, Markers.PYPROF}:
        return "pytorch"
    if Markers.XLA in seen:
        return "jax" if any(module in text for text in texts for module in _JAX_MODULES) else "tensorflow"
    if Markers.TENSORFLOW in seen:
        return "tensorflow"
    of_kernels = {framework for name in kernels for part, framework in _KERNELS if part in name}
    if Markers.TENSORRT in seen and "pytorch" not in of_kernels:
        return "tensorrt"
    return next((one for one in ("pytorch", "tensorflow", "onnxruntime") if one in of_kernels), "")
