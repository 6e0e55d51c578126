"""Takes from Inductor, graph by graph, what each launch of its wrapper computes: ops, lines and modules.

Inductor notes the handle of each launch where its provenance tracking is on (torch 2.9 and later); it is turned on
here unless the user set it. Two functions of Inductor are wrapped: at the end of the code generation the nodes of each
handle and their modules are read from the live graph, which no artifact has; when the graph gets ready, with or
without a cache hit, its key is known. A copy of the modules lies next to Inductor's cache for later hits. Nothing here
raises into the compilation.
"""

from __future__ import annotations

import functools
import os
import re
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tb_dlprof_plugin.analysis.wrapper_order import recorded_name
from tb_dlprof_plugin.capture.compiled.after_import import after_import
from tb_dlprof_plugin.capture.warn import probe
from tb_dlprof_plugin.model.compiled_graph import CompiledGraph
from tb_dlprof_plugin.model.whole_file import whole_file
from tb_dlprof_plugin.readers.inductor.wrapper_code import NodesOfLaunch, kernels_of_wrapper, places_of

SWITCH = "TB_DLPROF_PROVENANCE"
"""The environment variable that leaves torch.compile alone: 0."""

_USERS = ("INDUCTOR_PROVENANCE", "TORCH_COMPILE_DEBUG")
_BASIC = 2
"""Inductor's level that notes handles without observing each pass over the graph."""
_MOST_GRAPHS = 2000
_FOLDER = "tb_dlprof"
_KEY = re.compile(r"\w{1,100}\Z")
_ROOT = re.compile(r"[LG]\['[^']*'\]|L__self___?")
_CHILD = re.compile(r"(?:\._modules)?\['?([^'\]]+)'?\]")
_VIEWS = frozenset(
    f"aten.{name}"
    for name in (
        "view", "_unsafe_view", "reshape", "permute", "transpose", "t", "expand", "select", "slice", "unsqueeze",
        "squeeze", "as_strided", "alias", "detach", "split", "split_with_sizes", "unbind", "clone",
    )
)  # fmt: skip
"""Ops that compute nothing."""


class _Stored(msgspec.Struct):
    """The copy next to Inductor's cache: by handle."""

    nodes: dict[str, NodesOfLaunch]


class Provenance:
    """Of this process: the graphs that were compiled or loaded since `install`."""

    def __init__(self) -> None:
        self.graphs: dict[str, CompiledGraph] = {}
        """By their keys in the FX graph cache, in order."""
        self._installed = False
        self._pending = threading.local()

    def install(self) -> None:
        """Begin to take graphs, before Inductor is imported or after. Never raises; the second call does nothing."""
        if self._installed or os.environ.get(SWITCH) == "0" or _is_compile_worker():
            return
        self._installed = True
        after_import("torch._inductor.compile_fx", self._wrap)

    def _wrap(self) -> None:
        from torch._inductor import config, debug
        from torch._inductor.output_code import CompiledFxGraph

        if not hasattr(config.trace, "provenance_tracking_level"):
            return
        dump, post_compile = debug.dump_inductor_provenance_info, CompiledFxGraph.post_compile
        if not config.trace.provenance_tracking_level and not any(name in os.environ for name in _USERS):
            config.trace.provenance_tracking_level = _BASIC

        @functools.wraps(dump)
        def dump_inductor_provenance_info(*args: Any, **kwargs: Any) -> Any:
            self._pending.nodes = probe(_nodes_of_graph)
            return dump(*args, **kwargs)

        @functools.wraps(post_compile)
        def post_compile_and_keep(graph: Any, *args: Any, **kwargs: Any) -> Any:
            result = post_compile(graph, *args, **kwargs)
            nodes, self._pending.nodes = getattr(self._pending, "nodes", None), None
            probe(lambda: self._keep(graph, nodes))
            return result

        debug.dump_inductor_provenance_info = dump_inductor_provenance_info
        setattr(CompiledFxGraph, "post_compile", post_compile_and_keep)  # noqa: B010 (a method)

    def _keep(self, graph: Any, nodes: dict[str, NodesOfLaunch] | None) -> None:
        key = graph._fx_graph_cache_key
        if not isinstance(key, str) or not _KEY.match(key) or len(self.graphs) >= _MOST_GRAPHS:
            return
        stacks = msgspec.json.decode(graph.inductor_provenance_stack_traces_str or "{}", type=dict[str, list[str]])
        copy = _copy_of(key)
        if nodes:
            probe(functools.partial(_write, copy, nodes))
        else:
            nodes = probe(lambda: msgspec.json.decode(copy.read_bytes(), type=_Stored).nodes) or {}
        kernels = kernels_of_wrapper(graph.source_code, stacks, nodes)
        if kernels:
            self.graphs[key] = CompiledGraph(key, kernels)


PROVENANCE = Provenance()
"""Of this process: what torch.compile made does not belong to one recording."""


def module_path(stack: Mapping[Any, Any]) -> str:
    """The path of a node's innermost module below the compiled one.

    Args:
        stack: ``nn_module_stack`` of a node: values are pairs of a path such as "L['self'].blocks.0" and a class.
    """
    text = str(list(stack.values())[-1][0])
    return _CHILD.sub(r".\1", _ROOT.sub("", text, count=1)).strip(".")


def _nodes_of_graph() -> dict[str, NodesOfLaunch]:
    """By handle the ops and modules of its nodes, from the graph that is being compiled."""
    from torch._inductor import debug
    from torch._inductor.virtualized import V

    graph: Any = V.graph.module
    nodes = {node.name: node for node in graph.graph.nodes}
    table = debug._inductor_triton_kernel_to_post_grad_node_info
    return {
        handle: _of_nodes(handle, [nodes[name] for name in names if name in nodes]) for handle, names in table.items()
    }


def _of_nodes(handle: str, nodes: Sequence[Any]) -> NodesOfLaunch:
    computing = _computing(handle, nodes)
    ops = dict.fromkeys(op for node in computing if (op := _op_of(node)))
    moved: dict[str, int] = {}
    for node in computing:
        module = _module_of(node)
        if module is not None:
            moved[module] = moved.get(module, 0) + (probe(functools.partial(_moved_bytes, node, nodes)) or 0)
    lines = places_of([str(node.meta.get("stack_trace") or "") for node in computing])
    return NodesOfLaunch(tuple(ops), tuple(moved), tuple(moved.values()) if any(moved.values()) else (), lines)


def _computing(handle: str, nodes: Sequence[Any]) -> Sequence[Any]:
    """Those that the launch computes: its handle names what its inputs are made of, too."""
    # A library call computes its own op alone.
    called = recorded_name(handle.rpartition(":")[0]).replace("::", ".")
    own = [node for node in nodes if str(getattr(node.target, "overloadpacket", node.target)) == called]
    # Equal constants and views of several modules are one node, of the first of them.
    return own or [node for node in nodes if node.all_input_nodes and _op_of(node) not in _VIEWS] or nodes


def _moved_bytes(node: Any, fused: Sequence[Any]) -> int:
    """What a node reads from outside its kernel, and writes for nodes outside."""
    inside = set(fused)
    read = sum(_bytes_of(one) for one in node.all_input_nodes if one not in inside)
    return int(read + (_bytes_of(node) if any(user not in inside for user in node.users) else 0))


def _bytes_of(node: Any) -> int:
    values = node.meta.get("val")
    total = 0
    for value in values if isinstance(values, (list, tuple)) else [values]:
        elements = getattr(value, "element_size", lambda: 0)()
        for size in getattr(value, "shape", ()):
            # A size that varies has the value with which the graph was compiled.
            elements *= size if isinstance(size, int) else size.node.hint
        total += elements
    return total


def _op_of(node: Any) -> str:
    op = node.meta.get("original_aten")
    return str(getattr(op, "_overloadpacket", op) or "")


def _module_of(node: Any) -> str | None:
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack")
    if stack:
        return module_path(stack)
    if node.meta.get("is_gradient_acc"):
        return None
    if node.meta.get("stack_trace"):
        # The compiled module's own code has lines, but no stack of modules.
        return ""
    # A pass over the graph made it, of what it takes.
    return next((path for one in node.all_input_nodes if one.meta.get("stack_trace") and one.all_input_nodes
                 and (path := _module_of(one)) is not None), None)  # fmt: skip


def _copy_of(key: str) -> Path:
    from torch._inductor.runtime.cache_dir_utils import cache_dir

    return Path(cache_dir()) / _FOLDER / f"{key}.json"


def _write(path: Path, nodes: dict[str, NodesOfLaunch]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        file.write(msgspec.json.encode(_Stored(nodes)))


def _is_compile_worker() -> bool:
    """Whether this process compiles kernels for another: Inductor's workers inherit what is injected."""
    return any("compile_worker" in argument for argument in sys.orig_argv)
