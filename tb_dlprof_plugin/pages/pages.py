"""Every page of one run whose only parameters are the run and a range, by its name in the URL."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tb_dlprof_plugin.pages.advice import advice_page
from tb_dlprof_plugin.pages.common import RunRef
from tb_dlprof_plugin.pages.kernels import kernels_page
from tb_dlprof_plugin.pages.launches import launches_page
from tb_dlprof_plugin.pages.memory import memory_page
from tb_dlprof_plugin.pages.modules import modules_page
from tb_dlprof_plugin.pages.ops import ops_page
from tb_dlprof_plugin.pages.overview import overview
from tb_dlprof_plugin.pages.roofline import roofline_page
from tb_dlprof_plugin.pages.tensor_cores import tensor_cores_page
from tb_dlprof_plugin.pages.timeline.page import timeline_page
from tb_dlprof_plugin.pages.trust import trust_page
from tb_dlprof_plugin.profile_view import ProfileView, Selection

PAGES: dict[str, Callable[[ProfileView, RunRef, Selection], msgspec.Struct]] = {
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
