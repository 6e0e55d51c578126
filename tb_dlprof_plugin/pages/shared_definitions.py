"""The sentences on numbers that several fields or pages show, and on parts of a figure: the tooltips of their labels.

A number of one field has its sentence there (`pages.columns`). The formulas are in docs/metrics.md.
"""

from __future__ import annotations

DEFINITIONS: dict[str, str] = {
    "jobWhatIf": (
        "The recorded steps of all ranks replayed with one change, scaled to the step without the profiler: a "
        "collective ends when the last of its ranks has come and the data has moved."
    ),
    "stepInterval": "95 % interval of the step without the profiler.",
    "gpuBusy": "Time during which at least one kernel, copy or set ran: the union of their intervals.",
    "resourceUsage": (
        "The step without the profiler, split exclusively, in this order of precedence: Tensor Cores, other "
        "kernels, memory, dataloader, I/O, CPU, other."
    ),
    "parts": (
        "The step without the profiler by the part that the GPU works on or, where it is idle, the CPU: they "
        "sum to the step."
    ),
    "kernelTime": "Summed time of all kernels, copies and sets on the GPU, by what they use.",
    "tcEfficiency": "Kernel time in Tensor Core eligible ops: on Tensor Cores, and not.",
    "iterations": (
        "Recorded wall-clock time of each iteration, split into the exclusive time categories and what the "
        "recorder added. The line is the step without the profiler."
    ),
    "gpuTime": "Time in which a kernel, copy or set that a call of the op launched ran, summed over its calls.",
    "typeOps": "Ops of this type: as many as there are modules and directions that call it.",
    "typeForward": "The part of the time of ops that ran in the forward pass.",
    "typeBackward": "The part of the time of ops that ran in the backward pass.",
    "typeUtilization": (
        "Share of Tensor Core kernels in the kernel time that could use them; – where none of it could."
    ),
    "cpuTotal": "CPU time from the start to the end of the op, children included.",
    "cpuSelf": "CPU time of the op without the ops it called.",
    "calls": "How often it was called in the selected iterations.",
    "opName": "The op and, where the hook recorded it, the module it belongs to.",
    "module": "Path of the module that called the op.",
    "opTypeGpu": "Summed GPU time of all ops of a type, forward and backward.",
    "opTypeCpu": "CPU time of all ops of a type, forward and backward.",
    "opType": "The framework function behind the op.",
    "pass": "The part of the step that runs it: forward, backward, optimizer, dataloader or other.",
    "tcEligible": "Whether Tensor Cores could run this op, given its type, shapes and data types.",
    "kernelCalls": "Kernels, copies and sets that the op launched in the selected iterations.",
    "usingTc": "Whether a kernel of this op ran on Tensor Cores.",
    "precision": "Precision of the matrix math, as the kernels imply it.",
    "precisionMode": (
        "What the matrix work of the run was computed in, and how it came to that, recognised from the trace. "
        "Settings that exclude each other are listed below."
    ),
    "lossScaling": "Whether the loss was multiplied so that small FP16 gradients do not vanish: GradScaler, or Apex.",
    "numericHealth": (
        "The state of loss scaling. A scaler skips the optimizer's step where a gradient is inf or NaN, and "
        "lowers its scale."
    ),
    "kernelPrecision": "Precision of the matrix math on Tensor Cores; – for kernels that do not use them.",
    "shapes": "Shapes of the op's inputs.",
    "dtypes": "Data types of the op's inputs.",
    "kernelName": "Name of the kernel as the driver reports it.",
    "kernelKind": "Kernel, copy or set.",
    "kernelFamily": "The kind of work, from the kernel's name.",
    "kernelTc": "Whether the kernel runs matrix math on Tensor Cores, decided from its name and context.",
    "kernelRule": "The rule that decided whether the kernel uses Tensor Cores.",
    "totalTime": "Summed time in the selected iterations.",
    "averageTime": "Mean time of one call.",
    "maxTime": "Longest call.",
    "occupancy": (
        "Achieved occupancy as the profiler estimates it: resident warps over the most that fit. Kernels "
        "without an estimate are unknown."
    ),
    "grid": "Thread blocks in the launch.",
    "block": "Threads in one block.",
    "registers": "Registers per thread.",
    "sharedMemory": "Shared memory per block.",
    "bytes": "Bytes that a copy or set moved.",
    "kernelOps": "The ops that launched this kernel.",
    "eligibleTime": "Kernel time that Tensor Cores could compute: of eligible ops and, without an op, of products.",
    "usingTime": "Eligible kernel time that ran on Tensor Cores.",
    "notUsingTime": "Eligible kernel time that did not run on Tensor Cores.",
    "unknownTime": "Eligible kernel time whose Tensor Core use is unknown.",
    "flops": (
        "Floating-point operations of the matrix routines, a multiply-add counted as two, as "
        "torch.utils.flop_counter counts them."
    ),
    "intensity": "FLOPs per byte: left of the bend of its roof memory is the limit, right of it arithmetic.",
    "flopRate": "FLOPs over the time of all kernels that the matrix routines launched.",
    "matrixTime": "Time of the kernels that matrix products, convolutions and attention launched.",
    "ranIn": "The precision in which its Tensor Core kernels spent most time; that of its inputs where none ran.",
    "roof": (
        "The most that the GPU can do at this precision and intensity: peak rate, or intensity times memory "
        "bandwidth if that is less."
    ),
    "roofPercent": (
        "Achieved rate over the roof. Winograd and FFT convolutions need fewer multiplications than the FLOPs "
        "say and can exceed 100 %."
    ),
    "bound": "What sets the roof: arithmetic (compute) or memory bandwidth.",
    "couldRunIn": (
        "The fastest precision for the op on this GPU: FP16 or BF16 for FP32 inputs that Tensor Cores could take."
    ),
    "possiblePercent": "Achieved rate over the roof at the precision that it could run in.",
    "unknownFlops": "Share of the matrix kernels' time without known FLOPs, because shapes are missing.",
    "tcTime": "Time of the op's kernels that ran on Tensor Cores.",
    "nonTcTime": "Time of the op's kernels that did not run on Tensor Cores.",
    "opUtilization": "Tensor Core time of the op over its GPU time.",
    "reason": "Why the op does not run on Tensor Cores.",
    "saving": "Estimated time saved per iteration, with the interval it should lie in.",
    "combinedSaving": (
        "Saving of all findings together per iteration. Savings of the same "
        "time, and alternatives, are not counted twice, and none exceeds the step."
    ),
    "severity": (
        "How much the finding matters, by the share of the step that it should save; one level less if the "
        "step may get longer."
    ),
    "confidence": "How sure the finding is. High: measured or proven. Medium: an estimate. Low: indirect evidence.",
    "forecast": (
        "The step time in another precision, predicted from this run alone: its launches replayed with kernel "
        "times of similar measured ops, with the casts and the GradScaler that autocast would add."
    ),
    "forecastNow": "The recorded step without the profiler, by the same replay: the base of speedups.",
    "forecastCasts": (
        "Kernels that convert the op's inputs, and in the backward pass their gradients, into the other "
        "precision; they come on top."
    ),
    "forecastPrecision": "What the op's kernels would compute in; as now where autocast keeps FP32.",
    "promises": (
        "The predictions for the candidate from the base alone, and the measurements: the "
        "forecast of its step, and the savings of the advice that it applied."
    ),
    "promiseError": "Forecast less measured: above 0, the forecast was too long.",
    "speedup": (
        "Step of the base over step of the candidate, both without the profiler: above 1, the candidate is faster."
    ),
    "gain": ("How many times better the candidate is: above 1 it is better, below 1 worse, for every measure."),
    "matched": (
        "Share of the time in ops for which the other run has a counterpart. Casts and GradScaler's work are left out."
    ),
    "cpuThreads": "CPU threads with recorded calls.",
    "waterfall": (
        "Where a step's time is, by the clock, in buckets that exclude each other: on each side they add up "
        "to the step without the profiler. First what the GPU works on, Tensor Core kernels before other kernels; "
        "where it is idle, what the CPU does, without the recorder's overhead."
    ),
    "noise": (
        "There may be no difference: its 95 % interval includes 0. The interval of the steps follows from the "
        "uncertainty of each without the profiler. That of ops follows from the variation of single "
        "iterations. Two recordings may differ by more: clocks, temperature and what else runs change."
    ),
    "changeShare": ("Its part of the step's change, by the clock, including GPU waits for its launches."),
    "ofRoof": "How much of its roofline ceiling the op reached, in the precision that it ran in.",
    "difference": "Candidate minus base, per iteration: negative is faster.",
    "perIteration": "Per iteration, so that ranges of different length compare.",
    "moduleForward": "The part launched by the module's forward.",
    "moduleBackward": "The part launched by the backward of the module's ops.",
    "moduleOwn": "The part outside the modules inside it.",
    "moduleMin": "Time in the iteration that took least.",
    "moduleMax": "Time in the iteration that took most.",
    "cpuSlack": (
        "Share of the step that the CPU does not need: it waits in CUDA calls (from their 50th microsecond on) "
        "or is ahead of the GPU. The most that a faster GPU could save."
    ),
    "pace": (
        "gpu: less than 5 % of the recorded iteration is idle time before work launched late. cpu: more is, and "
        "the CPU needs more than 90 % of the time itself. mixed: more is, and the CPU waits too."
    ),
    "idleActivity": (
        "Time in which nothing runs on the GPU, by what the CPU does meanwhile: the waiting buckets of the account of "
        "a step on the Summary. The recorder's overhead is subtracted."
    ),
    "idleKind": "The same time by when the work that ended the gap was launched: too late, or before it began.",
    "gapDuration": "Time in which nothing ran on this GPU, cut at the iteration's boundaries.",
    "launchDelay": (
        "From the end of the launch call to the start of the work, 0 where it began before the call returned. "
        "A long delay is a long queue: harmless while the GPU is busy."
    ),
    "launchQueue": (
        "Work of the same stream that was launched and had not begun when this launch call began, itself "
        "included: 1 where nothing else waited."
    ),
    "eventKind": "The kind of this event, also shown by its colour.",
    "eventRow": "The thread, stream or other row of the timeline.",
    "eventDuration": "From the start to the end of this one event.",
    "eventStart": "When it began, counted from where the step begins; the CPU calls before that have a minus sign.",
    "eventIteration": "The iteration that called or launched it; it is drawn because it overlaps with the one shown.",
    "eventLaunch": "The CUDA call that launched it; the op, where only that was recorded.",
    "eventLaunchTime": "Time that this one launch call took on the CPU.",
    "copyRate": "Bytes that this one copy or set moved per second while it ran.",
    "syncCalls": (
        "Calls that make the CPU wait for the GPU: waits for a stream, event or device, copies that return "
        "when they are done, asynchronous copies of pageable memory."
    ),
    "syncOp": "The outermost op around the call with its module; none for a call straight from Python.",
    "runModel": "The model's class, with its number of parameters (millions) where there are models of several sizes.",
    "runPrecision": (
        "What the run computed in: AMP with FP32 parameters, FP16 or BF16 with parameters in half precision."
    ),
    "runSource": "Source of the step: timed without the profiler or with GPU activities alone, estimated, recorded.",
    "runSpeedup": (
        "Step of the base over that of the run, both without the profiler, above 1 for faster; where the batch sizes "
        "differ, samples per second over the base's."
    ),
    "runNoise": (
        "The interval of 95 % around the speedup, from the uncertainty of both steps. If it includes 1, the difference "
        "is noise."
    ),
    "coverage": "How much of the GPU time is attributed to ops.",
    "memoryCurve": (
        "Bytes allocated at each moment, by category; the dashed line is what the allocator had reserved on the GPU."
    ),
    "memoryCurvePlain": "Bytes allocated at each moment.",
    "memoryAtPeak": (
        "Bytes alive at the moment when most was allocated in the selected iterations: they add up to the peak."
    ),
    "memoryOwnPeak": (
        "The most that it held at any moment of the selected iterations; these moments differ, so they do not add up."
    ),
    "memoryPercent": "Share of what was allocated at the peak.",
    "memoryCategory": "Decided by the part of the step that allocated it and by how long it lived.",
    "memoryModule": (
        "Path of the module that the allocating op belongs to; backward ops belong to that of their forward op."
    ),
    "memoryKnownBefore": (
        "Freed bytes beyond those allocated since the recording began: they were allocated "
        "before. How much more was allocated is unknown."
    ),
    "memoryGrowth": "Allocated at the end of the iteration less at its start; the mean if the bar covers several.",
    "gpuRates": "Peak rates of this GPU as its maker publishes them, without sparsity: the roofs.",
    "supportedPrecisions": "Precisions that the Tensor Cores of this GPU compute in, by its compute capability.",
    "gpuName": "The GPU as its driver names it.",
    "perSample": "Time of the base for one sample over that of the candidate: above 1, the candidate is faster.",
    "loaderInterval": (
        "Of the simulated step: what other draws of the recorded batches give, what the recording leaves open, and the "
        "error of the simulation."
    ),
    "energyShare": "Share of the measured energy of a step.",
    "energyPart": (
        "Estimated from kind, time and FLOPs of each kernel, then scaled so that all parts are what the counter "
        "measured."
    ),
    "planInterval": (
        "The likely figure, and what it lies between: the error of the replay of the recorded step and the spread "
        "of forecasts of this kind of change. Workspaces count at both ends of what they may be."
    ),
    "planBatch": "Samples of one forward pass.",
    "planStep": "The step without the profiler, forecast by the simulation; unknown where it cannot be.",
    "energyChoice": (
        "Forecast: the power at rest for as long as the step then lasts. Its kernels add what they take in their "
        "new times and precision."
    ),
    "energyInterval": (
        "Ends of the 95 % interval: of the step's length, of the measurement and, for a forecast, of the estimate "
        "from kernels."
    ),
    "planPeakAllocated": (
        "Most that tensors hold at one time in a replay of the step, with the rounding of the allocator."
    ),
    "planPeakReserved": (
        "Most that PyTorch's allocator takes of the GPU in a replay of the step, from empty and without a limit: a "
        "process that ran other steps before may have reserved more. With less, some requests fail at first. The "
        "allocator then gives back what it has cached, which waits for the GPU."
    ),
    "planSmallestLimit": (
        "The least memory with which the training runs at all, with retries where the allocator needs them."
    ),
    "planVerdict": (
        "Whether it fits: where even the upper end of reserved memory does; with retries, where the upper end of "
        "the smallest limit does; not, where its lower end does not; else it is not known."
    ),
    "planLargestBatch": "Most samples that fit on the GPU, with retries, and the forecast's error left.",
    "triedRemedy": "A change that was switched on from outside; the script itself is as it was.",
    "triedInterval": "The interval at 95 % over groups of four blocks: baseline, remedy, remedy, baseline.",
    "modulePath": "The module; its numbers include those of the modules inside it.",
    "couldSave": (
        "Kernel time that the remedy of the reason should save; where no factor is known, at most what the op "
        "takes above the least time of its FLOPs and bytes. A bound is sorted as if all of it could be saved; unknown "
        "where FLOPs or the GPU's rates are."
    ),
    "jobCompute": "The GPU computes: kernels that are no communication, those next to a collective too.",
    "jobTransfer": (
        "Nothing but communication runs on the GPU, and the data moves: as long as the collective takes on "
        "the rank that comes last."
    ),
    "jobWaiting": (
        "Nothing but communication runs on the GPU, and it waits for ranks that come later. The rank with "
        "the longest collectives is the fastest one. Unknown where no other rank of a collective was "
        "recorded: it is part of the transfer then."
    ),
    "jobBubble": "A pipeline stage waits for the microbatches of its neighbours.",
    "jobHost": "The GPU has nothing to do, or copies: the CPU has not launched the next work yet.",
    "jobStep": (
        "Length of the job's step without the profiler. Ranks that wait for each other in every step have one length."
    ),
    "jobSaving": "By how much the job's step gets shorter if this rank alone is as fast as the next one.",
    "jobFlops": (
        "FLOPs of the step's matrix products over what the GPUs could compute in that time in BF16. "
        "Operations that are computed twice count twice. Unknown where shapes or the GPU's peak are not known."
    ),
}
"""Keyed by the name in the frontend."""

SLICES: dict[str, dict[str, str]] = {
    "gpu_utilization": {
        "using": "At least one kernel, copy or set runs on the GPU.",
        "idle": "Nothing runs on the GPU.",
    },
    "kernel_time": {
        "tensor_core": "Summed time of kernels that run matrix math on Tensor Cores.",
        "other_kernels": "Summed time of all other kernels, including unknown ones.",
        "memory": "Summed time of copies and sets.",
    },
    "tensor_core_efficiency": {
        "using": "Time of Tensor Core kernels in ops that Tensor Cores could run.",
        "not_using": "Time of the other kernels in these ops.",
        "unknown": "Time of kernels in these ops whose Tensor Core use is unknown.",
    },
    "account": {
        "tensor_core": "A kernel that runs matrix math on Tensor Cores runs on the GPU.",
        "other_compute": "Another kernel of the model runs on the GPU.",
        "communication": "The GPU exchanges data with other GPUs, and computes nothing meanwhile.",
        "casts": "The GPU converts from one floating-point type to another, which autocast adds.",
        "scaler": "The GPU does the GradScaler's work.",
        "copies": "The GPU copies or sets memory, and no kernel runs.",
        "dataloader": "The GPU waits while the training thread is in the DataLoader.",
        "cpu_launch": "The GPU waits while the CPU is in ops and CUDA calls: launching, copying and others.",
        "python": "The GPU waits while the CPU is in no recorded call: Python between ops, or code outside PyTorch.",
        "idle": "The GPU waits while the CPU waits for it, or does what was not recorded.",
        "forward": "The CPU works on the forward pass.",
        "backward": "The CPU works on the backward pass.",
        "optimizer": "The CPU works on the optimizer's step.",
        "other": "None of these: Python between ops, the loop itself.",
    },
    "parts": {
        "forward": "The GPU works on what the forward pass launched or, idle, waits while the CPU is in it.",
        "backward": "The same for the backward pass.",
        "optimizer": "The same for the optimizer's step.",
        "dataloader": "The training thread waits for the next batch, or the GPU copies what loading launched.",
        "other": "None of these: copies of the batch, Python between ops, the loop itself.",
    },
    "by_precision": {
        "fp16": "Kernel time of eligible ops on Tensor Cores in FP16: 5 bits of exponent, 10 of mantissa.",
        "bf16": "Kernel time of eligible ops on Tensor Cores in BF16: 8 bits of exponent, 7 of mantissa.",
        "tf32": "Kernel time of eligible ops on Tensor Cores in TF32: FP32 multiplied with 10 bits of mantissa.",
        "3xtf32": "Kernel time of eligible ops on Tensor Cores in three TF32 products, about as exact as FP32.",
        "fp8": "Kernel time of eligible ops on Tensor Cores in 8-bit floating point.",
        "mxfp8": "Kernel time of eligible ops on Tensor Cores in 8-bit floating point, 32 numbers sharing a scale.",
        "mxfp4": "Kernel time of eligible ops on Tensor Cores in 4-bit floating point, 32 numbers sharing a scale.",
        "nvfp4": "Kernel time of eligible ops on Tensor Cores in 4-bit floating point, 16 numbers sharing a scale.",
        "int8": "Kernel time of eligible ops on Tensor Cores in 8-bit integers.",
        "fp64": "Kernel time of eligible ops on Tensor Cores in FP64.",
        "none": "Kernel time of eligible ops that did not run on Tensor Cores.",
        "unknown": "Kernel time of eligible ops whose Tensor Core use is unknown.",
    },
    "ran_in": {
        "fp32": "Matrix math in FP32, without Tensor Cores.",
        "tf32": "FP32 tensors, multiplied on Tensor Cores with 10 bits of mantissa.",
        "3xtf32": "FP32 tensors, multiplied on Tensor Cores in three TF32 products.",
        "fp16": "Matrix math in FP16: 5 bits of exponent, 10 of mantissa.",
        "bf16": "Matrix math in BF16: 8 bits of exponent, 7 of mantissa.",
        "fp8": "Matrix math in 8-bit floating point.",
        "mxfp8": "Matrix math in 8-bit floating point, 32 numbers sharing a scale.",
        "mxfp4": "Matrix math in 4-bit floating point, 32 numbers sharing a scale.",
        "nvfp4": "Matrix math in 4-bit floating point, 16 numbers sharing a scale.",
        "int8": "Matrix math in 8-bit integers.",
        "fp64": "Matrix math in FP64.",
        "unknown": "Matrix math of unknown precision.",
    },
    "family": {
        "convolution": "Convolutions, forward and backward, and what their algorithms need.",
        "gemm": "Matrix products.",
        "attention": "Fused attention.",
        "normalization": "Batch, layer, group and instance norm.",
        "elementwise": "Work on each element by itself: activations, additions, casts.",
        "reduction": "Sums, means, largest values over a dimension.",
        "pooling": "Max and average pooling.",
        "softmax": "Softmax and log-softmax.",
        "transpose": "Changes of a tensor's layout in memory.",
        "optimizer": "The optimizer's update of the parameters.",
        "random": "Random numbers, such as dropout's.",
        "communication": "Collectives and exchanges between GPUs: NCCL's and RCCL's, and those of symmetric memory.",
        "copy": "Copies between CPU and GPU, or on the GPU.",
        "set": "Fills of memory with one value.",
        "other": "Kernels of no known family.",
    },
    "matching": {
        "matched": "In ops for which the other run has a counterpart.",
        "casts": "In casts to and from another precision, which autocast adds.",
        "scaler": "In the work of the GradScaler.",
        "compiled": "In regions of torch.compile, whose ops have other names in each compilation.",
        "unmatched": "In ops for which the other run has no counterpart.",
        "unlinked": "In kernels, copies and sets that no recorded op launched.",
    },
}
"""The parts of a figure, by figure and key; a missing one is taken from the page's data."""
