"""The sentences of a comparison: how the step changed, its uncertainty, and the causes.

Steps are those without the profiler. A sentence about an estimated step marks it as estimated, once.
"""

from __future__ import annotations

from tb_dlprof_plugin.comparison import Bucket, Comparison
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.model.formatting import duration, ratio
from tb_dlprof_plugin.model.frameworks import framework_title
from tb_dlprof_plugin.model.speedup_change import CANNOT_TELL
from tb_dlprof_plugin.simulation.estimate import StepEstimate

_SAME = 1.02
_SURELY_SAME = 1.05
"""Steps that may be the same differ by less than the first, either way, and surely by less than the second."""
_RECORDER_SHARE = 0.01
"""The recorder's overhead is shown from this share of the step on."""
_WORTH_NAMING = 0.05
"""Buckets are named whose difference is this much of the sum of all differences, or more."""
_WORTH_TELLING_PERCENT = 1.0
_SAME_MODEL_PERCENT = 50.0
"""Of the model's GPU time matched on both sides, from which models of two names are one that was renamed. Ours: pairs
of different demo models match at most 36 % on one side, runs of one model 97 % and more."""
_WAITS = ("cpu_launch", "python")
_OWN = ("casts", "scaler")


def different_models(comparison: Comparison, base: str, candidate: str) -> bool:
    """Whether two runs train different models, by the models' names and by how much of their work is the same."""
    if not base or not candidate or base == candidate:
        return False
    return any((side.matched_percent or 0.0) < _SAME_MODEL_PERCENT for side in comparison.shares)


def headline(comparison: Comparison, models: tuple[str, str] | None = None) -> str:
    """One sentence about the steps; ``models`` names those of two runs that train different ones."""
    first, second = (
        f"an estimated {duration(length)}" if step.estimated else duration(length)
        for step, length in zip(comparison.steps, comparison.step_ns, strict=True)
    )
    if all(step.estimated for step in comparison.steps):
        # Only once.
        second = duration(comparison.step_ns[1])
    speedup = comparison.speedup
    if models is not None:
        steps = "" if speedup is None else f" A step takes {first} and {second}: their ratio is no speedup."
        return f"The runs train different models, {models[0]} and {models[1]}.{steps}"
    if any(step.whole_recording for step in comparison.steps):
        return _without_steps(comparison)
    if speedup is None:
        return "One of the runs has no step time to compare."
    if comparison.change in CANNOT_TELL:
        return _cannot_tell(comparison, first, second)
    per_sample = comparison.per_sample or speedup
    sample = _by_sample(comparison)
    subject = "Per sample the candidate" if sample else "The candidate"
    if comparison.change == "faster":
        return f"{subject} is {per_sample:.2f} times as fast: {first} became {second} a step{sample}."
    if sample:
        return f"{subject} is slower, {1 / per_sample:.2f} times as long: {first} became {second} a step{sample}."
    return f"{subject} is slower: {first} became {second} a step, {1 / per_sample:.2f} times as long."


def _without_steps(comparison: Comparison) -> str:
    whole = [step.whole_recording for step in comparison.steps]
    which = "both runs" if all(whole) else "the base" if whole[0] else "the candidate"
    lengths = " and ".join(duration(length) for length in comparison.step_ns)
    return f"Cannot tell which step is shorter: in {which} no steps are marked. {lengths} are compared as they are."


def _cannot_tell(comparison: Comparison, first: str, second: str) -> str:
    sample = _by_sample(comparison)
    if _same(comparison):
        return f"Both runs take about the same, {first} and {second} a step: cannot tell which is faster."
    what = f"Cannot tell whether the candidate is faster{' per sample' if sample else ''}"
    interval = comparison.per_sample_interval
    if interval is None:
        return f"{what}: {first} and {second} a step{sample}, one of them that of a single recorded iteration."
    low, high = (ratio(end) for end in interval)
    return f"{what}: {first} and {second} a step{sample}, a speedup between {low} and {high}."


def _by_sample(comparison: Comparison) -> str:
    """The batch sizes as a clause where they differ."""
    batches = comparison.batches
    if batches is None or not batches.differ:
        return ""
    return f", with batches of {batches.a} and {batches.b}" if batches.recorded else ", with batches of another size"


def _same(comparison: Comparison) -> bool:
    """Whether steps of which neither is known to be shorter are practically the same."""
    speedup, interval = comparison.per_sample or 0.0, comparison.per_sample_interval
    if interval is None or _by_sample(comparison):
        return False
    return 1 / _SAME <= speedup <= _SAME and interval[0] >= 1 / _SURELY_SAME and interval[1] <= _SURELY_SAME


def recorded_text(step: StepEstimate) -> str:
    """The source of a step and the recorder's overhead: "timed without the profiler; recorded 67.4 ms, ..."."""
    added = step.recorder_ns
    if added < _RECORDER_SHARE * step.ns:
        return step.words
    return f"{step.words}; recorded {duration(step.recorded_ns)}, of which the recorder added {duration(added)}"


def explanation(comparison: Comparison, models: tuple[str, str] | None = None) -> list[str]:
    """The causes of the difference, most important first; ``models`` as for `headline`: nothing about a speedup."""
    return [
        text
        for text in (
            "" if models else _certainty(comparison),
            _steps(comparison),
            _moved(comparison),
            _fused(comparison),
            _graphs(comparison),
            _own_work(comparison),
            _waiting(comparison),
            _not_matched(comparison),
        )
        if text
    ]


def across_frameworks(frameworks: tuple[str, ...]) -> list[str]:
    """What to compare where the runs are of two frameworks; nothing where they are of one."""
    if len(set(frameworks)) == 1:
        return []
    names = " and ".join(framework_title(one) or "an unknown framework" for one in frameworks)
    text = (
        f"The runs are of {names}, which name their ops differently: compare kernels by family, and modules. Modules "
        "are the same where their paths are, but for a root, numbering, plural and case; what only one framework names "
        "counts to the module around it."
    )
    return [text]


def signed(value_ns: int) -> str:
    """A difference with its sign: "+1.20 ms"."""
    return f"+{duration(value_ns)}" if value_ns > 0 else duration(value_ns).replace("-", "−")


def _certainty(comparison: Comparison) -> str:
    if comparison.speedup is None:
        return ""
    if comparison.speedup_interval is None:
        return "One run has a single iteration: noise cannot be estimated."
    low, high = (ratio(end) for end in comparison.speedup_interval)
    where = f"is {low}, to three digits" if low == high else f"lies between {low} and {high}"
    return f"The speedup {where} (95 %, from the uncertainty of both steps)."


def _steps(comparison: Comparison) -> str:
    sides = zip(("Base", "Candidate"), comparison.steps, comparison.step_ns, strict=True)
    return " ".join(f"{name}: {duration(length)} a step, {recorded_text(step)}." for name, step, length in sides)


def _moved(comparison: Comparison) -> str:
    whole = sum(abs(bucket.difference_ns) for bucket in comparison.buckets)
    moved = [
        bucket
        for bucket in sorted(comparison.buckets, key=lambda bucket: -abs(bucket.difference_ns))
        if whole and abs(bucket.difference_ns) >= _WORTH_NAMING * whole
    ]
    if not moved:
        return ""
    parts = [f"{bucket.label} {signed(bucket.difference_ns)}{' (noise)' if bucket.noise else ''}" for bucket in moved]
    change = signed(comparison.step_ns[1] - comparison.step_ns[0])
    return f"The change of {change} a step is made of: {', '.join(parts)}."


def _own_work(comparison: Comparison) -> str:
    buckets = {bucket.key: bucket for bucket in comparison.buckets}
    added = sum(max(0, buckets[key].difference_ns) for key in _OWN if key in buckets)
    if added < 0.01 * comparison.step_ns[1] or not comparison.step_ns[1]:
        return ""
    share = 100 * added / comparison.step_ns[1]
    return f"Casts and GradScaler take {duration(added)} more, {share:.1f} % of the candidate's step."


def _fused(comparison: Comparison) -> str:
    """What the kernels of compiled code changed."""
    found = comparison.replaced
    if found is None:
        return ""
    eager, compiled = 1 - found.compiled, found.compiled
    saved = found.gpu_ns[eager] - found.gpu_ns[compiled]
    return (
        f"Fusion: forward and backward pass take {duration(found.gpu_ns[eager])} of GPU time in "
        f"{found.launches[eager]:.0f} launches eagerly, and {duration(found.gpu_ns[compiled])} in "
        f"{found.launches[compiled]:.0f} compiled: {duration(saved).replace('-', '−')} saved."
    )


def _graphs(comparison: Comparison) -> str:
    """What CUDA graphs of compiled code changed of the CPU's launching."""
    found = comparison.replaced
    launching = next((bucket for bucket in comparison.buckets if bucket.key == "cpu_launch"), None)
    if found is None or launching is None or bool(found.replays[0]) == bool(found.replays[1]):
        return ""
    replays, change = found.replays[found.compiled], signed(launching.difference_ns)
    return (
        f"CUDA graphs: the compiled step replays {replays:.3g} graphs; the time in which the GPU waits for launches "
        f"changes by {change}{' (noise)' if launching.noise else ''}."
    )


def _waiting(comparison: Comparison) -> str:
    """Says where the GPU's saving became waiting for the CPU."""
    buckets = {bucket.key: bucket for bucket in comparison.buckets}
    if not set(_WAITS) <= set(buckets):
        return ""
    waits = [buckets[key] for key in _WAITS]
    before, after = (sum(read(bucket) for bucket in waits) for read in (_a_ns, _b_ns))
    step = comparison.step_ns[1]
    if after < 0.2 * step or not step:
        return ""
    grown = f", {signed(after - before)} against the base" if abs(after - before) > 0.05 * step else ""
    return (
        f"In {duration(after)} of the candidate's step ({100 * after / step:.0f} %) the GPU waits for the CPU{grown}: "
        "faster kernels cannot shorten that."
    )


def _not_matched(comparison: Comparison) -> str:
    what = "GPU time" if comparison.basis == "gpu" else "CPU time of ops"
    texts = []
    for name, side in zip(("base", "candidate"), comparison.shares, strict=True):
        left = percent(side.unmatched_ns + side.unlinked_ns, side.total_ns)
        if left is not None and left > _WORTH_TELLING_PERCENT:
            texts.append(f"{left:.1f} % of the {name}'s {what} has no counterpart.")
    replaced = comparison.replaced
    if replaced is not None and replaced.modules:
        return " ".join(texts)
    compiled = [percent(side.compiled_ns, side.total_ns) or 0 for side in comparison.shares]
    if max(compiled) > _WORTH_TELLING_PERCENT:
        texts.append(
            f"Regions of torch.compile have no modules to match: {compiled[0]:.1f} % of the base's {what} and "
            f"{compiled[1]:.1f} % of the candidate's can be compared as a whole only."
        )
    return " ".join(texts)


def _a_ns(bucket: Bucket) -> int:
    return bucket.a_ns


def _b_ns(bucket: Bucket) -> int:
    return bucket.b_ns
