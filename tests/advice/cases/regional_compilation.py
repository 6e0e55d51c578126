"""Cases of `regional_compilation`: six blocks in one graph, three, a cached result, and a short compilation."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from advice.case import Case
from advice.recordings import GEMM

from tb_dlprof_plugin.analysis.compiled_kernels import compiled_table
from tb_dlprof_plugin.model.compiled_graph import CompiledKernel
from tb_dlprof_plugin.model.run_facts import Compilation, RunFacts
from tb_dlprof_plugin.profile_view import ProfileView


def _blocks(number: int, seconds: int, misses: int = 1) -> Callable[[Any], ProfileView]:
    """A graph with two launches of each block, and two of the head."""
    compiled = Compilation("0/0", "net.py:7 forward", seconds * 10**9, backward_ns=10**9, cache_misses=misses)

    def view(trace: Any) -> ProfileView:
        trace.gpu()
        for index in range(2):
            at = 1000 * index
            trace.step(4 + index, at, 1000)
            trace.op("Torch-Compiled Region: 0/0", at + 100, 300)
            trace.launch(GEMM, at + 110, at + 150, 50)
        profile = trace.view(facts=RunFacts(compilations=[compiled])).profile
        paths = [f"blocks.{index}.{part}" for index in range(number) for part in ("norm", "fc")] + ["head", "head"]
        strings = list(profile.strings)
        table = compiled_table([("key", CompiledKernel("triton_0", modules=(path,))) for path in paths], strings)
        return ProfileView(dataclasses.replace(profile, strings=strings, compiled_kernels=table))

    return view


CASES = (
    Case(
        "six blocks",
        _blocks(6, 41),
        "fired",
        "86 % of its launches are of model.blocks, 6 blocks",
        # (42 s - 5 s) x 12/14 x 5/6
        readings={
            "Blocks": 6, "Time of first compilations": 42 * 10**9, "Expected shortening of the start": 26_428_571_428
        },
        saving_ns=None,
        says=("for block in model.blocks:", "about 26 s (24 to 29)"),
    ),
    Case("three blocks", _blocks(3, 41), "silent", "No graph holds 4 blocks"),
    Case("a short compilation", _blocks(6, 3), "silent", "take 4.0 s"),
    Case("cached results", _blocks(6, 41, misses=0), "silent", "take 0.0 s"),
    Case("compilations were not recorded", lambda trace: trace.step(0, 0, 100) or trace.op("aten::mm", 1, 2),
         "not_applicable", "compilations"),
)  # fmt: skip
