"""What Inductor says of a graph that it compiled: the launches of its wrapper, in order, and what each computes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

import msgspec


class CompiledKernel(msgspec.Struct, frozen=True):
    """One launch of a wrapper.

    Attributes:
        name: of its provenance handle, without the number: the generated kernel's, or "extern_kernels.mm".
        ops: the ATen ops that it computes, such as "aten.add", in the order of the graph; empty for unknown.
        places: lines of the user's files that it computes, "model.py:12 forward"; empty for unknown.
        modules: dotted paths of the modules whose ops it computes, below the compiled one, "" for that one itself;
            empty for unknown.
        module_bytes: of each of the modules the bytes that its ops read from memory or write to it; empty for unknown.
        bytes: of its arguments, an estimate of what it reads and writes; -1 for unknown.
        shapes: of the tensors that a library call takes, and its output's; empty for unknown and for generated kernels.
        dtypes: of these tensors, torch's words, "" for unknown.
        arguments: of a convolution those that are no tensors, as the wrapper has them: its stride, which gradients it
            computes; "" for other launches.
    """

    name: str
    ops: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    module_bytes: tuple[int, ...] = ()
    bytes: int = -1
    shapes: tuple[tuple[int, ...], ...] = ()
    dtypes: tuple[str, ...] = ()
    arguments: str = ""


class CompiledGraph(msgspec.Struct, frozen=True):
    """A compiled graph by its key in the FX graph cache, which traces name around each of its calls."""

    key: str
    kernels: tuple[CompiledKernel, ...]


def common_path(paths: Sequence[str]) -> str:
    """The path of the module that holds all of these modules."""
    parts = [path.split(".") for path in paths]
    return ".".join(names[0] for names in takewhile(lambda names: len(set(names)) == 1, zip(*parts, strict=False)))
