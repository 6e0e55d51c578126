"""Every threshold and factor of the rules, each with its source."""

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

CONVOLUTION_SHARE_PERCENT = 5.0
"""Below this share of the step, choosing other convolution algorithms cannot save one percent of it."""

WORTHWHILE_SAVING_PERCENT = 2.0
"""Step times of one run vary by about this much: a smaller saving could not be confirmed by a second run."""

HALF_PRECISION_SHARE_PERCENT = 50.0
"""With at least half of the eligible kernel time in half precision, AMP is in use."""

HIGH_SEVERITY_PERCENT = 20.0
MEDIUM_SEVERITY_PERCENT = 5.0
"""Severity by expected saving, in percent of the step."""

AMP_MATRIX_FROM_FP32 = SpeedupRange(2.0, 3.0, 8.0)
"""Matrix kernels, FP32 to half precision. 3: Daydream (USENIX ATC'20, section 5.1)."""

AMP_MATRIX_FROM_TF32 = SpeedupRange(1.0, 1.5, 2.0)
"""Matrix kernels, TF32 to half precision. 2: the ratio of the dense peak rates on Ampere and Hopper (data sheets)."""

AMP_OTHER = SpeedupRange(1.0, 1.4, 2.0)
"""Kernels limited by memory, FP32 to half precision. 2: half the bytes, as in Daydream; 1: autocast keeps FP32."""

TF32_MATRIX = SpeedupRange(1.5, 2.5, 7.0)
"""Matrix kernels, FP32 to TF32. 7.4 and 8 are the ratios of the dense peak rates on H100 and A100 (data sheets)."""

AMP_LAUNCH_OVERHEAD = SpeedupRange(1.0, 1.1, 1.4)
"""How much longer the CPU takes to launch a step under AMP, because casts and the gradient scaler add launches."""

CUDNN_BENCHMARK_FP32 = SpeedupRange(1.0, 1.2, 1.4)
CUDNN_BENCHMARK_OTHER = SpeedupRange(1.0, 1.05, 1.25)
"""Convolution kernels after cudnn.benchmark chose the algorithms. Measured on an H200 by benchmarks/cudnn_benchmark.py
for AlexNet, VGG-16 and ResNet-50: 1.17 to 1.35 in FP32, 1.00 to 1.22 in TF32, 1.02 to 1.08 in FP16."""

# -- recording: what was recorded, and how several GPUs share the work

STRAY_ITERATION_PERCENT = 100 * outlier_steps.STRAY_SHARE
STRAY_ITERATION_DEVIATIONS = outlier_steps.STRAY_DEVIATIONS
"""An iteration is unlike the others if its time differs from their median by more than both: percent of the median, and
standard deviations estimated from the median absolute deviation (times 1.4826, as for a normal distribution). Ours:
DLProf names no figure for its Bad Iteration Range Detector. Steps of a few ms that the CPU paces differ by 30 % in
recorded runs without one of them being unlike the others, which the second figure sees."""

FEWEST_ITERATIONS = outlier_steps.FEWEST_ITERATIONS
"""With two iterations an outlier cannot be identified, and Student's factor for their mean is 12.7 (4.3 for three)."""

MANY_EVENTS = 1_000_000
"""Events of a recording that is a burden: the PyTorch Profiler tab needs 38 us and 3 KB for each, 40 s and 3 GB in all,
and the trace file has 100 to 200 MB."""

FIRST_STEPS = 2
"""A recording that begins at one of these steps, counted from 0, may hold what is done only once. torch's own examples
wait for one step and warm up for one."""

ONCE_ONLY_SHARE_PERCENT = 5.0
"""Of the recorded time, from which allocating and loading code spoil the figures."""

PROFILED_STEP_RATIO = 2.0
"""Recorded step over the step without the profiler. Of recorded runs that the CPU paces, with default options, it is
1.54 at the median and at most 1.82 in nine of ten (benchmarks/precision_pairs): that is the cost of a recording."""

PROFILED_STEP_RATIO_WITH_OPTIONS = 1.25
"""The same where options are on that cost time: leaving them off is free."""

# -- launching: what the CPU launches, when the GPU idles, kernels, optimizers

PAUSE_NS = pauses.PAUSE_NS
"""CPU time between two launches from which the CPU does something else than launch. Ours: in recorded trainings 99 % of
these times are below 0.4 ms; longer times are the preparation of an optimizer's step (which counts as launching), the
end of a step, or other code."""

LAUNCHING_SHARE_PERCENT = 50.0
"""Of the CPU's own time per step, from which launching is the main cause. Half: the other half would be another
cause."""

LAUNCHING_LEFT = SpeedupRange(0.0, 0.25, 0.8)
"""Share of the launching time that is left. 0: all of the step is in CUDA graphs. 0.8: torch.compile alone; BERT under
BF16 autocast, which the CPU paces, took 26.1 ms eagerly and 20.6 ms compiled
(benchmarks/precision_pairs/recorded/recording.json). 0.25 expected: forward and backward are most of the launches."""

LAUNCH_BOUND_SAVING_PERCENT = 10.0
"""Of the step without the profiler: compiling a model, or putting it into graphs, is work that a few percent do not
repay."""

LONG_GAP_PERCENT = 10.0
"""Of the step: a single gap this long is not caused by launching. Nsight Systems ("GPU gaps") takes 500 ms, which is
the length of many whole steps."""

LONG_GAPS_SHARE_PERCENT = 5.0
"""Of the steps, all long gaps together: torch-tb-profiler's threshold for time in which the GPU waits for data."""

PAUSES_LEFT = SpeedupRange(0.0, 0.1, 0.5)
"""Share of the CPU's own work in a pause that is left on the training thread: all of it can go to another one, or be
done once; half is ours, for work that can only be made faster."""

SINGLE_TENSOR_KERNELS = 20
"""Kernels per optimizer step that each change one tensor. torch.profiler's OptimizerSingleTensorPattern has no limit;
fewer cannot cost much."""

OPTIMIZER_CPU_LEFT = SpeedupRange(0.05, 0.15, 0.4)
"""Share of the CPU's time in the optimizer's step that is left if one op goes through all parameters. Ours: recorded
steps over lists or fused take 0.2 to 0.6 ms for 6 to 100 parameters, those parameter by parameter 0.1 ms for each."""

FUSED_CPU_OPS = 6.0
"""A step of n ops over lists takes the CPU (this + n) / (this + 1) times as long as a fused one: recorded steps of
AdamW take 0.3 to 0.5 ms fused and 0.6 to 1.3 ms over lists, those of SGD without momentum as long either way
(benchmarks/planted/recorded)."""

FUSED_OPTIMIZER_SAVING_PERCENT = 3.0
"""Of the step without the profiler: more than step times of one run vary by."""

FUSED_PASSES = {"Adam": 7, "AdamW": 7, "SGD": 5, "Adagrad": 5}
"""How often a fused step reads or writes as many elements as there are parameters: Adam reads parameters, gradients and
two averages and writes all but the gradients, SGD with momentum and Adagrad have one such state. SGD without momentum
(3) gains nothing. Optimizers with a ``fused`` argument in torch 2.4 and later."""

ZERO_GRAD_SAVING_PERCENT = 2.0
"""Of the step without the profiler: the variation of step times within a run. The change costs nothing."""

ZEROED_TENSORS = 4
"""Zeroing ops per step outside of every module, from which they are taken for those of ``model.zero_grad``. Ours."""

ALLOCATION_SHARE_PERCENT = 2.0
"""Of the recorded steps in calls that allocate or free GPU or pinned memory. Ours: nvprof and the Visual Profiler list
the time in API calls without a threshold; a training that has found its memory makes no such call."""

LOOP_REPEATS = 16
LOOP_LONGEST_PERIOD = 12
"""Turns of a loop of at most so many ops. torch.profiler's ForLoopIndexingPattern asks for more than 10 of the same op
with a ``select`` between them; models repeat a layer up to a dozen times without a loop over rows."""

LOOP_SAVING_PERCENT = 5.0
"""Of the step without the profiler: rewriting a loop is work that less does not repay."""

SMALL_KERNEL_FILL = 0.5
"""Thread blocks per multiprocessor, up to which a kernel leaves half of them or more idle. NVIDIA's best practices ask
for more blocks than multiprocessors."""

SMALL_KERNEL_NS = 10_000
"""A shorter kernel costs its launch more than its size: that is launch_bound's."""

SMALL_KERNELS_SHARE_PERCENT = 20.0
SMALL_KERNELS_SAVING_PERCENT = 10.0
"""Of the kernels' time, and of the step. Batch normalisation of ResNet-50 under FP16 takes 21 % in kernels of 64 blocks
on an H200's 132 multiprocessors (demo/recorded); spreading them would save half of that at best."""

CHAIN_KERNELS = 3
CHAIN_NS = 5_000
"""Kernels of a chain, and their mean time: shorter ones cost their launches more than the memory they move. Ours."""

NO_FUSION_SAVING_PERCENT = 5.0
"""Of the step. Of recorded trainings of 20 models only two come above it, GPT-2 and LLaMA, whose GELU and RMSNorm are
written out in pointwise ops; the others stay below 4 %."""

SIDE_BY_SIDE = 0.05
"""Share of small kernels' time that overlaps with kernels of other streams, from which streams run concurrently. Ours:
the Visual Profiler publishes no threshold for "Low Kernel Concurrency"."""

LOW_STRETCH_CHUNKS = 30
LOW_STRETCH_PERCENT = 50.0
"""Nsight Systems ("GPU time utilization") divides the time into 30 equal chunks and reports those below 50 %; here it
is each step that is divided, and chunks are averaged over the steps."""

LOW_STRETCH_REST_PERCENT = 80.0
LOW_STRETCH_LONGEST_PERCENT = 50.0
LOW_STRETCH_IDLE_PERCENT = 5.0
"""A stretch stands out if the rest of the step is used at least this well, if it is no longer than this share of the
step, and if the GPU is idle in it for at least this share. Ours; the last is torch-tb-profiler's for the DataLoader."""

LOW_STRETCH_LAUNCHES = 30
"""Per step: a stretch with fewer has no launches to spare. Ours."""

LOW_STRETCH_SAVING_PERCENT = 5.0
"""Of the step without the profiler. The profiler makes stretches that the CPU paces longer than they are."""

# -- Copies and waits

SMALL_COPY_BYTES = 65_536
"""A copy of less takes as long as its call: at 55 GB/s 64 KiB take 1.2 us, a call 3 to 10 us. CUDA copies up to 64 KiB
without waiting for the same reason ("API synchronization behavior" in the CUDA Runtime API's reference). The Visual
Profiler's "Inefficient Memcpy Size" publishes no size."""

SMALL_COPIES_PER_STEP = 20
"""Ours: fewer cannot cost a notable part of a step."""

LARGE_COPY_BYTES = 1_048_576
"""Copies of at least this size reach the link's rate: 256 KiB took 8.8 us on an H200, half of it before the first byte
(tests/traces/copies.pt.trace.json.gz)."""

SLOW_COPY_SHARE = 0.5
"""A large copy below this share of what the link carries is slow. The Visual Profiler's "Low Memcpy Throughput"
publishes no threshold."""

PINNED_BYTES_PER_SECOND = {7: 12e9, 8: 25e9, 9: 55e9, 10: 55e9, 12: 55e9}
"""Of copies between pinned memory and a GPU, by major compute capability: PCIe 3.0, 4.0 and 5.0 with 16 lanes carry
15.8, 31.5 and 63.0 GB/s, of which copies reach about four fifths. Measured on an H200: 55.5 GB/s
(benchmarks/precision_pairs/recorded)."""

READS_PER_STEP = 0.5
"""Waits in less than every other step are not part of the loop: logging every few steps is fine."""

OVERLAP_SAVING_PERCENT = 3.0
"""Of the step: a prefetcher needs additional code and holds a second batch in GPU memory."""

WORKERS_KEPT = SpeedupRange(0.6, 0.9, 1.0)
"""Share of the time for stopping and starting worker processes that keeping them saves. Two workers took 26 ms, and
less than 1 ms once they were kept (benchmarks/planted/recorded/worker_restart)."""

FIRST_BATCH_SOONER = 0.5
"""Share of the wait for an epoch's first batch that goes with the workers' start. Samples that cost nothing: all of
16 ms went (as above); samples that cost much: nothing, because they are loaded all the same."""

WORKER_OVERHEAD = 1.3
"""How much longer a sample takes in a worker process: it is handed over through shared memory. Ours: an assumption."""

WAIT_LEFT_WITH_MORE_WORKERS = 0.5
"""Share of the time per batch that twice as many workers leave, where they share nothing."""

REPLAYED_WAITS = SpeedupRange(0.6, 1.0, 1.5)
"""Realised over predicted saving, where the replay leaves out waits and copies: 0.81 to 1.63 times as much in the nine
planted trainings about them (benchmarks/planted/recorded). Less is left for other trainings: what replaces a wait may
have a cost too."""

# -- Precision, layout, attention, memory and parameters

STEP_NOISE = 0.01
"""Share of a step by which the ends of a saving are moved apart: two recordings of the same training differ by 0.2 %
where the GPU sets the pace, and by up to 20 % where the CPU does (benchmarks/precision_pairs/recorded)."""

BIAS_KERNELS_STAY = 0.25
RELU_KERNELS_STAY = 0.15
"""Share of the kernels' time, or of the elements, that the low end of a saving leaves though it should go: what they
wrote may have been in the cache for the next."""

BATCH_GAIN = 1.2
"""Times as many samples a second, at the least, from which a larger batch is advised: what a fifth more is worth is
weighed against another learning rate to find. Ours; DLProf names no figure for its Batch Size Detector."""

BATCH_STEP_GAIN = 1.05
"""Times as many samples a second that doubling the batch once more must bring at the least."""

BATCH_LARGE_GAIN = 2.0
"""Times as many samples a second from which the finding is of high severity."""

MEMORY_TO_FILL_PERCENT = 90.0
"""Of the GPU's memory that a batch may fill: above it torch-tb-profiler warns, and allocations fail for
fragmentation."""

TRANSPOSES_STAY = 0.2
"""Share of the time for changing layouts that the low end of a saving leaves: first layers and single ops without a
kernel for channels last still change them."""

BATCH_NORM_CHANNELS_LAST_HALF = (SpeedupRange(1.5, 2.0, 2.5), SpeedupRange(2.0, 3.0, 4.5))
BATCH_NORM_CHANNELS_LAST_FP32 = (SpeedupRange(1.0, 1.25, 1.6), SpeedupRange(1.4, 2.0, 2.6))
"""Batch norm, forward and backward, with channels last against channels first. Measured on an H200 with torch 2.11:
ResNet-50 (demo/recorded/resnet50 and benchmarks/precision_pairs/recorded/torchvision/resnet50-channels-last, per
image) 1.8 and 3.0 in BF16, 2.4 and 2.9 in FP16, 1.24 and 2.0 on FP32 tensors; benchmarks/planted's channels_last 2.0
and 4.4 in BF16."""

DEPTHWISE_SHARE_PERCENT = 10.0
"""Of the convolutions' kernel time: with more of it in depthwise convolutions, whose kernels may be slower with
channels last, the low end of the saving is 0."""

STRAGGLER_KEPT = SpeedupRange(0.0, 0.0, 0.6)
"""Share of a straggler's replayed win that is not won: repairing a GPU that had 12 ms more work on two H200s won 5.3 of
them, because the hosts set the pace then."""

IMBALANCED_WORK_PERCENT = 80.0
"""Of the work of the busiest GPU, below which another one has much less. Ours: DLProf's Imbalanced GPU Detector looks
for "significantly less" and names no figure; the ranks of recorded trainings with equal batches differ by up to
18 %."""

FUSED_ATTENTION_BYTES = (0.35, 0.2)
FUSED_ATTENTION_FLOPS_HALF = (0.55, 0.42)
FUSED_ATTENTION_FLOPS_FP32 = (0.14, 0.14)
FUSED_ATTENTION_LEAST_NS = (6_000, 8_000)
"""Share of the memory bandwidth and of the Tensor Cores' peak rate that fused attention reaches, forward and
backward, and what it takes at least: the slower of the two comes on top of that. In FP32 the peak is that of three
TF32 products. They give the times of cuDNN's and of the efficient kernels on an H200 within a factor of 2
(benchmarks/precision_pairs/recorded, 12 sizes; benchmarks/planted's attention_not_fused: 69 and 215 us where 59 and
190 were recorded)."""

FUSED_ATTENTION = SpeedupRange(0.5, 1.0, 1.5)
"""How many times as fast as by the shares above: their error, and another backend for masks and dropout."""

MEMORY_TO_USE_PERCENT = 90.0
"""Of what the process can have of the GPU's memory: more is not advised to fill. torch-tb-profiler warns above it."""

RECOMPUTED_STAYS = 0.2
"""Share of the time of recomputed ops that the low end of a saving leaves: kept activations are read from memory
where recomputed ones may still be in the cache."""

CHECKPOINTING_IN_PYTHON = 0.8
"""CPU time of checkpointing outside the recomputed ops (saving and restoring states, hooks) over the ops' own. On an
H200 with torch 2.11, leaving it out of a step that the CPU paced saved 1.6 times what the ops' calls take
(benchmarks/planted's recomputation with a quarter of its batch)."""

COMMUNICATION_SHARE_PERCENT = 10.0
"""torch-tb-profiler's threshold; here of communication with nothing else running, and without waiting if that is
known."""

COMMUNICATION_SLOWDOWN = SpeedupRange(0.15, 0.27, 0.5)
"""Time that a collective adds to other kernels for each time that it runs in parallel with them, where a recording does
not show its own: 0.22 to 0.30 on seven recordings of two H200s over NVLink (benchmarks/ranks)."""

BUCKETED_SHARE = SpeedupRange(0.4, 0.75, 0.95)
"""Of an exchange that the backward pass could hide, what still lengthens the step: on two H200s over NVLink buckets of
25 MB in place of one of 1.2 GB saved 16 % of it (benchmarks/ranks); over slower links kernels are slowed down less."""

MICROBATCH_CPU = SpeedupRange(0.6, 1.0, 1.6)
"""Share of the CPU's time of a step that is in proportion to the number of microbatches. Above one where more of them
wait for each other between stages: on two H200s the CPU took four times as many in six times the time."""

COMPRESSED_SHARE = SpeedupRange(0.3, 0.5, 0.8)
"""Exposed communication that is left with half the bytes: half of it; less where the rest overlaps with the backward
pass, more because gradients are cast twice."""

NAN_CHECKED_SHARE_PERCENT = 50.0
"""Of the backward nodes that are checked for NaN, from which anomaly detection is on: it checks all that have
gradients, and a hook of the user's a few."""

BLOCKED_LAUNCHES_PERCENT = 95.0
"""Of the launches that return after their kernel has ended, from which they wait for it: others do by chance only."""

CASTS_ON_CPU = SpeedupRange(0.6, 1.0, 1.8)
"""What casts cost the CPU without the profiler, over what the replay says. From recorded runs that the CPU paces, AMP
against FP32, where the steps without the profiler are known: 0.75 to 0.88 for DistilBERT and T5
(benchmarks/precision_pairs/recorded), 1.3 to 1.5 for MLP (demo/recorded)."""

ELIGIBLE_SHARE_PERCENT = 5.0
"""Of the step, in matrix kernels: with less, mixed precision is not expected to help."""

SKIPPED_STEPS_PERCENT = 1.0
"""Of the optimizer steps, from which the loss scale overflows too often. GradScaler's own settings skip one in 2,000
once the scale has settled."""

OPTIMIZER_STATE_PERCENT = 25.0
"""Of the peak memory. Adam's two moments in FP32 are half of what parameters, gradients and states take together."""

SHORT_OF_MEMORY_PERCENT = 80.0
"""Of what the process can have: from here on memory limits the batch. torch-tb-profiler warns above 90 %."""

FRAGMENTATION_PERCENT = 60.0
"""Of the memory that the allocator reserved at its peak, unused at the peak of allocated memory. Ours: recorded
trainings with constant shapes leave up to 50 % unused (benchmarks/planted)."""

FRAGMENTED_SHARE_PERCENT = 10.0
"""Of the GPU's memory: less lying about limits nothing."""

GROWTH_PERCENT = 0.1
"""Of the peak memory per step. A scalar that is kept with its graph holds the activations of its step."""

GPU_SETS_THE_PACE_PERCENT = 80.0
"""GPU utilization of the recorded step, from which additional CPU work does not lengthen the step: without the profiler
the CPU is even faster."""

OUT_OF_MEMORY_PERCENT = 95.0
"""Of what the process can have, taken by tensors at their peak. Ours: the allocator's rounding and what lies between
blocks take up to 5 % more in recorded trainings that fill their memory (benchmarks/memory_plan)."""

PEAKS_DIFFER_PERCENT = 2.0
"""Of the peak: recorded steps with inputs of one size differ by less."""

MEMORY_FOR_NOTHING_PERCENT = 5.0
"""Of the peak memory. Ours: a batch that is 5 % larger is the least that is worth a change."""

CLOCK_HELD_READINGS_PERCENT = 50.0
"""Of the readings of the driver without the profiler. Ours: a limit that is named now and then costs little."""

CLOCK_HELD_PERCENT = 3.0
"""Below the maximum clock. Kernel times of one run differ by about this much."""

SMALLER_GPU_LONGER_PERCENT = 10.0
"""How much longer a step may be on a smaller GPU that is advised, at the upper end of its forecast. Ours: about the
median error of a forecast for another batch or precision (docs/forecast.md)."""

CHECKPOINT_SAVES_PERCENT = 15.0
CHECKPOINT_COSTS_PERCENT = 10.0
"""Of the peak memory, at the least, and of the step, at the most. Ours: checkpointing all blocks of a network made it
16 to 32 % longer on an H200 (benchmarks/memory_plan)."""
