"""What two studies of the demo's six models advised, against what the rules say of the recorded runs.

    python -m lab.planted.studies

"Optimizing Neural Network Models Using DLProf and APEX" profiled MLP, LeNet, AlexNet, VGG, ResNet and a model of its
own with DLProf (GPU and batch sizes not given), advised by its figures, and applied Apex' mixed precision. "Profiling
Deep Learning Models for Computational Enhancement" recorded three steps of five of them on a Tesla T4 with
torch.profiler, without and with Apex. Both compare FP32 with FP16; the recorded runs here are of an NVIDIA H200.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.metrics.iterations import step_totals

from .held import Run
from .tables import DEMO, interval_text, markdown, plain


@dataclass(frozen=True)
class Studied:
    """What the DLProf study says of a model: utilization in percent and whether it calls it low or it is below 50.

    ``amp`` is what it says of mixed precision; it says of all six that they got better.
    """

    name: str
    gpu_utilization: int
    low: bool
    amp: str


STUDIED = {
    "mlp": Studied("MLP", 65, False, "applied; wall clock time decreased"),
    "lenet": Studied("LeNet", 50, True, "use it"),
    "alexnet": Studied("AlexNet", 70, False, "use it; wall clock time reduced"),
    "vgg16": Studied("VGG", 55, True, "use it; wall clock time reduced"),
    "resnet50": Studied("ResNet", 45, True, "use it; wall clock time improved"),
    "custom": Studied("Custom", 50, True, "consider it; wall clock time reduced"),
}
"""By the name of the recorded run. It advised a larger batch for each."""

T4_CUDA_MS = {
    "mlp": (1.539, 1.905),
    "lenet": (2.344, 3.433),
    "alexnet": (55.807, 48.876),
    "vgg16": (1126.0, 601.840),
    "resnet50": (2282.0, 714.885),
}
"""Self CUDA time total of three steps on the T4 (ms), FP32 and with Apex."""

COLUMNS = ("model", "question", "the study", "the rules, of the FP32 run", "measured on an H200", "same")
T4_COLUMNS = ("model", "GPU time with Apex, T4", "GPU busy with AMP FP16, H200", "both change alike")


def advice_rows() -> tuple[list[tuple[str, ...]], str]:
    """Three questions for each model, and a line with totals."""
    step_ms = {
        (run["model"], run["precision"]): run["result"]["unprofiled_step_ms"]
        for run in json.loads((DEMO / "recording.json").read_text())["runs"]
    }
    rows: list[tuple[str, ...]] = []
    same, judged_otherwise, ours_confirmed = 0, 0, 0
    for model, studied in STUDIED.items():
        run = Run(DEMO / model / "fp32")
        amp, status = run.finding("amp_not_used"), run.status("amp_not_used")
        before, after = step_ms[model, "fp32"], step_ms[model, "amp-fp16"]
        if amp is not None and amp.saving is not None:
            said = f"use it: saves {interval_text(amp.saving)} ms a step"
        else:
            why = status.why.removeprefix("Forecast: ").split(":")[0] if status else "no such rule"
            said = f"leave it: {why}"
        if amp is None:
            judged_otherwise += 1
            ours_confirmed += after >= before
        answers = [("AMP", studied.amp, said, f"step {before:.2f} to {after:.2f} ms in FP16", amp is not None)]

        used = step_totals(run.view, run.selection).gpu_utilization or 0.0
        larger = [
            one for one in run.advice.findings if "batch" in one.change.lower() and "larger" in one.change.lower()
        ]
        answers.append((
            "batch size", "raise it",
            "; ".join(f"raise it: {one.title}" for one in larger) or "no finding",
            f"GPU busy {used:.0f} % with a batch of {run.batch_size}", bool(larger),
        ))  # fmt: skip
        low = used < thresholds.UNDERUTILIZED_GPU_PERCENT
        theirs = f"{studied.gpu_utilization} %{', low' if studied.low else ''}"
        answers.append((
            "GPU utilization", theirs, "low" if low else "half of the step or more", f"{used:.0f} %",
            studied.low == low,
        ))  # fmt: skip
        for question, theirs, ours, measured, agree in answers:
            rows.append((studied.name, question, theirs, ours, measured, "yes" if agree else "no"))
            same += agree
    return rows, (
        f"{same} of {len(rows)} answers are the same. Of the {judged_otherwise} models for which the rules advise "
        f"against AMP, {ours_confirmed} got slower with it on the H200."
    )


def t4_rows() -> list[tuple[str, ...]]:
    """How the GPU's time changes with FP16 on the T4 and on the H200."""
    rows: list[tuple[str, ...]] = []
    for model, (before, after) in T4_CUDA_MS.items():
        busy = []
        for precision in ("fp32", "amp-fp16"):
            run = Run(DEMO / model / precision)
            busy.append((step_totals(run.view, run.selection).gpu_busy_ns or 0) / run.selection.count / 1e6)
        theirs, ours = after / before, busy[1] / busy[0]
        rows.append((
            STUDIED[model].name, f"{before:,.1f} to {after:,.1f} ms ({theirs:.2f})",
            f"{busy[0]:.2f} to {busy[1]:.2f} ms a step ({ours:.2f})", "yes" if (theirs < 1) == (ours < 1) else "no",
        ))  # fmt: skip
    return rows


def tables() -> str:
    """Both tables as Markdown."""
    rows, total = advice_rows()
    return f"{markdown(COLUMNS, rows)}\n{total}\n\n{markdown(T4_COLUMNS, t4_rows())}"


def main() -> None:
    """Entry point of the script."""
    rows, total = advice_rows()
    print(f"{plain(COLUMNS, rows)}\n{total}\n\n{plain(T4_COLUMNS, t4_rows())}")


if __name__ == "__main__":
    main()
