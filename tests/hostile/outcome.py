"""What trying an input gives, and what the kinds of input share: questions with a limit of time, recorded profiles."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support import all_answers, hostile_traces

from tb_dlprof_plugin.analysis import analyze_trace
from tb_dlprof_plugin.fleet.rank_facts import RankFacts
from tb_dlprof_plugin.model.profile import Profile
from tb_dlprof_plugin.store.logdir import read_profiles

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "demo" / "recorded"
LONGEST_S = 2.0
"""Of the processor, that one read of a small file, or one answer about it, may take."""


@dataclass
class Outcome:
    """What came of an input: whether it was let in, how many answers about it were looked at, what was wrong."""

    let_in: bool
    answers: int = 0
    faults: list[str] = field(default_factory=list)

    def ask(
        self,
        name: str,
        question: Callable[[], Any],
        own: tuple[type[Exception], ...] = (),
        longest_s: float = LONGEST_S,
    ) -> Any:
        """The answer; None where there is none, or it is wrong. ``own`` are errors that say one sentence of ours."""
        began = time.process_time()
        self.answers += 1
        answer = None
        try:
            answer = question()
            shown = None if isinstance(answer, RankFacts) else all_answers.ask((name, lambda: answer))
            most = all_answers.most_printed(name)
            self.faults += [f"{name}: share {wrong}" for wrong in all_answers.wrong_shares(shown, most=most)]
        except own as error:
            if len(str(error).splitlines()) != 1:
                self.faults.append(f"{name}: the refusal is no sentence: {error!r}"[:200])
        except Exception as error:
            self.faults.append(f"{name}: {hostile_traces.where(error)}")
            answer = None
        if (took := time.process_time() - began) > longest_s:
            self.faults.append(f"{name}: takes {took:.1f} s")
        return answer


Try = Callable[[random.Random], Outcome]
"""Makes an input of a source of chance and tries it."""


def timed(read: Callable[[], bool], longest_s: float = LONGEST_S) -> Outcome:
    """The outcome of reading, which says whether the input was let in."""
    began = time.process_time()
    try:
        let_in, faults = read(), []
    except Exception as error:
        let_in, faults = True, [f"reading: {hostile_traces.where(error)}"]
    took = time.process_time() - began
    return Outcome(let_in, 0, [*faults, *([f"reading takes {took:.1f} s"] if took > longest_s else [])])


def small_profiles() -> list[Profile]:
    """Recorded ones of each kind: a GPU with Tensor Cores, a light window, memory; the CPU; a rank of several."""
    found = [read_profiles(RECORDED / name)[0].profile for name in ("mlp/fp32", "lenet/amp-fp16")]
    for name in ("cpu_memory", "nccl_rank0", "hook_amp_bf16"):
        found.append(analyze_trace(ROOT / "tests" / "traces" / f"{name}.pt.trace.json.gz"))
    return found
