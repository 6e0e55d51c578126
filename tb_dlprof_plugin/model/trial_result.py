"""The result of `tb-dlprof try`: what its JSON has, and what is stored with the profile of the baseline.

Times are milliseconds per step without a profiler; where a remedy changes the samples of a step, per as many samples as
a step of the baseline has. Gains are percent of the baseline's time: 10 means that a step takes 0.9 times as long. None
always means: not known.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from tb_dlprof_plugin.model.column import Form

Verdict = Literal["same to the bit", "within noise of the seed", "differs", "broken"]
"""Whether the training computes what it did."""
OTHER_TRAININGS: Final[tuple[Verdict, ...]] = ("broken", "differs")
"""With which a remedy is in no best set."""


BUDGET_USED = "The budget was used before its turn: give a larger --budget, or --continue."
INSIDE = "measured inside the script, not confirmed in a fresh process"


class TriedRemedy(msgspec.Struct, kw_only=True):
    """One remedy, or one set of remedies, against the baseline.

    Attributes:
        remedy: its name, or the names of a set, joined by "+".
        title: a few words.
        before_ms: of the baseline in the same blocks.
        gain_percent: of the medians of the blocks' ratios, with its interval at 95 %.
        is_gain: whether the interval lies above 0 after the correction for repeated looks.
        forecast_percent: what the advice on the baseline's recording expected.
        verdict: None where no step could be compared.
        verdict_text: what differs, by how much and from which step on, in one sentence.
        start_s: from the start of the process, or of the script where its imports were done before, to the first block:
            compilation and autotuning are part of it.
        baseline_start_s: the same of the baseline.
        memory_bytes: the most that tensors held on the GPU; None on the CPU.
        joules: energy of a step.
        quads: groups of four blocks (baseline, remedy, remedy, baseline) behind the interval.
        changes: what it may change, in one sentence.
        code: how to write it.
        error: the last line of what the process wrote when it failed; "" where it ran.
        not_tried: why it was not run, in one sentence; "" where it was.
        no_effect: why it changed nothing, in one sentence.
        stopped: why no more blocks were run, in a few words.
        run: of the log directory, with the recording of it; "" without one.
    """

    remedy: str
    title: str = ""
    before_ms: float | None = None
    after_ms: float | None = None
    gain_percent: float | None = None
    low_percent: float | None = None
    high_percent: float | None = None
    is_gain: bool = False
    forecast_percent: float | None = None
    verdict: Verdict | None = None
    verdict_text: str = ""
    start_s: float | None = None
    baseline_start_s: float | None = None
    memory_bytes: int | None = None
    joules: float | None = None
    quads: int = 0
    samples: float = 1.0
    changes: str = ""
    code: str = ""
    error: str = ""
    not_tried: str = ""
    no_effect: str = ""
    stopped: str = ""
    run: str = ""

    @property
    def names(self) -> frozenset[str]:
        """Of its remedies."""
        return frozenset(self.remedy.split("+"))


class BestSet(msgspec.Struct, kw_only=True):
    """The set of remedies that gains most, measured as a set; ``remedies`` is empty where none gains.

    ``patch`` is a unified diff of those remedies that can be written into the script, ``by_hand`` names the others.
    ``confirmed`` says whether it was measured in fresh processes, and not only by switching remedies in a running one.
    """

    remedies: list[str] = []
    gain_percent: float | None = None
    low_percent: float | None = None
    high_percent: float | None = None
    verdict: Verdict | None = None
    verdict_text: str = ""
    memory_bytes: int | None = None
    patch: str = ""
    by_hand: list[str] = []
    confirmed: bool = True


class TrialResult(msgspec.Struct, kw_only=True):
    """All that one `tb-dlprof try` measured.

    Attributes:
        command: the script and its arguments.
        baseline_ms: the median of all blocks of the baseline.
        baseline_memory_bytes: the most that its tensors held on the GPU; None on the CPU.
        baseline_joules: energy of a step.
        rows: the remedies that were run, by falling gain, then those that were not.
        sets: the combinations that were run.
        seeds_differ: what a baseline with another seed differs by, in one sentence: the yardstick of the verdicts.
        seconds: of the whole experiment.
        first_step_s: of it, before the script's first step ended, with which the budget begins.
        notes: sentences on what the reader has to know: a protection that is missing, processes that took turns.
    """

    command: list[str] = []
    baseline_ms: float | None = None
    baseline_memory_bytes: int | None = None
    baseline_joules: float | None = None
    unit: str = "optimizer steps"
    device: str = ""
    rows: list[TriedRemedy] = []
    sets: list[TriedRemedy] = []
    best: BestSet = msgspec.field(default_factory=BestSet)
    seeds_differ: str = ""
    seconds: float = 0.0
    first_step_s: float | None = None
    interrupted: bool = False
    notes: list[str] = []


_RESULT = msgspec.json.Decoder(TrialResult)
_BYTES_OF_JSON = 20
"""Of memory for each byte of JSON, at most: rows that hold a name alone."""
_MOST_BYTES = 1_000_000
"""Of the JSON; forty remedies and ten sets have some 40 kB."""


def encode_trial(result: TrialResult) -> bytes:
    """JSON, as it is printed and stored."""
    return msgspec.json.encode(result)


def decode_trial(data: bytes) -> TrialResult | None:
    """What `encode_trial` made; None where there is nothing, and for what no trial writes: anybody may have written
    the file."""
    if not 0 < len(data) <= _MOST_BYTES:
        return None
    try:
        result = _RESULT.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    parts: list[msgspec.Struct] = [result, result.best, *result.rows, *result.sets]
    return result if all(map(_can_be, parts)) else None


STORED_TRIAL = Form(
    bytes, encode_trial, lambda data, may_take: decode_trial(data) if may_take(_BYTES_OF_JSON * len(data)) else None
)
"""How a trial is stored with the profile that it has as its baseline: one that takes too much is none."""


_TIMES = frozenset({"baseline_ms", "before_ms", "after_ms", "samples"})
"""Numbers above 0."""
_LARGEST = 2.0**62


def _can_be(part: msgspec.Struct) -> bool:
    """Whether a part's numbers are some that a trial can measure: no gain is above 100 %, nothing else below 0."""
    for name in part.__struct_fields__:
        value = getattr(part, name)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            continue
        if name.endswith("_percent"):
            sound = -_LARGEST < value <= 100
        else:
            sound = 0 <= value < _LARGEST and (value > 0 or name not in _TIMES)
        if not sound:
            return False
    return True
