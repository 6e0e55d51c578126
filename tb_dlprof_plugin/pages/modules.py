"""The Modules page: the module tree with flattened times, calls and Tensor Core use, and the work outside of it."""

from __future__ import annotations

import re
from typing import Annotated

import msgspec
import numpy as np

from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.module_tree import ModuleTree, module_tree
from tb_dlprof_plugin.metrics.modules import OUTSIDE_ROLES, ModuleTotals, NodeTotals, module_totals
from tb_dlprof_plugin.metrics.tensor_cores import utilization
from tb_dlprof_plugin.model.formatting import share
from tb_dlprof_plugin.model.profile import CallKind
from tb_dlprof_plugin.model.remedies import remedies_for, sentence
from tb_dlprof_plugin.pages.columns import Column, Definition
from tb_dlprof_plugin.pages.common import ROLES, Coverage, Role, SelectedRange, coverage_of, selected_range
from tb_dlprof_plugin.pages.sentences import TextPart, named_shares, plain, text_of
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.store.run_ref import RunRef

NOTE_FROM_STACKS = "modules_from_stacks"
"""Code of the note that module paths were made of Python stack frames."""

_INSTANCE_NUMBER = re.compile(r"_\d+$")


class ModuleRow(msgspec.Struct, frozen=True):
    """One module with all modules below it, or (``role`` set, ``path`` empty) the work of one role outside all modules.

    Path "" without a role is the whole model. ``order`` counts modules as they were first called, each before those in
    it; ``children`` counts the modules right below. GPU times are flattened but for ``gpu_sum_ns`` and its share
    ``gpu_percent``; they are None without a GPU. Calls, forward and backward times are None for a role.
    """

    path: Annotated[str, Column("Module", "modulePath", width=280)]
    type: Annotated[
        str,
        Column("Type", missing="–", width=130, terminal=False),
        Definition("moduleType", "Class of the module, where it was recorded."),
    ]
    gpu_ns: Annotated[
        int | None,
        Column("GPU time", tasks="time tensor_cores", sums=True, gpu=True),
        Definition(
            "moduleGpu",
            "Time in which kernels, copies and sets of the module ran, forward and backward: the union of their "
            "intervals.",
        ),
    ]
    gpu_percent: Annotated[
        float | None,
        Column("GPU %", tasks="time", bar=True, gpu=True),
        Definition("moduleShare", "Share of the summed GPU time of all ops in the selected iterations."),
    ]
    gpu_forward_ns: Annotated[int | None, Column("Forward", "moduleForward", "time", sums=True, missing="–", gpu=True)]
    gpu_backward_ns: Annotated[
        int | None, Column("Backward", "moduleBackward", "time", sums=True, missing="–", gpu=True)
    ]
    gpu_own_ns: Annotated[int | None, Column("Own", "moduleOwn", "time", sums=True, gpu=True)]
    calls: Annotated[
        int | None,
        Column("Calls", tasks="time cpu", sums=True, missing="–"),
        Definition("moduleCalls", "How often the module's forward ran in the selected iterations."),
    ]
    eligible_ns: Annotated[
        int | None,
        Column("TC eligible", tasks="tensor_cores", sums=True, gpu=True, terminal=False),
        Definition("moduleEligible", "Summed time of the kernels in ops that Tensor Cores could run."),
    ]
    tc_ns: Annotated[
        int | None,
        Column("On TC", tasks="tensor_cores", sums=True, gpu=True, terminal=False),
        Definition("moduleTc", "The part of the eligible time that ran on Tensor Cores."),
    ]
    utilization_percent: Annotated[
        float | None,
        Column("TC utilization", tasks="tensor_cores", absent=("eligible_ns", "0"), gpu=True),
        Definition("moduleUtilization", "Tensor Core time over eligible time; – where nothing is eligible."),
    ]
    tc_eligible_ops: Annotated[
        int | None, Column("Eligible ops", "Ops that Tensor Cores could run.", "tensor_cores", gpu=True)
    ]
    tc_using_ops: Annotated[
        int | None, Column("Using TC", "Ops of which a kernel ran on Tensor Cores.", "tensor_cores", gpu=True)
    ]
    kernel_calls: Annotated[
        int | None,
        Column("Kernels", tasks="time", sums=True, gpu=True),
        Definition("moduleKernels", "Kernels, copies and sets launched in the selected iterations."),
    ]
    cpu_ns: Annotated[
        int,
        Column("CPU time", tasks="cpu", sums=True),
        Definition(
            "moduleCpu", "CPU time inside the module's forward and in the backward of its ops: the union per thread."
        ),
    ]
    cpu_percent: Annotated[
        float | None,
        Column("CPU %", tasks="cpu", bar=True, terminal=False),
        Definition("moduleCpuShare", "Share of the CPU time of all modules and of the work outside them."),
    ]
    cpu_forward_ns: Annotated[
        int | None, Column("CPU forward", "moduleForward", "cpu", sums=True, missing="–", terminal=False)
    ]
    cpu_backward_ns: Annotated[
        int | None, Column("CPU backward", "moduleBackward", "cpu", sums=True, missing="–", terminal=False)
    ]
    cpu_own_ns: Annotated[int, Column("CPU own", "moduleOwn", "cpu", sums=True, terminal=False)]
    gpu_min_ns: Annotated[int | None, Column("GPU min", "moduleMin", "time", gpu=True, terminal=False)]
    gpu_max_ns: Annotated[int | None, Column("GPU max", "moduleMax", "time", gpu=True, terminal=False)]
    gpu_sum_ns: Annotated[
        int | None,
        Column("GPU sum", sums=True, gpu=True, terminal=False),
        Definition("moduleGpuSum", "Summed GPU time of the ops in it; above the GPU time where ops overlap."),
    ]
    cpu_min_ns: Annotated[int, Column("CPU min", "moduleMin", "cpu", terminal=False)]
    cpu_max_ns: Annotated[int, Column("CPU max", "moduleMax", "cpu", terminal=False)]
    op_calls: Annotated[
        int,
        Column("Op calls", tasks="cpu", sums=True),
        Definition("moduleOpCalls", "Calls of outermost ops in the selected iterations."),
    ]
    ops: Annotated[
        int,
        Column("Ops", tasks="cpu", terminal=False),
        Definition("moduleOps", "Different ops: module, type and direction."),
    ]
    order: int
    role: Role | None
    children: int
    calls_per_iteration: float | None
    gpu_average_ns: int | None
    cpu_average_ns: int


class ModulesPage(msgspec.Struct, frozen=True):
    """``rows`` by falling GPU time (CPU time without a GPU), a module always before those below it.

    So the first of them are a tree too; ``total_rows`` counts them before the row limit. Without recorded modules there
    are no rows: ``remedy`` says what to do, for PyTorch's own profiler it is "".
    ``model`` names the root. ``from_stacks``: paths are made of Python stack frames, "ResNet_0.Conv2d_3".
    """

    ref: RunRef
    headline: str
    headline_parts: list[TextPart]
    range: SelectedRange
    has_gpu: bool
    model: str
    from_stacks: bool
    remedy: str
    rows: list[ModuleRow]
    outside: list[ModuleRow]
    total_rows: int
    coverage: Coverage


def modules_page(view: ProfileView, ref: RunRef, selection: Selection) -> ModulesPage:
    """All modules that ran in the selected iterations."""
    source = view.profile.source
    from_stacks = any(note.code == NOTE_FROM_STACKS for note in view.profile.notes)
    model = "all modules" if from_stacks else (view.profile.facts.model or "whole model")
    tree, totals = module_tree(view), module_totals(view, selection)
    rows: list[ModuleRow] = []
    outside: list[ModuleRow] = []
    if tree is not None and totals is not None:
        cells = _Cells(view, selection, totals)
        rows = _module_rows(view, tree, totals, cells, from_stacks)
        outside = _outside_rows(totals, cells)
    headline = _headline(rows, model, view.profile.has_gpu)
    return ModulesPage(
        ref=ref,
        headline=text_of(headline),
        headline_parts=headline,
        range=selected_range(view, selection),
        has_gpu=view.profile.has_gpu,
        model=model,
        from_stacks=from_stacks,
        remedy=""
        if source.format == "kineto"
        else sentence("Module names were not recorded", remedies_for(source).modules),
        rows=rows,
        outside=outside,
        total_rows=len(rows),
        coverage=coverage_of(view),
    )


class _Cells:
    """The columns that modules and roles have in common, and the totals of their shares."""

    def __init__(self, view: ProfileView, selection: Selection, totals: ModuleTotals) -> None:
        self.has_gpu = view.profile.has_gpu
        self.iterations = selection.count
        self.knows_gpu = self.has_gpu and view.compute_capability is not None
        self.all_gpu_ns = int(totals.inside.gpu_sum_ns[0] + totals.outside.gpu_sum_ns.sum())
        self.all_cpu_ns = int(totals.inside.cpu.total[0] + totals.outside.cpu.total.sum())

    def row(
        self,
        of: NodeTotals,
        node: int,
        *,
        path: str = "",
        order: int = 0,
        role: Role | None = None,
        type: str = "",
        children: int = 0,
        calls: int | None = None,
        own_ns: tuple[int, int] | None = None,
        gpu_halves_ns: tuple[int, int] | None = None,
        cpu_halves_ns: tuple[int, int] | None = None,
    ) -> ModuleRow:
        """One row; the pairs are (GPU, CPU) and (forward, backward), by default all and unknown."""
        gpu, cpu = of.gpu, of.cpu
        gpu_ns, cpu_ns, gpu_sum = int(gpu.total[node]), int(cpu.total[node]), int(of.gpu_sum_ns[node])
        own_gpu, own_cpu = own_ns or (gpu_ns, cpu_ns)
        gpu_forward, gpu_backward = gpu_halves_ns or (None, None)
        cpu_forward, cpu_backward = cpu_halves_ns or (None, None)
        has_gpu = self.has_gpu
        return ModuleRow(
            path=path,
            order=order,
            role=role,
            type=type,
            children=children,
            calls=calls,
            calls_per_iteration=None if calls is None else calls / self.iterations,
            gpu_ns=gpu_ns if has_gpu else None,
            gpu_percent=percent(gpu_sum, self.all_gpu_ns) if has_gpu else None,
            gpu_forward_ns=gpu_forward if has_gpu else None,
            gpu_backward_ns=gpu_backward if has_gpu else None,
            gpu_own_ns=own_gpu if has_gpu else None,
            gpu_sum_ns=gpu_sum if has_gpu else None,
            gpu_average_ns=round(gpu_ns / self.iterations) if has_gpu else None,
            gpu_min_ns=int(gpu.low[node]) if has_gpu else None,
            gpu_max_ns=int(gpu.high[node]) if has_gpu else None,
            cpu_ns=cpu_ns,
            cpu_percent=percent(cpu_ns, self.all_cpu_ns),
            cpu_forward_ns=cpu_forward,
            cpu_backward_ns=cpu_backward,
            cpu_own_ns=own_cpu,
            cpu_average_ns=round(cpu_ns / self.iterations),
            cpu_min_ns=int(cpu.low[node]),
            cpu_max_ns=int(cpu.high[node]),
            kernel_calls=int(of.kernel_calls[node]) if has_gpu else None,
            op_calls=int(of.op_calls[node]),
            ops=int(of.ops[node]),
            tc_eligible_ops=int(of.eligible_ops[node]) if self.knows_gpu else None,
            tc_using_ops=int(of.tensor_core_ops[node]) if has_gpu else None,
            eligible_ns=int(of.eligible_ns[node]) if has_gpu else None,
            tc_ns=int(of.tensor_core_ns[node]) if has_gpu else None,
            utilization_percent=(
                utilization(int(of.tensor_core_ns[node]), int(of.eligible_unknown_ns[node]), int(of.eligible_ns[node]))
                if has_gpu
                else None
            ),
        )


def _module_rows(
    view: ProfileView, tree: ModuleTree, totals: ModuleTotals, cells: _Cells, from_stacks: bool
) -> list[ModuleRow]:
    inside = totals.inside
    # Where ops state their modules, as XLA's do, no range shows how often one was called.
    has_calls = bool((view.profile.ops.kind == CallKind.MODULE).any())
    ran = (tree.rolled_up(totals.calls) > 0) | (inside.op_calls > 0) | (inside.cpu.total > 0) | (inside.gpu.total > 0)
    ran[0] = True
    children = np.bincount(tree.parent[1:][ran[1:]], minlength=len(tree))
    gpu, cpu, nodes = inside.gpu.total, inside.cpu.total, np.flatnonzero(ran)
    # By GPU time, then CPU time, then depth: neither time of a module is below that of one inside it.
    order = nodes[np.lexsort((tree.depth[nodes], -cpu[nodes], -gpu[nodes]))]
    return [
        cells.row(
            inside,
            node,
            path=tree.path[node],
            order=node,
            type=_type_of(view, tree.path[node], from_stacks),
            children=int(children[node]),
            # Above several outermost views there is no module that could be called.
            calls=int(totals.calls[node]) if has_calls and (tree.path[node] or not from_stacks) else None,
            own_ns=(int(totals.own_gpu_ns[node]), int(totals.own_cpu_ns[node])),
            gpu_halves_ns=(int(totals.forward_gpu_ns[node]), int(totals.backward_gpu_ns[node])),
            cpu_halves_ns=(int(totals.forward_cpu_ns[node]), int(totals.backward_cpu_ns[node])),
        )
        for node in order.tolist()
    ]


def _outside_rows(totals: ModuleTotals, cells: _Cells) -> list[ModuleRow]:
    of = totals.outside
    time = of.gpu.total if cells.has_gpu else of.cpu.total
    return [
        cells.row(of, index, role=ROLES[OUTSIDE_ROLES[index]])
        for index in np.argsort(-time, kind="stable").tolist()
        if of.cpu.total[index] or of.gpu.total[index] or of.op_calls[index]
    ]


def _type_of(view: ProfileView, path: str, from_stacks: bool) -> str:
    """The module's class, "" if it was not recorded: stacks name views "Conv2d_3", the hook records the model's
    class."""
    if from_stacks:
        return _INSTANCE_NUMBER.sub("", path.rpartition(".")[2])
    return (view.profile.facts.model or "") if not path else ""


_NAMED = 3
"""Modules in the headline."""


def _headline(rows: list[ModuleRow], model: str, has_gpu: bool) -> list[TextPart]:
    if not rows:
        return [plain("Module names were not recorded, so the time cannot be shown by module.")]
    unit = "GPU" if has_gpu else "CPU"
    took = {row.path: (row.gpu_percent if has_gpu else row.cpu_percent) or 0.0 for row in rows}
    if len(rows) == 1:
        return [plain(f"{model} took {share(took[''], 1)} of the {unit} time; no module inside it was recorded.")]
    below: dict[str, list[str]] = {}
    for row in rows[1:]:
        below.setdefault(row.path.rpartition(".")[0], []).append(row.path)
    # Modules with a single child add no information.
    first = below[""]
    while len(first) == 1 and first[0] in below:
        first = below[first[0]]
    count = "1 module" if len(rows) == 2 else f"{len(rows) - 1} modules"
    shares = named_shares([(path, path, took[path]) for path in first[:_NAMED]], "module", unit, digits=1)
    return [*shares, plain(f"; {count} ran and took {share(took[''], 1)}.")]
