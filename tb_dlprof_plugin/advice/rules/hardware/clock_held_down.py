"""The GPU's clock is held down by power or heat.

Readings of the driver during steps without the profiler. They say that the power limit or heat held the clock below its
maximum.

Why it matters: Kernels that compute products take as much longer as the clock is lower. A limit of power is usual under
full load on Tensor Cores. What counts there is energy per product; heat says that something is wrong with the cooling.
Runs with different clocks differ in their step time for this reason alone.

What to change: Power: compute in a narrower precision, which takes less energy per product; have the limit raised, if
it was lowered (`nvidia-smi -q -d POWER`). Heat: see to the cooling, and to the machine's other GPUs.

When to leave it: The GPU works at its own limit, and the step is as short as it can be.

To confirm: Record again: the Energy page should name no limit, or a higher clock.

Read on:
- [NVML: reasons that hold clocks down](https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html)
"""

from __future__ import annotations

from tb_dlprof_plugin.advice.rule import EvidenceRow, Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.text import milliseconds
from tb_dlprof_plugin.metrics.energy import energy_missing, step_energy
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.names.gpu_power import HEAT, POWER

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.PROCESS, Need.GPU),
    confidence="high",
)

CLOCK_HELD_READINGS_PERCENT = 50.0
"""Of the readings of the driver without the profiler. Ours: a limit that is named now and then costs little."""

CLOCK_HELD_PERCENT = 3.0
"""Below the maximum clock. Kernel times of one run differ by about this much."""


def check(context: RuleContext) -> Finding | Silent:
    """Fires where most readings name a limit and the clock is notably below its maximum."""
    energy = step_energy(context.view, context.view.selection())
    if energy is None:
        return Silent(energy_missing(context.view), applicable=False)
    named = {name: share for name, share in energy.limits.items() if name in POWER | HEAT}
    name, share = max(named.items(), key=lambda one: one[1], default=("", 0.0))
    clock, top = energy.sm_clock_mhz, context.facts.max_sm_clock_mhz
    at = f"{clock:,} MHz on average" if clock else "an unknown clock"
    if share < CLOCK_HELD_READINGS_PERCENT:
        return Silent(f"Nothing held the clock down in most of the readings: {at}, {energy.watts:.0f} W.")
    lower = 100.0 * (1 - clock / top) if clock and top else None
    if lower is not None and lower < CLOCK_HELD_PERCENT:
        return Silent(f"The {name} held the clock down by {max(lower, 0.0):.0f} % only.")
    hot = name in HEAT
    products = context.per_step(context.product_launches)
    limit = energy.power_limit_watts
    below = f"{at}, of {top:,} MHz at most" if top else at
    allowed = f" of the {limit:.0f} W allowed" if limit else ""
    return RULE.finding(
        title=f"The GPU's clock is {lower:.0f} % below its maximum: {name}"
        if lower is not None
        else f"The GPU's clock is held down: {name}",
        seen=f"In {share:.0f} % of the readings without the profiler the driver named the reason {name}: {below}. The "
        f"GPU took {energy.watts:.0f} W{allowed}"
        + (f" at up to {energy.temperature_c} °C." if energy.temperature_c is not None else "."),
        readings=[
            Reading(f"Readings that name: {name}", share, "percent", CLOCK_HELD_READINGS_PERCENT),
            Reading("Clock below the maximum", lower, "percent", CLOCK_HELD_PERCENT),
            Reading("Mean power (W)", energy.watts, "count"),
            Reading("Kernel time of products, per step", products, "ns"),
        ],
        evidence=[
            EvidenceRow("Kernels of products", products, percent(products, context.recorded_step_ns), "energy", "")
        ],
        change=(
            "See to the GPU's cooling."
            if hot
            else "Compare only runs with the same clock. If the limit is below what the board allows, have it raised; "
            "else a narrower precision does more per joule."
        ),
        saving="What another limit or better cooling would gain is not known. At full clock the "
        f"{milliseconds(products)} of products a step would take at most "
        + (f"{lower:.0f} % less." if lower is not None else "as much less as the clock rises."),
    ).but(severity="medium" if hot else "low")
