"""Reads the launches of a generated wrapper from its comments.

Before each launch stand the ops that it computes and, where provenance was on during the compilation, its handle: the
kernel's name and a number. Their order in the text is the order of the calls. What a launch takes is in its arguments.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

import msgspec

from tb_dlprof_plugin.model.compiled_graph import CompiledKernel
from tb_dlprof_plugin.readers.inductor.wrapper_tensors import WrapperTensors

_HANDLE = re.compile(r"\s*# \[Provenance debug handles\] (\S+:\d+)\s*$")
_OPS = re.compile(r"\s*# Topologically Sorted Source Nodes: \[.*\], Original ATen: \[(.*)\]\s*$")
_GETS_STREAM = re.compile(r"\s*\w+ = get_(?:raw_)?stream\(")
_CONVOLUTION = re.compile(
    r"extern_kernels\.convolution\(.*?, (stride=.*?groups=\d+)"
    r"|convolution_backward\.default\(.*?, ((?:\[[\d, ]*\]|None), .*\[[\w, ]*\])\)"
)
"""What is no tensor, of a forward pass by name, of a backward pass in order."""
_FRAME = re.compile(r'File "([^"]*)", line (\d+), in (\S+)')
_OF_TORCH = re.compile(r"[/\\]torch[/\\](?:_\w+|nn|utils|autograd|amp|optim)[/\\]")


class NodesOfLaunch(msgspec.Struct, frozen=True):
    """What a launch's nodes in the FX graph say of it, as `CompiledKernel` has it."""

    ops: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    module_bytes: tuple[int, ...] = ()
    places: tuple[str, ...] = ()


_NO_NODES = NodesOfLaunch()


def kernels_of_wrapper(
    code: str, stacks: Mapping[str, Sequence[str]], nodes: Mapping[str, NodesOfLaunch] | None = None
) -> tuple[CompiledKernel, ...]:
    """The launches of a wrapper, in order; none where provenance was off.

    Args:
        code: of the wrapper.
        stacks: by handle the Python stacks of its nodes, as ``inductor_provenance_tracking_kernel_stack_traces``.
        nodes: by handle its nodes, as far as they were read from the live graph.
    """
    kernels, before = list[CompiledKernel](), ""
    tensors, waits = WrapperTensors(), False
    for line in code.splitlines():
        handle = _HANDLE.match(line)
        if handle:
            ops = _OPS.match(before)
            names = [name.strip() for name in ops[1].split(",")] if ops else []
            found = (nodes or {}).get(handle[1], _NO_NODES)
            kernels.append(
                CompiledKernel(
                    name=handle[1].rpartition(":")[0],
                    ops=found.ops or tuple(filter(None, names)),
                    places=found.places or places_of(stacks.get(handle[1], ())),
                    modules=found.modules,
                    module_bytes=found.module_bytes,
                )
            )
            waits = True
        elif waits and (taken := tensors.taken(line)) is not None and not _GETS_STREAM.match(line):
            shapes, dtypes = tuple(one.shape for one in taken.tensors), tuple(one.dtype for one in taken.tensors)
            convolution = _CONVOLUTION.search(line)
            kernels[-1] = msgspec.structs.replace(
                kernels[-1],
                bytes=taken.bytes,
                shapes=shapes,
                dtypes=dtypes,
                arguments=convolution[1] or convolution[2] if convolution else "",
            )
            waits = False
        tensors.read(line)
        before = line
    return tuple(kernels)


def places_of(stacks: Sequence[str]) -> tuple[str, ...]:
    """The innermost line outside torch of each stack, "model.py:12 forward", each once."""
    return tuple(dict.fromkeys(filter(None, map(_place, stacks))))


def _place(stack: str) -> str:
    frames = [frame for frame in _FRAME.findall(stack) if not _OF_TORCH.search(frame[0])]
    if not frames:
        return ""
    path, line, function = frames[-1]
    return f"{os.path.basename(path)}:{line} {function}"
