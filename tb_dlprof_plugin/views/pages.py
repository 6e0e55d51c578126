"""Every page of one run that needs nothing but the run and a range, by its name in the address."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tb_dlprof_plugin.frame import Frame, Selection
from tb_dlprof_plugin.views.advice import advice_page
from tb_dlprof_plugin.views.common import RunRef
from tb_dlprof_plugin.views.kernels import kernels_page
from tb_dlprof_plugin.views.launches import launches_page
from tb_dlprof_plugin.views.memory import memory_page
from tb_dlprof_plugin.views.modules import modules_page
from tb_dlprof_plugin.views.ops import ops_page
from tb_dlprof_plugin.views.overview import overview
from tb_dlprof_plugin.views.roofline import roofline_page
from tb_dlprof_plugin.views.tensor_cores import tensor_cores_page
from tb_dlprof_plugin.views.timeline.page import timeline_page
from tb_dlprof_plugin.views.trust import trust_page

PAGES: dict[str, Callable[[Frame, RunRef, Selection], msgspec.Struct]] = {
    "overview": overview,
    "ops": ops_page,
    "modules": modules_page,
    "kernels": kernels_page,
    "launches": launches_page,
    "timeline": timeline_page,
    "tensor_cores": tensor_cores_page,
    "roofline": roofline_page,
    "memory": memory_page,
    "advice": advice_page,
    "trust": trust_page,
}
