"""What Inductor says of a graph that it compiled: the launches of its wrapper, in order, and what each computes."""

from __future__ import annotations

import msgspec


class CompiledKernel(msgspec.Struct, frozen=True):
    """One launch of a wrapper.

    Attributes:
        name: of its provenance handle, without the number: the generated kernel's, or "extern_kernels.mm".
        ops: the ATen ops that it computes, such as "aten.add", in the order of the graph; empty for unknown.
        places: lines of the user's files that it computes, "model.py:12 forward"; empty for unknown.
        modules: dotted paths of the modules whose ops it computes, below the compiled one, "" for that one itself;
            empty for unknown.
    """

    name: str
    ops: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()


class CompiledGraph(msgspec.Struct, frozen=True):
    """A compiled graph by its key in the FX graph cache, which traces name around each of its calls."""

    key: str
    kernels: tuple[CompiledKernel, ...]
