"""Repeated blocks are compiled one by one in a whole.

A model compiled as a whole whose graph holds many blocks of the same kind, and takes long to compile.

Why it matters: Inductor generates and compiles the same code for each block again. Compiled by themselves, equal blocks
share one compilation.

What to change: Compile the block in place of the model: `block.compile()` for each.

When to leave it: The start does not matter, or kernels that are fused across blocks save more than the start costs.

To confirm: Record again: the time of compilations in `tb-dlprof compiled` is shorter, and the step no longer.

Read on:
- [PyTorch: regional compilation](https://docs.pytorch.org/tutorials/recipes/regional_compilation.html)
"""

from __future__ import annotations

from tb_dlprof_plugin.advice.rule import EvidenceRow, Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.thresholds import SpeedupRange
from tb_dlprof_plugin.metrics.compiled_code import repeated_blocks
from tb_dlprof_plugin.profile_view import ProfileView

RULE = Rule(__name__, __doc__, needs=(Need.COMPILATIONS,), confidence="low", severity="low")

FEWEST_BLOCKS = 4
"""With three blocks two thirds of their compilation could go, at most. Ours."""
LONG_COMPILATION_SECONDS = 10.0
"""Of one start, with a cold cache. Ours: a GPT of six blocks takes about 20 s on a machine with an H100."""
FIXED_SECONDS = SpeedupRange(2.0, 5.0, 8.0)
"""Of a first compilation, whatever it compiles: imports, the first kernel. Ours: a GPT of six blocks took 19.8 s as a
whole and 8.2 s by blocks, where an equal share for each block would be 3.8 s (`lab/compiled/pairs.py`, H100)."""


def check(context: RuleContext) -> Finding | Silent:
    """Fires where one graph holds many equal blocks, and its compilation takes long."""
    first = [one for one in context.facts.compilations if not one.recompile_reason]
    seconds = sum(one.duration_ns + one.backward_ns for one in first if one.cache_misses) / 1e9
    if seconds < LONG_COMPILATION_SECONDS:
        return Silent(f"First compilations without a cached result take {seconds:.1f} s.")
    blocks = repeated_blocks(context.view)
    if blocks is None or blocks.count < FEWEST_BLOCKS:
        return Silent(f"No graph holds {FEWEST_BLOCKS} blocks of the same kind.")
    shorter = [
        max(seconds - fixed, 0.0) * blocks.share * (1 - 1 / blocks.count)
        for fixed in (FIXED_SECONDS.high, FIXED_SECONDS.expected, FIXED_SECONDS.low)
    ]
    path = f"model.{blocks.path}" if blocks.path else "model"
    place = first[0].place
    return RULE.finding(
        title=f"{blocks.count} equal blocks are compiled one by one: {seconds:.0f} s of the start",
        seen=f"{place} is compiled as a whole. {100 * blocks.share:.0f} % of its launches are of {path}, "
        f"{blocks.count} blocks. Compiled once, they should shorten the start by about {shorter[1]:.0f} s "
        f"({shorter[0]:.0f} to {shorter[2]:.0f}).",
        readings=[
            Reading("Blocks", blocks.count, "count", FEWEST_BLOCKS),
            Reading("Time of first compilations", int(seconds * 1e9), "ns", LONG_COMPILATION_SECONDS * 1e9),
            Reading("Expected shortening of the start", int(shorter[1] * 1e9), "ns"),
        ],
        evidence=[
            EvidenceRow(f"{one.place}: compilation", one.duration_ns + one.backward_ns, None, "compiled", "")
            for one in first
        ],
        change=f"Compile the blocks of {path} in place of {place}.",
        code=f"for block in {path}:\n    block.compile()\n",
        saving="It is time of the start, and not of each step.",
    )


def was_applied(base: ProfileView, candidate: ProfileView) -> str:
    """A graph with fewer blocks."""
    before, after = repeated_blocks(base), repeated_blocks(candidate)
    fewer = before is not None and (after is None or after.count < before.count)
    return "blocks compiled by themselves" if candidate.profile.facts.compilations and fewer else ""
