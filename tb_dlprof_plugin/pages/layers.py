"""The layers that take most of a step, for the Summary: modules, or op types where no module was recorded."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from tb_dlprof_plugin.metrics.largest_modules import largest_modules
from tb_dlprof_plugin.pages.columns import Column, Definition
from tb_dlprof_plugin.pages.op_types import op_type_rows
from tb_dlprof_plugin.profile_view import ProfileView, Selection

_LAYERS = 5


class Layer(msgspec.Struct, frozen=True):
    """A module or op type; times (ns) are sums over the selected iterations, on the GPU or, without one, on the CPU.

    ``percent`` is the share of the time of all ops, as on the page that lists them. ``holds`` counts the modules right
    below.
    """

    kind: Literal["module", "op_type"]
    id: Annotated[str, Column("Layer", "A module by its path, or an op type where no module was recorded.", width=280)]
    total_ns: Annotated[
        int,
        Column(
            "Time", "Time of its work on the GPU or, without one, on the CPU; as on the page that lists it.", sums=True
        ),
    ]
    forward_ns: Annotated[int, Column("Forward", "moduleForward", sums=True)]
    backward_ns: Annotated[int, Column("Backward", "moduleBackward", sums=True)]
    percent: Annotated[
        float,
        Column("Share", bar=True),
        Definition("layerShare", "Share of the time of all ops in the selected iterations."),
    ]
    holds: int


def top_layers(view: ProfileView, selection: Selection) -> list[Layer]:
    """The five largest, by falling time."""
    modules = [
        Layer("module", one.path, one.total_ns, one.forward_ns, one.backward_ns, one.percent, one.holds)
        for one in largest_modules(view, selection, _LAYERS)
    ]
    return modules or [
        Layer(
            kind="op_type",
            id=row.op_type,
            total_ns=row.forward_ns + row.backward_ns + row.rest_ns,
            forward_ns=row.forward_ns,
            backward_ns=row.backward_ns,
            percent=row.percent or 0.0,
            holds=0,
        )
        for row in op_type_rows(view, selection)[:_LAYERS]
        if row.percent
    ]
