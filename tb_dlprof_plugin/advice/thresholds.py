"""Every threshold and factor of the rules, each with its source."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Speedup:
    """How many times faster, with the interval it lies in."""

    low: float
    expected: float
    high: float


DATALOADER_SHARE_PERCENT = 5.0
"""torch-tb-profiler advises above 5 % of the step; counted here is only time in which the GPU is idle as well."""

UNDERUTILIZED_GPU_PERCENT = 50.0
"""DLProf's Underutilized GPU Detector (User Guide 10.10), and torch-tb-profiler's threshold."""

CONVOLUTION_SHARE_PERCENT = 5.0
"""Below this share of the step, choosing other convolution algorithms cannot save one percent of it."""

WORTHWHILE_SAVING_PERCENT = 2.0
"""Step times of one run vary by about this much: a smaller saving could not be confirmed by a second run."""

HALF_PRECISION_SHARE_PERCENT = 50.0
"""With at least half of the eligible kernel time in half precision, AMP is in use."""

HIGH_SEVERITY_PERCENT = 20.0
MEDIUM_SEVERITY_PERCENT = 5.0
"""Severity by expected saving, in percent of the step."""

AMP_MATRIX_FROM_FP32 = Speedup(2.0, 3.0, 8.0)
"""Matrix kernels, FP32 to half precision. 3: Daydream (USENIX ATC'20, section 5.1)."""

AMP_MATRIX_FROM_TF32 = Speedup(1.0, 1.5, 2.0)
"""Matrix kernels, TF32 to half precision. 2: the ratio of the dense peak rates on Ampere and Hopper (data sheets)."""

AMP_OTHER = Speedup(1.0, 1.4, 2.0)
"""Kernels limited by memory, FP32 to half precision. 2: half the bytes, as in Daydream; 1: autocast keeps FP32."""

TF32_MATRIX = Speedup(1.5, 2.5, 7.0)
"""Matrix kernels, FP32 to TF32. 7.4 and 8 are the ratios of the dense peak rates on H100 and A100 (data sheets)."""

AMP_LAUNCH_OVERHEAD = Speedup(1.0, 1.1, 1.4)
"""How much longer the CPU takes to launch a step under AMP, because casts and the gradient scaler add launches."""

CPU_WITHOUT_PROFILER = Speedup(1.0, 1.4, 1.8)
"""How many times faster the CPU launches a step without the profiler: 1.5 to 1.8 on the recorded runs of MLP and LeNet,
which the CPU paces (profiled against unprofiled step in demo/recorded/README.md); less where launches are larger."""

CUDNN_BENCHMARK_FP32 = Speedup(1.0, 1.2, 1.4)
CUDNN_BENCHMARK_OTHER = Speedup(1.0, 1.05, 1.25)
"""Convolution kernels after cudnn.benchmark chose the algorithms. Measured on an H200 by benchmarks/cudnn_benchmark.py
for AlexNet, VGG-16 and ResNet-50: 1.17 to 1.35 in FP32, 1.00 to 1.22 in TF32, 1.02 to 1.08 in FP16."""

# -- recording: what was recorded, and how several GPUs share the work

STRAY_ITERATION_PERCENT = 25.0
STRAY_ITERATION_DEVIATIONS = 5.0
"""An iteration is unlike the others if its time differs from their median by more than both: percent of the median, and
standard deviations estimated from the median absolute deviation (times 1.4826, as for a normal distribution). Ours:
DLProf names no figure for its Bad Iteration Range Detector. Steps of a few ms that the CPU paces differ by 30 % in
recorded runs without one of them being unlike the others, which the second figure sees."""

FEWEST_ITERATIONS = 3
"""Of two iterations none can be told from a stray one, and Student's factor for their mean is 12.7 (4.3 for three)."""

MANY_EVENTS = 1_000_000
"""Events of a recording that is a burden: the PyTorch Profiler tab needs 38 us and 3 KB for each, 40 s and 3 GB in all,
and the trace file has 100 to 200 MB."""

FIRST_STEPS = 2
"""A recording that begins at one of these steps, counted from 0, may hold what is done only once. torch's own examples
wait for one step and warm up for one."""

ONCE_ONLY_SHARE_PERCENT = 5.0
"""Of the recorded time, from which allocating and loading code spoil the figures."""

PROFILED_STEP_RATIO = 1.5
"""Recorded step over the step without the profiler. 1.54 is the median of recorded runs that the CPU paces
(comparison/forecast/calibration.py), with default options: from there on more than a third of the step is the
profiler's."""

# -- launching: what the CPU launches, when the GPU idles, kernels, optimizers

PAUSE_NS = 1_000_000
"""CPU time between two launches from which the CPU does something else than launch. Ours: in recorded trainings 99 % of
these times are below 0.4 ms; what is longer is the preparation of an optimizer's step (which counts as launching), the
end of a step, or code of its own."""
