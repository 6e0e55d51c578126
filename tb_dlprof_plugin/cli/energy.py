"""``tb-dlprof energy``: the Energy page on the terminal."""

from __future__ import annotations

from tb_dlprof_plugin.api.rows import rows_table
from tb_dlprof_plugin.cli.options import Limit
from tb_dlprof_plugin.cli.page_command import page_command
from tb_dlprof_plugin.cli.printing import UNKNOWN, print_table
from tb_dlprof_plugin.cli.rows import print_rows
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.model.formatting import energy as joules_text
from tb_dlprof_plugin.pages.energy import (
    EnergyChoice,
    EnergyModule,
    EnergyOp,
    EnergyPage,
    EnergyPart,
    EpochEnergy,
    energy_page,
)
from tb_dlprof_plugin.pages.quantities import JOULES, JOULES_PER_SAMPLE, WATTS


@page_command(energy_page, lambda page: rows_table(EnergyChoice, page.choices))
def energy(page: EnergyPage, limit: Limit = 15) -> None:
    """Show the energy of a step and where it goes.

    Measured by the GPU's own counter over steps without the profiler; parts are estimated and scaled to it.
    """
    say(page.headline, "")
    if page.joules_per_step is not None:
        _print_measured(page)
    if page.parts:
        print_rows(EnergyPart, page.parts)
        say(f"The estimate from kernels alone is off the counter by {page.residual_percent:+.1f} %.", "")
    if len(page.modules) > 1:
        print_rows(EnergyModule, page.modules[:limit])
        say()
    if page.ops:
        print_rows(EnergyOp, page.ops[:limit])
        say()
    if len(page.choices) > 1:
        print_rows(EnergyChoice, page.choices)
        for row in page.choices:
            if row.why:
                say(f"{row.precision}: {UNKNOWN}: {row.why}")
        say()
    if page.epoch is not None:
        _print_epoch(page.epoch)
    for why in page.unknown.values():
        if why != page.headline:
            say(why)


def _print_measured(page: EnergyPage) -> None:
    rows = [
        (JOULES.label, joules_text(page.joules_per_step or 0.0)),
        ("Between", f"{joules_text(page.low_joules or 0.0)} and {joules_text(page.high_joules or 0.0)}"),
        (JOULES_PER_SAMPLE.label, UNKNOWN if page.joules_per_sample is None else joules_text(page.joules_per_sample)),
        (WATTS.label, _watts(page.watts)),
        ("Power at rest", _watts(page.idle_watts)),
        ("Power limit", _watts(page.power_limit_watts)),
        ("Clock", UNKNOWN if page.sm_clock_mhz is None else f"{page.sm_clock_mhz:,} MHz"),
        ("Temperature", UNKNOWN if page.temperature_c is None else f"{page.temperature_c} °C"),
        ("Measured over", UNKNOWN if page.seconds is None else f"{page.seconds:.1f} s"),
    ]
    print_table((("Measured", "left"), ("", "right")), rows)
    say()


def _watts(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:,.0f} W"


def _hours(hours: float) -> str:
    return f"{hours:.3g} h" if hours >= 1 else f"{60 * hours:.3g} min"


def _print_epoch(epoch: EpochEnergy) -> None:
    ranks = f" of {epoch.processes} processes" if epoch.processes > 1 else ""
    text = f"An epoch of {epoch.steps:,} steps{ranks}: {_hours(epoch.hours)}, {epoch.kwh:.3g} kWh"
    if epoch.cost is not None:
        text += f", costs {epoch.cost:.3g}"
    if epoch.co2_grams is not None:
        text += f", {epoch.co2_grams:,.0f} g of CO2"
    say(f"{text}.")
