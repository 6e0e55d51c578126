"""What ``tb-dlprof try`` found out: the content of ``--format json``, and of what is stored beside its runs."""

from __future__ import annotations

import msgspec


class TriedRemedy(msgspec.Struct):
    """One remedy, or several at once, against the unchanged script.

    Attributes:
        remedy: its name; of several, joined by " + ".
        title: in a few words.
        status: "measured"; "no effect"; "not tried" (with the reason in ``detail``); "failed" (with the error).
        before_ms, after_ms: of a step; of a larger batch, per as many samples as a step of the baseline has.
        gain_percent: the share of the time that it saves, negative where it costs; with its 95 % interval.
        certain: whether it is a gain even after all looks at the numbers.
        forecast_percent: what the advice on the baseline's recording said; None where it said nothing.
        verdict: "same to the bit", "within noise of the seed", "differs", "broken" or "" where nothing was compared.
        detail: why, by how much, from which step on.
        may_change: what it may change in the results.
        setup_s: seconds that the start takes longer than the baseline's: compiling, tuning.
        peak_memory_mb, baseline_memory_mb: the most that tensors held on the GPU in MB (10^6 bytes).
        run: name of its run in the logdir; "" without.
        code: how to write it.
    """

    remedy: str
    title: str = ""
    status: str = "not tried"
    before_ms: float | None = None
    after_ms: float | None = None
    gain_percent: float | None = None
    low_percent: float | None = None
    high_percent: float | None = None
    certain: bool = False
    quads: int = 0
    forecast_percent: float | None = None
    verdict: str = ""
    detail: str = ""
    may_change: str = ""
    setup_s: float | None = None
    peak_memory_mb: float | None = None
    baseline_memory_mb: float | None = None
    run: str = ""
    code: str = ""
    rules: list[str] = []


class BestSet(msgspec.Struct):
    """The remedies that together gain most; none where nothing gains."""

    remedies: list[str] = []
    gain_percent: float = 0.0
    low_percent: float = 0.0
    high_percent: float = 0.0
    before_ms: float | None = None
    after_ms: float | None = None
    verdict: str = ""
    detail: str = ""
    run: str = ""


class TrialResult(msgspec.Struct):
    """All of one ``tb-dlprof try``.

    Attributes:
        script: the command that was tried.
        baseline_ms: the step of the unchanged script, the mean of all its blocks.
        rows: all remedies; measured ones first, those that gain most at the top.
        best: the best set.
        notes: sentences about what was not as wished: no Landlock, too little memory for two processes.
        budget_s, used_s: seconds allowed and taken.
        interrupted: whether Ctrl-C or the budget ended it before all were tried.
        created_unix_s: when it ended.
    """

    script: str
    baseline_ms: float | None = None
    rows: list[TriedRemedy] = []
    best: BestSet = msgspec.field(default_factory=BestSet)
    notes: list[str] = []
    gpu: str = ""
    torch_version: str = ""
    world_size: int = 1
    budget_s: float = 0.0
    used_s: float = 0.0
    interrupted: bool = False
    run: str = ""
    created_unix_s: float = 0.0
