"""``tb-dlprof tensor-cores``: the Tensor Cores page on the terminal."""

from __future__ import annotations

from tb_dlprof_plugin.cli.options import Limit
from tb_dlprof_plugin.cli.page_command import page_command
from tb_dlprof_plugin.cli.printing import percent, time
from tb_dlprof_plugin.cli.rows import print_rows
from tb_dlprof_plugin.cli.sums import Sums
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.model.formatting import interval
from tb_dlprof_plugin.pages.common import Slice
from tb_dlprof_plugin.pages.tensor_core_reasons import IneligibleWork, ReasonTotal
from tb_dlprof_plugin.pages.tensor_cores import TensorCoreKernel, TensorCoreOp, TensorCoresPage, tensor_cores_page


@page_command(tensor_cores_page)
def tensor_cores(page: TensorCoresPage, sums: Sums, limit: Limit = 30) -> None:
    """List the ops that can use Tensor Cores.

    Whether they do, at which precision, and if not, why.
    """
    say(f"{page.headline} {sums.words}", "")
    if page.by_precision:
        print_rows(Slice, page.by_precision, sums=sums, headings={"label": "Eligible kernel time"})
        say()
    for sentence in page.measured:
        say(sentence, "")
    _print_reasons(page, sums)
    if page.ops:
        cells = {"could_save_ns": lambda op: _saving(sums, op), "reason": lambda op: _reasons(sums, op)}
        print_rows(TensorCoreOp, page.ops[:limit], sums=sums, cells=cells)
    elif page.kernels:
        print_rows(TensorCoreKernel, page.kernels[:limit], sums=sums, without=("measured_percent",))
    sampled = [kernel for kernel in page.kernels if kernel.measured_percent is not None]
    if sampled:
        say()
        print_rows(TensorCoreKernel, sampled[:limit], sums=sums)
    if page.total_rows > limit:
        say("", f"{page.total_rows - limit} more; --limit {page.total_rows} prints all.")


def _print_reasons(page: TensorCoresPage, sums: Sums) -> None:
    if page.by_reason:
        headings = {"label": "Off the Tensor Cores", "saved_ns": "Could save"}
        cells = {"saved_ns": lambda total: _total(sums, total)}
        print_rows(ReasonTotal, page.by_reason, sums=sums, headings=headings, cells=cells)
        say()
    if page.saving is not None:
        saving = page.saving
        say(
            f"Estimated saving a step: {time(saving.expected_ns)} ({percent(saving.percent)}), "
            f"{interval(saving.low_ns, saving.high_ns, lambda ns: time(round(ns)))}. {saving.derivation}",
            "",
        )
    if page.ineligible:
        print_rows(IneligibleWork, page.ineligible, sums=sums, headings={"op_type": "Cannot use Tensor Cores"})
        say()


def _saving(sums: Sums, op: TensorCoreOp) -> str:
    return "–" if op.could_save == "nothing" else _could_save(sums, op.saved_ns, op.at_most_ns)


def _could_save(sums: Sums, estimate_ns: int | None, at_most_ns: int | None) -> str:
    """The estimate, the bound ("at most"), or both; "unknown" without either."""
    if at_most_ns is None:
        return sums.time(estimate_ns)
    bound = f"at most {sums.time(at_most_ns)}"
    return bound if estimate_ns is None else f"{sums.time(estimate_ns)} and {bound}"


def _total(sums: Sums, total: ReasonTotal) -> str:
    # Kernels around a product are part of it: there is no remedy.
    return "–" if total.id == "helpers" else _could_save(sums, total.saved_ns, total.at_most_ns)


def _reasons(sums: Sums, op: TensorCoreOp) -> str:
    """The main reason, then the others and the helper kernels of a product on Tensor Cores, with their times."""
    others = [f"{reason.label} {sums.time(reason.time_ns)}" for reason in op.reasons[1:]]
    others += [
        f"{what} {sums.time(value)}"
        for what, value in (("changing layouts", op.layout_ns), ("kernels around a product", op.helpers_ns))
        if value
    ]
    also = ", ".join(others)
    return f"{op.reason} Also: {also}." if op.reason and also else op.reason or also
