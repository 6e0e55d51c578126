"""Thresholds and factors that several rules share, each with its source; the others stand in their rule."""

from __future__ import annotations

from dataclasses import dataclass

from tb_dlprof_plugin.metrics import outlier_steps
from tb_dlprof_plugin.simulation import pauses


@dataclass(frozen=True, slots=True)
class SpeedupRange:
    """A factor by which something gets faster, with its interval."""

    low: float
    expected: float
    high: float


DATALOADER_SHARE_PERCENT = 5.0
"""torch-tb-profiler advises above 5 % of the step; here only time with an idle GPU counts."""

UNDERUTILIZED_GPU_PERCENT = 50.0
"""DLProf's Underutilized GPU Detector (User Guide 10.10), and torch-tb-profiler's threshold."""


WORTHWHILE_SAVING_PERCENT = 2.0
"""Step times of one run vary by about this much: a smaller saving could not be confirmed by a second run."""


HIGH_SEVERITY_PERCENT = 20.0
MEDIUM_SEVERITY_PERCENT = 5.0
"""Severity by expected saving, in percent of the step."""

AMP_MATRIX_FROM_FP32 = SpeedupRange(2.0, 3.0, 8.0)
"""Matrix kernels, FP32 to half precision. 3: Daydream (USENIX ATC'20, section 5.1)."""

AMP_MATRIX_FROM_TF32 = SpeedupRange(1.0, 1.5, 2.0)
"""Matrix kernels, TF32 to half precision. 2: the ratio of the dense peak rates on Ampere and Hopper (data sheets)."""


TF32_MATRIX = SpeedupRange(1.5, 2.5, 7.0)
"""Matrix kernels, FP32 to TF32. 7.4 and 8 are the ratios of the dense peak rates on H100 and A100 (data sheets)."""


# -- recording: what was recorded, and how several GPUs share the work


FEWEST_ITERATIONS = outlier_steps.FEWEST_ITERATIONS
"""With two iterations an outlier cannot be identified, and Student's factor for their mean is 12.7 (4.3 for three)."""


# -- launching: what the CPU launches, when the GPU idles, kernels, optimizers

PAUSE_NS = pauses.PAUSE_NS
"""CPU time between two launches from which the CPU does something else than launch. Ours: in recorded trainings 99 % of
these times are below 0.4 ms; longer times are the preparation of an optimizer's step (which counts as launching), the
end of a step, or other code."""


LAUNCHING_LEFT = SpeedupRange(0.0, 0.25, 0.8)
"""Share of the launching time that is left. 0: all of the step is in CUDA graphs. 0.8: torch.compile alone; BERT under
BF16 autocast, which the CPU paces, took 26.1 ms eagerly and 20.6 ms compiled
(tests/data/precision_pairs/recording.json). 0.25 expected: forward and backward are most of the launches."""


PAUSES_LEFT = SpeedupRange(0.0, 0.1, 0.5)
"""Share of the CPU's own work in a pause that is left on the training thread: all of it can go to another one, or be
done once; half is ours, for work that can only be made faster."""


FUSED_PASSES = {"Adam": 7, "AdamW": 7, "SGD": 5, "Adagrad": 5}
"""How often a fused step reads or writes as many elements as there are parameters: Adam reads parameters, gradients and
two averages and writes all but the gradients, SGD with momentum and Adagrad have one such state. SGD without momentum
(3) gains nothing. Optimizers with a ``fused`` argument in torch 2.4 and later."""


SMALL_KERNEL_FILL = 0.5
"""Thread blocks per multiprocessor, up to which a kernel leaves half of them or more idle. NVIDIA's best practices ask
for more blocks than multiprocessors."""

SMALL_KERNEL_NS = 10_000
"""A shorter kernel costs its launch more than its size: that is launch_bound's."""

SMALL_KERNELS_SHARE_PERCENT = 20.0
SMALL_KERNELS_SAVING_PERCENT = 10.0
"""Of the kernels' time, and of the step. Batch normalisation of ResNet-50 under FP16 takes 21 % in kernels of 64 blocks
on an H200's 132 multiprocessors (demo/recorded); spreading them would save half of that at best."""


# -- Copies and waits


READS_PER_STEP = 0.5
"""Waits in less than every other step are not part of the loop: logging every few steps is fine."""


REPLAYED_WAITS = SpeedupRange(0.6, 1.0, 1.5)
"""Realised over predicted saving, where the replay leaves out waits and copies: 0.81 to 1.63 times as much in the nine
planted trainings about them (tests/data/planted). Less is left for other trainings: what replaces a wait may
have a cost too."""

# -- Precision, layout, attention, memory and parameters

STEP_NOISE = 0.01
"""Share of a step by which the ends of a saving are moved apart: two recordings of the same training differ by 0.2 %
where the GPU sets the pace, and by up to 20 % where the CPU does (tests/data/precision_pairs)."""


MEMORY_TO_FILL_PERCENT = 90.0
"""Of the GPU's memory that a batch may fill: above it torch-tb-profiler warns, and allocations fail for
fragmentation."""


BUCKETED_SHARE = SpeedupRange(0.4, 0.75, 0.95)
"""Of an exchange that the backward pass could hide, what still lengthens the step: on two H200s over NVLink buckets of
25 MB in place of one of 1.2 GB saved 16 % of it (lab/ranks); over slower links kernels are slowed down less."""


SHORT_OF_MEMORY_PERCENT = 80.0
"""Of what the process can have: from here on memory limits the batch. torch-tb-profiler warns above 90 %."""
