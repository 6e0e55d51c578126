"""The precision in which a run computed, from the input types of its matrix ops, weighted by time."""

from __future__ import annotations

from tb_dlprof_plugin.model.dtypes import precision_of_dtypes
from tb_dlprof_plugin.model.profile import KernelKind, Profile, Verdict
from tb_dlprof_plugin.model.tree import nearest, parents

_DOMINANT = 0.5


def op_precisions(profile: Profile) -> list[str]:
    """Per row of `Profile.ops` the precision of its inputs, "" where none has one."""
    of_inputs = [precision_of_dtypes(dtypes) for dtypes in profile.input_dtypes]
    return list(map(of_inputs.__getitem__, profile.ops.dtypes.tolist()))


def observed_precision(profile: Profile) -> str:
    """ "fp32", "tf32", "fp16", "bf16", "fp8", "fp64", "mixed", or "" if unknown.

    The precision of the ops that could use Tensor Cores: by kernel time on a GPU (a TF32 kernel's inputs are FP32
    tensors, so the kernel's precision wins), by CPU time otherwise.
    """
    ops, calls, kernels, launches = profile.ops, profile.calls, profile.kernels, profile.launches
    # Without a GPU the eligibility of a matrix op is unknown, of any other op it is "no".
    matrix = (ops.tensor_core_eligible != Verdict.NO)[calls.op]
    of_op = op_precisions(profile)
    if profile.has_gpu:
        linked = (launches.call >= 0) & (kernels.kind[launches.kernel] == KernelKind.KERNEL)
        owner = nearest(matrix, parents(calls.depth))[launches.call[linked]]
        inside = owner >= 0
        kernel, op = launches.kernel[linked][inside], calls.op[owner[inside]]
        of_kernel = [profile.strings[i] for i in kernels.precision.tolist()]
        durations = launches.duration_ns[linked][inside]
        names = [of_kernel[k] or of_op[o] for k, o in zip(kernel.tolist(), op.tolist(), strict=True)]
    else:
        durations = calls.duration_ns[matrix]
        names = [of_op[o] for o in calls.op[matrix].tolist()]
    times: dict[str, int] = {}
    for name, duration in zip(names, durations.tolist(), strict=True):
        times[name] = times.get(name, 0) + duration
    times.pop("", None)
    # Attention kernels make FP32 results from three TF32 products for any setting of the TF32 switches.
    if len(times) > 1:
        times.pop("3xtf32", None)
    if not times:
        return ""
    best = max(times, key=lambda name: times[name])
    return best if times[best] > _DOMINANT * sum(times.values()) else "mixed"
