"""How often the first rank and cause stay right when recordings of jobs are worse than they were.

    python -m lab.ranks.perturbed tests/data/ranks/{recorded,held_out,trial} [--seeds 3]

Each job (event files and `truth.N.json`, as `lab.ranks.record` writes them) is changed in several ways and
answered again. A row for each way: how often the planted rank and cause come first, and are certain, how many jobs
without one are silent, in how many each rank's account adds up to its step, and how far the clocks are found from where
they were put at most (us). With a rank missing nothing may be certain.
"""

from __future__ import annotations

import argparse
import dataclasses
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np

from tb_dlprof_plugin.fleet.answers.job_of import job_of
from tb_dlprof_plugin.fleet.facts_of_profile import facts_of_profile
from tb_dlprof_plugin.fleet.job import Job
from tb_dlprof_plugin.fleet.rank_facts import Collectives, RankFacts
from tb_dlprof_plugin.model.profile import Profile
from tb_dlprof_plugin.names.kernel_verdicts import classify_kernel
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.event_file import read_blobs
from tb_dlprof_plugin.store.logdir import runs_below
from tb_dlprof_plugin.store.profile_store import read_profile

from .compare import row_of

CLOCK_NS, DRIFT = 5_000_000, 50e-6
"""The most by which a clock is set ahead or back, and by which it goes fast or slow: 50 ppm are usual for quartz."""
CLOCK_FOUND_US = 10.0
DROPPED = 0.05
"""Share of one rank's calls that are lost, one after the other, as recorders lose a buffer; at least one is."""
_ADDS_UP_MS = 1e-9
_NEW_NAME = re.compile(r"ncclDevKernel_(\w+?)_(Sum|Avg|Max|Min|Prod)_(\w+?)_(RING|TREE|NVLS|COLLNET\w*)_(\w+)\(.*\)")


@dataclass(frozen=True)
class Changed:
    """A job as it is answered.

    Attributes:
        facts: of its ranks.
        moved_us: by how much each rank's clock was set ahead when its first call ended.
        new_number: of each rank, where ranks are numbered differently.
        missing: whether a rank is left out.
    """

    facts: list[RankFacts]
    moved_us: dict[int, float] = dataclasses.field(default_factory=dict)
    new_number: dict[int, int] = dataclasses.field(default_factory=dict)
    missing: bool = False


Change = Callable[[Sequence[Profile], np.random.Generator], Changed]


def as_recorded(profiles: Sequence[Profile], _: np.random.Generator) -> Changed:
    """Without a change."""
    return Changed(_facts(profiles))


def jittered(share: float) -> Change:
    """Each kernel and call takes longer or shorter, by a normal distribution with this relative deviation, but does not
    run into the next one on its stream."""

    def change(profiles: Sequence[Profile], draw: np.random.Generator) -> Changed:
        return Changed(_facts([_jittered(one, share, draw) for one in profiles]))

    return change


def _jittered(one: Profile, share: float, draw: np.random.Generator) -> Profile:
    launches = one.launches
    wanted = launches.duration_ns * (1 + share * draw.standard_normal(len(launches)))
    order = np.lexsort((launches.start_ns, launches.stream, launches.device))
    following = np.full(len(launches), np.iinfo(np.int64).max)
    same = (np.diff(launches.stream[order]) == 0) & (np.diff(launches.device[order]) == 0)
    following[order[:-1][same]] = launches.start_ns[order[1:][same]]
    longest = np.maximum(following - launches.start_ns, 1)
    duration = np.clip(np.rint(wanted).astype(np.int64), 1, longest)
    return replace(one, launches=replace(launches, duration_ns=duration))


def on_other_clocks(profiles: Sequence[Profile], draw: np.random.Generator) -> Changed:
    """Each rank is on a host of its own, whose clock, but the first one's, is ahead or behind, and drifts."""
    facts, moved = _facts(profiles), {}
    changed = []
    for one in facts:
        ahead, drift = 0, 0.0
        if one is not facts[0]:
            ahead, drift = int(draw.integers(-CLOCK_NS, CLOCK_NS)), float(draw.uniform(-DRIFT, DRIFT))
        calls = one.collectives
        begin = int((calls.start_ns + calls.duration_ns).min(initial=one.steps.end_ns[-1]))
        moved[one.rank] = (ahead + drift * begin) / 1e3
        steps = {name: _drifted(getattr(one.steps, name), drift) for name in ("start_ns", "end_ns")}
        times = {name: _drifted(getattr(calls, name), drift) for name in ("start_ns", "launched_ns")}
        changed.append(
            replace(
                one,
                host=f"host{one.rank}",
                base_ns=one.base_ns + ahead,
                steps=replace(one.steps, **steps),
                collectives=replace(calls, **times),
            )
        )
    return Changed(changed, moved)


def _drifted(column: np.ndarray, drift: float) -> np.ndarray:
    return np.asarray(column + np.rint(column * drift).astype(np.int64))


def without_a_rank(profiles: Sequence[Profile], draw: np.random.Generator) -> Changed:
    """One rank is not recorded."""
    facts = _facts(profiles)
    del facts[int(draw.integers(len(facts)))]
    return Changed(facts, missing=True)


def with_lost_calls(profiles: Sequence[Profile], draw: np.random.Generator) -> Changed:
    """Some calls of one rank are lost."""
    facts = _facts(profiles)
    at = int(draw.integers(len(facts)))
    calls = facts[at].collectives
    count = max(round(DROPPED * len(calls)), 1)
    first = int(draw.integers(len(calls) - count + 1))
    kept = np.r_[np.arange(first), np.arange(first + count, len(calls))]
    columns = {one.name: getattr(calls, one.name)[kept] for one in fields(Collectives)}
    facts[at] = replace(facts[at], collectives=Collectives(**columns))
    return Changed(facts)


def renumbered(profiles: Sequence[Profile], _: np.random.Generator) -> Changed:
    """Ranks count from the other end, as another launcher may number the same GPUs."""
    count = len(profiles)
    new = {rank: count - 1 - rank for rank in range(count)}
    changed = []
    for one in _facts(profiles):
        peer = one.collectives.peer
        groups = tuple(
            replace(group, members=tuple(sorted(new[rank] for rank in group.members))) for group in one.groups
        )
        changed.append(
            replace(
                one,
                rank=new[one.rank],
                groups=groups,
                collectives=replace(one.collectives, peer=np.where(peer >= 0, count - 1 - peer, peer)),
            )
        )
    return Changed(changed, new_number=new)


def of_old_versions(profiles: Sequence[Profile], _: np.random.Generator) -> Changed:
    """NCCL's kernels have their names of before 2.19, and nothing is recorded of process groups and calls."""
    return Changed(_facts([_of_old_version(one) for one in profiles]))


def _of_old_version(one: Profile) -> Profile:
    strings = list(one.strings)
    for name in one.kernels.name.tolist():
        if strings[name].startswith("ncclDevKernel"):
            old = _NEW_NAME.sub(r"ncclKernel_\1_\4_\5_\2_\3(ncclWorkElem)", strings[name])
            strings[name] = old.replace("ncclDevKernel_", "ncclKernel_")
            assert classify_kernel(strings[name]).kind == "communication", strings[name]
    nothing = {column.name: getattr(one.communications, column.name)[:0] for column in fields(type(one.communications))}
    return replace(one, strings=strings, communications=type(one.communications)(**nothing), process_groups=[])


CHANGES: dict[str, Change] = {
    "as recorded": as_recorded,
    "durations vary by 1 %": jittered(0.01),
    "durations vary by 5 %": jittered(0.05),
    "clocks up to 5 ms apart, drifting": on_other_clocks,
    "a rank missing": without_a_rank,
    "5 % of a rank's calls lost": with_lost_calls,
    "ranks numbered backwards": renumbered,
    "NCCL's old names, no process groups": of_old_versions,
}


def _facts(profiles: Sequence[Profile]) -> list[RankFacts]:
    return sorted((facts_of_profile(ProfileView(one)) for one in profiles), key=lambda one: one.rank)


def profiles_of(folder: Path) -> list[Profile]:
    """Of all ranks of a job."""
    ((run, files),) = runs_below(folder).items()
    return [read_profile(blob) for file in files for blob in read_blobs(file, run)]


@dataclass
class Score:
    """Of one change, over all jobs and seeds."""

    planted: int = 0
    first: int = 0
    right: int = 0
    even: int = 0
    silent: int = 0
    jobs: int = 0
    adding_up: int = 0
    clock_us: float = 0.0
    wrong: list[str] = dataclasses.field(default_factory=list)

    def count(self, folder: Path, changed: Changed, before: Job) -> None:
        """Adds a changed job; ``before`` is what was answered about it as recorded."""
        job = job_of(changed.facts)
        self.jobs += 1
        self.adding_up += all(abs(_sum_ms(job, index)) < _ADDS_UP_MS for index in range(len(job.account)))
        row = row_of(folder, job)
        named = f"rank {row.named_rank}, {row.named_cause}, {'certain' if row.certain else 'not certain'}"
        if row.rank is not None and changed.new_number:
            row = replace(row, rank=changed.new_number[row.rank])
        if changed.missing:
            self.even += 1
            self.silent += not row.certain
            fine = not row.certain
        elif row.cause == "slow_link" and changed.moved_us:
            # Between hosts such a link is as fast as they are.
            fine = True
        elif row.cause:
            self.planted += 1
            self.first += replace(row, certain=True).right
            self.right += row.right
            fine = row.right
        else:
            self.even += 1
            self.silent += row.right
            fine = row.right
        if not fine:
            self.wrong.append(f"{folder.name}: {named}")
        for rank, moved in changed.moved_us.items():
            if rank not in before.clock.offsets_us:
                # Nothing that ends on both ranks at once connects them.
                continue
            found = job.clock.offsets_us.get(rank, np.inf) - before.clock.offsets_us[rank]
            self.clock_us = max(self.clock_us, abs(found - moved))


def _sum_ms(job: Job, index: int) -> float:
    """What is missing of a rank's step in its account."""
    one = job.account[index]
    parts = (one.compute_ms, one.transfer_ms, one.waiting_ms or 0.0, one.bubble_ms, one.host_ms)
    return sum(parts) - one.step_ms


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directories", type=Path, nargs="+")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--wrong", action="store_true", help="name the jobs that are answered wrongly")
    arguments = parser.parse_args()
    folders = sorted({file.parent for one in arguments.directories for file in one.glob("*/truth.*.json")})
    if not folders:
        parser.error("no job with truth.N.json in the directories")
    scores = {name: Score() for name in CHANGES}
    for folder in folders:
        profiles = profiles_of(folder)
        before = job_of(_facts(profiles))
        for name, change in CHANGES.items():
            drawn = name not in ("as recorded", "ranks numbered backwards", "NCCL's old names, no process groups")
            for seed in range(arguments.seeds if drawn else 1):
                scores[name].count(folder, change(profiles, np.random.default_rng(seed)), before)
    form = "{:<36} {:>12} {:>12} {:>12} {:>12} {:>10}"
    print(form.format("change", "first", "certain", "silent", "adds up", "clock, us"))
    for name, score in scores.items():
        clock = f"{score.clock_us:.2f}" if name.startswith("clocks") else ""
        first, right = (f"{count} of {score.planted}" for count in (score.first, score.right))
        silent = f"{score.silent} of {score.even}"
        print(form.format(name, first, right, silent, f"{score.adding_up} of {score.jobs}", clock))
        for line in score.wrong if arguments.wrong else ():
            print("   ", line)


if __name__ == "__main__":
    main()
