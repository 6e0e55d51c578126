"""The GPU is larger than the training needs.

A training that leaves most of the GPU's time and memory unused. It would take hardly longer on a smaller GPU.

Why it matters: Where the CPU sets the pace, a GPU with several times the rate trains no faster. It costs and draws
several times as much.

What to change: Use a smaller GPU, share this one (MIG, MPS or several trainings on it), or give it more to do: a
larger batch, CUDA graphs, a compiled model.

When to leave it: The GPU would be idle otherwise, or the training is a trial of a larger one.

To confirm: Record on the smaller GPU and compare the steps.
"""

from __future__ import annotations

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.gpu_memory import gigabytes
from tb_dlprof_plugin.advice.rule import EvidenceRow, Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.precision_mode import precision_mode
from tb_dlprof_plugin.metrics.roofline import gpu_name
from tb_dlprof_plugin.names.gpu_memory import COMMON
from tb_dlprof_plugin.names.gpu_peaks import ceilings_of
from tb_dlprof_plugin.planning import Forecast, ForecastError, forecast
from tb_dlprof_plugin.planning.memory.capacity import capacity

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.PROCESS, Need.GPU),
    thresholds=("UNDERUTILIZED_GPU_PERCENT", "MEMORY_TO_FILL_PERCENT"),
    severity="low",
)

SMALLER_GPU_LONGER_PERCENT = 10.0
"""How much longer a step may be on a smaller GPU that is advised, at the upper end of its forecast. Ours: about the
median error of a forecast for another batch or precision (docs/forecast.md)."""


def check(context: RuleContext) -> Finding | Silent:
    """Forecasts the step on smaller GPUs of data centres, the smallest first."""
    own, name = ceilings_of(gpu_name(context.view)), gpu_name(context.view).removeprefix("NVIDIA ")
    peak = context.facts.peak_memory_reserved_bytes
    if own is None or peak is None:
        return Silent("The rates of the run's GPU are not known, or its memory was not recorded.", applicable=False)
    busy = percent(context.busy_ns, context.step_ns) or 0.0
    if busy >= thresholds.UNDERUTILIZED_GPU_PERCENT:
        return Silent(f"The GPU works {busy:.0f} % of the step.")
    smaller = [one for one in COMMON if _is_smaller(one, name, own.bytes_per_second) and _fits(context, one, peak)]
    if not smaller:
        return Silent(f"There is no smaller GPU in the table with room for {gigabytes(peak)}.")
    precision = "tf32" if precision_mode(context.view).precision == "tf32" else "fp32"
    why = ""
    for gpu in smaller:
        try:
            found = forecast(context.view, precision, None, gpu)
        except ForecastError as error:
            why = str(error)
            continue
        # No GPU is advised that may well be slower: the whole interval has to be near.
        longer = 100.0 * (found.high_ns / found.base_ns - 1)
        if longer <= SMALLER_GPU_LONGER_PERCENT:
            return _finding(context, name, gpu, found, busy, peak)
    if why:
        return Silent(f"The step on a smaller GPU cannot be forecast: {why}", applicable=False)
    return Silent("Smaller GPUs would or may take notably longer.")


def _finding(context: RuleContext, name: str, gpu: str, found: Forecast, busy: float, peak: int) -> Finding:
    longer = 100.0 * (found.high_ns / found.base_ns - 1)
    own, other = ceilings_of(gpu_name(context.view)), ceilings_of(gpu)
    rates = ""
    if own is not None and other is not None:
        rates = f", which moves {100 * other.bytes_per_second / own.bytes_per_second:.0f} % as many bytes a second"
    step, there = f"{ms(found.base_ns)}", f"{ms(found.predicted_ns)}"
    return RULE.finding(
        title=f"A smaller GPU would train nearly as fast: {gpu} in place of {name}",
        seen=f"The GPU works {busy:.0f} % of the step, and the allocator took {gigabytes(peak)} of its memory. The "
        f"step of {step} is forecast to take {there} ({found.low_ns / 1e6:.2f} to {found.high_ns / 1e6:.2f}) on the "
        f"{gpu}{rates}, with a CPU as fast.",
        readings=[
            Reading("GPU works of the step", busy, "percent", thresholds.UNDERUTILIZED_GPU_PERCENT),
            Reading("Longer step there at most", longer, "percent", SMALLER_GPU_LONGER_PERCENT),
            Reading("Memory reserved", peak, "bytes"),
        ],
        evidence=[EvidenceRow("GPU busy", round(context.busy_ns), busy, "gpus", "")],
        change=f"Train on a GPU such as the {gpu}, or give this GPU more to do.",
        saving="The step gets no shorter; what is saved is the price of the larger GPU.",
    )


def _is_smaller(gpu: str, own: str, bytes_per_second: float) -> bool:
    ceilings = ceilings_of(gpu)
    return gpu != own and ceilings is not None and ceilings.bytes_per_second < bytes_per_second


def _fits(context: RuleContext, gpu: str, peak: int) -> bool:
    room = capacity(context.view, gpu)
    return room is not None and peak <= thresholds.MEMORY_TO_FILL_PERCENT / 100 * room.least
