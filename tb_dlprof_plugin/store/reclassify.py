"""Recomputes the verdicts of a stored profile with the current rules.

Verdicts are stored, because they are part of the tables; but rules are corrected from version to version, and an old
run must not keep an old mistake. All that the rules look at is in the profile.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tb_dlprof_plugin.analysis.categories import time_categories
from tb_dlprof_plugin.analysis.kernel_table import build_kernels, launch_contexts
from tb_dlprof_plugin.analysis.measured_kernels import counters_of_launches, with_measured_verdicts
from tb_dlprof_plugin.model.profile import CallKind, Profile
from tb_dlprof_plugin.model.tree import parents
from tb_dlprof_plugin.names.gpu_generations import tensor_core_capability, with_capabilities
from tb_dlprof_plugin.names.tensor_core_eligibility import eligibility_of
from tb_dlprof_plugin.store.codec import decode


def opened(data: bytes) -> Profile:
    """The profile of a blob with what today's rules say of its kernels and ops.

    Raises:
        ProfileError: the bytes are damaged; the caller adds which profile it is.
    """
    return reclassified(decode(data))


def reclassified(profile: Profile) -> Profile:
    """The profile with verdicts, precisions, eligibility and time categories as a new analysis would give them."""
    calls, ops, launches, iterations = profile.calls, profile.ops, profile.launches, profile.iterations
    system = profile.system if profile.of_amd else with_capabilities(profile.system)
    capability = tensor_core_capability(system, iterations.gpu_ids)
    strings = list(profile.strings)
    kind = ops.kind[calls.op]
    contexts = launch_contexts(
        profile.kernels.name[launches.kernel],
        profile.kernels.kind[launches.kernel],
        launches.call,
        parents(calls.depth),
        kind == CallKind.OP,
        ops.name[calls.op],
        ops.dtypes[calls.op],
    )
    kernels, kernel_of_launch = build_kernels(contexts, strings, profile.input_dtypes, capability, profile.of_amd)
    kernels = with_measured_verdicts(
        kernels,
        kernel_of_launch,
        counters_of_launches(profile.kernel_counters, kernels, replace(launches, kernel=kernel_of_launch),
                             profile.launch_configs, strings),
        profile.kernel_counters,
        strings,
    )  # fmt: skip
    tensor_core = kernels.tensor_core[kernel_of_launch] if len(launches) else np.zeros(0, dtype=np.int64)
    categories = time_categories(
        (calls, kind, ops.role[calls.op]),
        (launches, contexts.kind, tensor_core),
        (iterations.start_ns, iterations.stop_ns),
        iterations.gpu_ids,
    )
    return replace(
        profile,
        system=system,
        strings=strings,
        kernels=kernels,
        launches=replace(launches, kernel=kernel_of_launch),
        ops=replace(
            ops,
            tensor_core_eligible=eligibility_of(
                ops, strings, profile.input_shapes, profile.input_dtypes, capability if len(launches) else None
            ),
        ),
        iterations=replace(iterations, category_ns=categories),
    )
