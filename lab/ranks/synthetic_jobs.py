"""How often the verdict on jobs is right whose delays are drawn, from real recordings of single ranks, without a GPU.

    python -m lab.ranks.synthetic_jobs [--jobs 330] [--unopened] [--wrong]

Each job is drawn by its number: a recorded job whose ranks do the same (`SOURCES`), 2 to 8 ranks, 3 to 8 recorded
steps, jitter of 2 to 15 %, the depth of the launch queue, how much slower the profiler makes each host, and what is
planted: a cause and its size, one stall, nothing, or an incomplete recording. `job_simulation.run` carries it out twice
without the profiler, with and without the plant: the difference is what a repair wins. Every third job is unopened:
thresholds are chosen without a look at it.
"""

from __future__ import annotations

import argparse
import copy
import math
import pickle
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import msgspec
import numpy as np

from tb_dlprof_plugin.fleet.answers.job_of import job_of
from tb_dlprof_plugin.fleet.calls_of_profile import calls_on_gpu
from tb_dlprof_plugin.fleet.facts_of_profile import facts_of_profile
from tb_dlprof_plugin.fleet.job import Job
from tb_dlprof_plugin.fleet.matching import match
from tb_dlprof_plugin.fleet.rank_facts import Gradients, Group, RankFacts
from tb_dlprof_plugin.model.intervals import union
from tb_dlprof_plugin.model.lookup import take_rows
from tb_dlprof_plugin.model.profile import Bools, CallKind, Floats, Profile, Role
from tb_dlprof_plugin.model.shapes import InputShapes, TensorList
from tb_dlprof_plugin.model.string_table import StringTable
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.recorder_cost import unprofiled_share

from .job_simulation import Conditions, Rank, RankTimes, cut, rank_of, recorded, run, step_ns
from .perturbed import profiles_of

RECORDED = Path(__file__).parents[2] / "tests" / "data" / "ranks"
SOURCES = (
    "recorded/ddp_even",
    "recorded/fsdp_even",
    "recorded/tensor_even",
    "recorded/experts_even",
    "recorded/pipeline_even",
    "held_out/images_even",
    "trial/residual_even",
    "trial/vision_even",
    "settings_recorded/sharded",
    "settings_recorded/wide",
    "settings_recorded/wide_copied",
    "settings_recorded/wide_one",
    "settings_recorded/gpipe_few",
)
_PAIRS = ("pipeline", "gpipe")
"""Ranks of these have different programs: a job has as many as were recorded."""
PLANTS = {
    "even": 0.18,
    "slow_host": 0.22,
    "slow_input": 0.08,
    "slow_gpu": 0.14,
    "uneven_data": 0.08,
    "stall": 0.08,
    "missing": 0.06,
    "truncated": 0.06,
    "mixed": 0.05,
    "lacks a step": 0.05,
}
INCOMPLETE = ("missing", "truncated", "mixed", "lacks a step")
WARM, TRUE_STEPS = 4, 16
WORTH, LEAST = 0.03, 0.01
"""Shares of the step: from the first on a delay has to be named, below the second no rank may be."""
WITHIN = 0.15


@dataclass(frozen=True)
class Drawn:
    """A drawn job.

    Attributes:
        plant: of `PLANTS`. rank: where it is; None for none.
        step_ms, won_ms: without the profiler; what the repair of the rank wins.
        facts: of the recorded ranks.
    """

    number: int
    source: str
    plant: str
    rank: int | None
    step_ms: float
    won_ms: float
    facts: list[RankFacts]
    said: str


@cache
def _source(name: str) -> list[Rank]:
    profiles = profiles_of(RECORDED / name)
    facts = [facts_of_profile(ProfileView(one)) for one in profiles]
    matched = match(facts)
    launch_of = [_launches_of(one) for one in profiles]
    # Numbers within the step.
    first = {int(step): int(np.flatnonzero(matched.iteration == step)[0]) for step in np.unique(matched.iteration)}
    collective: list[dict[int, int]] = [{} for _ in profiles]
    for number in range(len(matched)):
        for at in range(int(matched.first[number]), int(matched.first[number + 1])):
            rank = int(matched.rank_index[at])
            collective[rank][launch_of[rank][int(matched.row[at])]] = number - first[int(matched.iteration[number])]
    return [rank_of(profile, own) for profile, own in zip(profiles, collective, strict=True)]


def _launches_of(profile: Profile) -> list[int]:
    """Rows of `Profile.launches` of the calls of the facts, in their order."""
    groups = [Group(one.name, one.description, one.members) for one in profile.process_groups]
    device = profile.iterations.gpu_ids[0]
    return calls_on_gpu(ProfileView(profile), device, groups, StringTable()).launch.tolist()


def _transfers(ranks: Sequence[Rank], tile: int) -> Floats:
    """Of each collective of a step: what it takes on the member that comes last."""
    count = max(int(rank.tiles[tile].collective.max(initial=-1)) for rank in ranks) + 1
    shortest = np.full(count, np.inf)
    for rank in ranks:
        own = rank.tiles[tile]
        here = own.collective >= 0
        np.minimum.at(shortest, own.collective[here], own.gpu_ns[here])
    return np.where(np.isfinite(shortest), shortest, 0.0)


def _as_rank(rank: Rank, number: int, world: int) -> Rank:
    profile = rank.profile
    groups = [replace(one, members=tuple(range(world))) for one in profile.process_groups]
    facts = msgspec.structs.replace(
        profile.facts,
        world_size=world,
        unprofiled_before_ns=[],
        unprofiled_after_ns=[],
        unprofiled_step_ns=None,
        garbage_collections=[],
    )
    source = replace(profile.source, rank=number, worker=f"rank{number}", trace_file="")
    return Rank(replace(profile, process_groups=groups, facts=facts, source=source), rank.tiles)


def draw(number: int) -> Drawn:
    """The job with this number."""
    rng = np.random.default_rng([7, number])
    plant = str(rng.choice(list(PLANTS), p=np.array(list(PLANTS.values())) / sum(PLANTS.values())))
    name = str(rng.choice(SOURCES))
    pair = any(one in name for one in _PAIRS)
    least = 3 if plant == "missing" else 2
    world = 2 if pair else int(rng.choice([one for one in (2, 2, 3, 4, 4, 6, 8) if one >= least]))
    real = _source(name)
    # Even ranks are copies of one: two recorded GPUs differ.
    copied = int(rng.integers(len(real)))
    ranks = [_as_rank(real[index if pair else copied], index, world) for index in range(world)]
    window = int(rng.choice([3, 3, 4, 5, 6, 8]))
    tiles = len(real[0].tiles)
    usable = [tile for tile in range(tiles) if all(len(one.tiles[tile].launch) for one in real)]
    order = rng.choice(usable, WARM + TRUE_STEPS).tolist()
    jitter = float(rng.uniform(0.02, 0.15))
    depth = int(rng.choice([128, 256, 512, 1024, 1024]))
    transfer = [_transfers(real, tile) * rng.lognormal(0, 0.03, size=1) for tile in order]
    share = unprofiled_share(ProfileView(real[0].profile), ProfileView(real[0].profile).selection())
    true_pace = float(rng.uniform(share.low, share.high))
    late = int(rng.integers(world))
    conditions = [_conditions(rank, order, rng, jitter, depth) for rank in ranks]
    even = [copy.deepcopy(one) for one in conditions]
    base = step_ns(_true(ranks, order, even, transfer, true_pace), WARM)
    cause = plant if plant not in INCOMPLETE else str(rng.choice(["even", "slow_host", "slow_gpu"]))
    size = float(np.exp(rng.uniform(math.log(0.02), math.log(0.6)))) * base
    _plant(cause, ranks[late], conditions[late], order, size, rng, window)
    if cause == "uneven_data":
        ranks[late] = _with_other_shapes(ranks[late])
    step = step_ns(_true(ranks, order, conditions, transfer, true_pace), WARM)
    timed = bool(rng.random() < 0.4)
    # Hosts are slower while the profiler records, each by its own amount.
    as_recorded = []
    for one in conditions:
        slower = float(rng.lognormal(0, 0.05))
        pace = [true_pace if index < WARM else slower for index in range(WARM + window)]
        as_recorded.append(
            replace(
                one,
                host=[row * by for row, by in zip(one.host, pace, strict=False)],
                kernels=one.kernels[: WARM + window],
                pauses=one.pauses[: WARM + window],
            )
        )
    times = run(ranks, order[: WARM + window], as_recorded, transfer[: WARM + window])
    numbers = 10 + np.arange(window)
    profiles = [
        recorded(rank, order[: WARM + window], one, WARM, numbers) for rank, one in zip(ranks, times, strict=True)
    ]
    if timed:
        steps = (step * rng.lognormal(0, 0.01, size=6)).astype(np.int64).tolist()
        profiles = [
            replace(
                one,
                facts=msgspec.structs.replace(one.facts, unprofiled_before_ns=steps[:3], unprofiled_after_ns=steps[3:]),
            )
            for one in profiles
        ]
    facts = _incomplete(plant, profiles, name, rng)
    planted = None if cause in ("even", "stall") else late
    said = (
        f"{world} ranks, {window} steps, jitter {jitter:.2f}, queue of {depth}, planted {size / base:.2f} of the step"
    )
    said += f", {cause}, {'timed' if timed else 'not timed'}"
    return Drawn(number, name, plant, planted, step / 1e6, (step - base) / 1e6, facts, said)


def _true(
    ranks: Sequence[Rank], order: Sequence[int], given: Sequence[Conditions], transfer: Sequence[Floats], pace: float
) -> list[RankTimes]:
    return run(ranks, order, [replace(one, host=[row * pace for row in one.host]) for one in given], transfer)


def _conditions(rank: Rank, order: Sequence[int], rng: np.random.Generator, jitter: float, depth: int) -> Conditions:
    gpu = float(rng.lognormal(0, 0.004))
    host, kernels = [], []
    for tile in order:
        count = len(rank.tiles[tile].launch)
        host.append(float(rng.lognormal(0, jitter / 2)) * rng.lognormal(0, jitter, size=count))
        # Kernels at equal shapes vary less than hosts do.
        kernels.append(gpu * rng.lognormal(0, jitter / 4, size=count))
    return Conditions(kernels, host, [[] for _ in order], depth)


def _plant(
    cause: str, rank: Rank, given: Conditions, order: Sequence[int], size: float, rng: np.random.Generator, window: int
) -> None:
    """Changes the conditions of a rank. ``size``: by how much (ns) its own step gets longer."""
    if cause == "slow_host":
        # In three steps a pause that comes in some only is not told from chance.
        way = str(rng.choice(["one", "few", "most"], p=[0.6, 0.25, 0.15] if window > 4 else [0.7, 0.3, 0.0]))
        at = float(rng.uniform(0.02, 0.9))
        for step, tile in enumerate(order):
            if way == "few":
                places = (_between_ops(rank, tile, at * part) for part in (0.2, 0.6, 1.0))
                given.pauses[step] = [(place, size / 3) for place in places]
            elif way == "one" or rng.random() < 0.7:
                given.pauses[step] = [(_between_ops(rank, tile, at), size * float(rng.lognormal(0, 0.05)))]
    if cause == "slow_input":
        for step, tile in enumerate(order):
            at = _loader_at(rank, tile)
            given.pauses[step] = [(at, size * float(rng.lognormal(0, 0.1)))]
    if cause in ("slow_gpu", "uneven_data"):
        chosen = [
            (rank.tiles[tile].collective < 0) & (_with_shapes(rank, tile) | (cause == "slow_gpu")) for tile in order
        ]
        own = np.mean([rank.tiles[tile].gpu_ns[here].sum() for tile, here in zip(order, chosen, strict=True)])
        factor = 1 + size / float(own)
        given.kernels = [np.where(here, row * factor, row) for row, here in zip(given.kernels, chosen, strict=True)]
    if cause == "stall":
        stalled = WARM + int(rng.integers(1, window))
        given.pauses[stalled] = [(float(rng.uniform(0.05, 0.9)), 3 * size)]


def _between_ops(rank: Rank, tile: int, share: float) -> float:
    """The place next to this share of the step at which the program's own code runs, no op of PyTorch."""
    profile, own = rank.profile, rank.tiles[tile]
    begin = int(profile.iterations.host_start_ns[own.iteration])
    calls = profile.calls
    kind, role = profile.ops.kind[calls.op], profile.ops.role[calls.op]
    rows = (kind == CallKind.OP) | (kind == CallKind.RUNTIME) | np.isin(role, (Role.OPTIMIZER, Role.DATALOADER))
    start, stop = union(calls.start_ns[rows], (calls.start_ns + calls.duration_ns)[rows])
    middle = (stop[:-1] + start[1:]) // 2 - begin
    inside = middle[(middle > 0) & (middle < own.host_ns)]
    return float(inside[np.abs(inside - share * own.host_ns).argmin()] / own.host_ns) if len(inside) else share


def _loader_at(rank: Rank, tile: int) -> float:
    """The place in the step at which it waits for its data loader; the begin where it has none."""
    profile, own = rank.profile, rank.tiles[tile]
    named = profile.ops_named(lambda name: name.startswith("enumerate(DataLoader)"))[profile.calls.op]
    begin = int(profile.iterations.host_start_ns[own.iteration])
    inside = named & (profile.calls.start_ns >= begin) & (profile.calls.start_ns < begin + own.host_ns)
    rows = np.flatnonzero(inside)
    if not len(rows):
        return 0.0
    middle = profile.calls.start_ns[rows[0]] + profile.calls.duration_ns[rows[0]] // 2 - begin
    return float(middle / own.host_ns)


def _with_shapes(rank: Rank, tile: int) -> Bools:
    """Of each row of a step whether more data makes its kernel's shapes larger."""
    profile, launch = rank.profile, rank.tiles[tile].launch
    grows = np.array([_larger(one) != one for one in profile.input_shapes])[profile.ops.shapes]
    op = ProfileView(profile).launch_op[np.maximum(launch, 0)]
    return (launch >= 0) & (op >= 0) & grows[np.maximum(op, 0)]


def _larger(shapes: InputShapes) -> InputShapes:
    """With a first size that is a quarter larger, but for lists of tensors: those are parameters."""
    return tuple(
        shape if isinstance(shape, TensorList) or not shape else (shape[0] + max(shape[0] // 4, 1), *shape[1:])
        for shape in shapes
    )


def _with_other_shapes(rank: Rank) -> Rank:
    shapes = [_larger(one) for one in rank.profile.input_shapes]
    return Rank(replace(rank.profile, input_shapes=shapes), rank.tiles)


def _incomplete(plant: str, profiles: list[Profile], name: str, rng: np.random.Generator) -> list[RankFacts]:
    facts = [facts_of_profile(ProfileView(one)) for one in profiles]
    other = int(rng.integers(len(profiles)))
    if plant == "missing":
        del facts[other]
    elif plant == "truncated":
        iterations = profiles[other].iterations
        whole = int(iterations.host_stop_ns[-1])
        shorter = cut(profiles[other], int(whole * rng.uniform(0.3, 0.75)))
        facts[other] = facts_of_profile(ProfileView(shorter))
    elif plant == "lacks a step":
        one = profiles[other]
        lost = int(rng.integers(len(one.iterations)))
        facts[other] = _without_step(facts[other], lost)
    elif plant == "mixed":
        names = [one for one in SOURCES if one != name and not any(pair in one for pair in _PAIRS)]
        world = len(profiles)
        real = _source(str(rng.choice(names)))
        stranger = _as_rank(real[0], other, world)
        facts[other] = facts_of_profile(ProfileView(stranger.profile))
    return facts


def _without_step(one: RankFacts, lost: int) -> RankFacts:
    kept = np.flatnonzero(np.arange(len(one.steps)) != lost)
    rows = np.flatnonzero(one.collectives.iteration != lost)
    calls = take_rows(one.collectives, rows)
    calls = replace(calls, iteration=calls.iteration - (calls.iteration > lost))
    return replace(one, steps=take_rows(one.steps, kept), collectives=calls, gradients=Gradients())


def judged(number: int, kept: Path | None = None) -> dict[str, object]:
    """A drawn job with what is said of it. ``kept``: where jobs are kept once they are drawn."""
    file = None if kept is None else kept / f"{number}.pickle"
    if file is not None and file.exists():
        drawn = pickle.loads(file.read_bytes())
    else:
        drawn = draw(number)
        if file is not None:
            file.write_bytes(pickle.dumps(drawn))
    job = job_of(drawn.facts)
    return {"drawn": replace(drawn, facts=[]), **_said(job)}


def _said(job: Job) -> dict[str, object]:
    found, first = job.verdict, job.delays[0] if job.delays else None
    return {
        "kind": found.kind if found else "unknown",
        "rank": found.rank if found else None,
        "cause": found.cause if found else "",
        "won": (found.saving_ms if found else 0.0) or 0.0,
        "low": (found.saving_low_ms if found else 0.0) or 0.0,
        "high": (found.saving_high_ms if found else 0.0) or 0.0,
        "step": job.step.ms if job.step else None,
        "first": (first.rank, first.cause, round(first.saving_ms, 2), first.why) if first else None,
    }


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=330)
    parser.add_argument("--unopened", action="store_true")
    parser.add_argument("--wrong", action="store_true")
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="a folder for the drawn jobs, which takes their drawing once")
    arguments = parser.parse_args()
    numbers = [n for n in range(arguments.first, arguments.jobs) if (n % 3 == 2) == arguments.unopened]
    with ProcessPoolExecutor(2) as pool:
        rows = list(pool.map(partial(judged, kept=arguments.keep), numbers, chunksize=2))
    score(rows, arguments.wrong)


def score(rows: Sequence[dict], wrong: bool) -> None:
    """Prints how often the verdict is right."""
    found: Counter[str] = Counter()
    errors, inside, steps = [], [], []
    for row in rows:
        one: Drawn = row["drawn"]
        certain = row["kind"] == "delays"
        share = one.won_ms / one.step_ms
        note = ""
        if row["step"]:
            steps.append(row["step"] / one.step_ms - 1)
        if one.plant in INCOMPLETE:
            found["incomplete"] += 1
            found["cannot be said"] += row["kind"] == "unknown"
            note = "" if row["kind"] == "unknown" else "INCOMPLETE"
        elif one.rank is None or share < LEAST:
            found["even or hidden"] += 1
            found["falsely certain"] += certain
            note = "FALSE" if certain else ""
        elif share >= WORTH:
            found["delays"] += 1
            named = certain and row["rank"] == one.rank
            found["named"] += named
            found["cause right"] += named and row["cause"] == one.plant
            note = (
                ""
                if named and row["cause"] == one.plant
                else "CAUSE"
                if named
                else "MISSED"
                if not certain
                else "OTHER RANK"
            )
            if named:
                errors.append(abs(row["won"] / one.won_ms - 1))
                inside.append(row["low"] <= one.won_ms <= row["high"])
                if errors[-1] > WITHIN:
                    note += " WIN"
        elif certain and row["rank"] != one.rank:
            note = "OTHER RANK"
        if wrong and note:
            planted = f"{one.plant} on rank {one.rank}, saves {one.won_ms:.2f} of {one.step_ms:.1f} ms"
            named = f"{row['kind']} {row['rank']} {row['cause']}, {row['won']:.2f} [{row['low']:.2f} {row['high']:.2f}]"
            print(f"{one.number:4} {one.source}: {planted} | {note}: {named}, first {row['first']} | {one.said}")
    for name, of in (
        ("named", "delays"),
        ("cause right", "delays"),
        ("falsely certain", "even or hidden"),
        ("cannot be said", "incomplete"),
    ):
        print(f"{name:18} {found[name]} of {found[of]} {of}")
    if errors:
        close = sum(error <= WITHIN for error in errors)
        print(f"saving within {WITHIN:.0%}: {close} of {len(errors)}, median error {np.median(errors):.1%}")
        print(f"its interval true: {sum(inside)} of {len(inside)}")
    if steps:
        print(f"step: median error {np.median(np.abs(steps)):.1%}, 90 % within {np.quantile(np.abs(steps), 0.9):.1%}")


if __name__ == "__main__":
    main()
