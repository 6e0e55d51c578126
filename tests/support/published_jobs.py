"""Facts of ranks of two published jobs: ByteDance's what-if sample and Primus' pipelines (fleet/recorded/NOTE)."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from support.simulated_job import MS, Launch, Recorded, facts_of

from tb_dlprof_plugin.fleet.rank_facts import UNKNOWN, Operation, RankFacts

RECORDED = Path(__file__).parents[1] / "fleet" / "recorded"
_S = 1e9
_STAGES = 4


def bytedance() -> list[RankFacts]:
    """Two replicas of a pipeline of four stages; operations as published, sends and receives on their own streams."""
    rows = json.loads(gzip.decompress((RECORDED / "bytedance_st.json.gz").read_bytes()))
    ranks = 2 * _STAGES
    state = [Recorded() for _ in range(ranks)]
    ends: dict[Any, float] = {}
    place = {}
    at = [0.0] * ranks
    by_step: dict[int, list[list[Any]]] = {}
    for row in rows:
        by_step.setdefault(row[0], []).append(row)
    world = tuple(range(ranks))
    number = {(dp, stage): rank for dp, stage, rank in sorted({(row[1], row[2], row[3]) for row in rows})}
    for index, step in enumerate(sorted(by_step)):
        last = {"at": 0.0}
        for rank in range(ranks):
            state[rank].begins.append(at[rank])
        for _, dp, stage, rank, kind, start, length, sequence in by_step[step]:
            place[rank] = (dp, stage)
            begin = at[rank] + start * _S
            end = begin + length * _S
            one = state[rank]
            last["at"] = max(last["at"], start + length)
            if kind in ("forward-compute", "backward-compute", "optimizer"):
                one.work.append((begin, end))
                continue
            members, operation, peer = world, Operation.ALL_REDUCE, UNKNOWN
            if kind.endswith(("send", "recv")):
                sends = kind.endswith("send")
                forward = kind.startswith("forward")
                other = stage + (1 if forward == sends else -1)
                peer = number[dp, other]
                members = tuple(sorted((rank, peer)))
                operation = Operation.SEND if sends else Operation.RECEIVE
            elif kind == "embedding-grads-all-reduce":
                members = (number[dp, 0], number[dp, _STAGES - 1])
            elif kind == "optimizer-clip-main-grad":
                members = world
            elif kind in ("params-all-gather", "grads-reduce-scatter"):
                members = (number[0, stage], number[1, stage])
                operation = Operation.ALL_GATHER if kind.startswith("params") else Operation.REDUCE_SCATTER
            else:
                continue
            action = Launch("", members, operation, 1_000_000, 0, "", _STREAMS[kind], peer)
            key = (rank, kind, step, sequence)
            one.calls.append({"key": key, "action": action, "start": begin, "step": index})
            ends[key] = end
        for rank in range(ranks):
            at[rank] += last["at"] * _S
            state[rank].now = at[rank]
    return [
        facts_of(rank, ranks, state[rank], ends, 0, (("dp", place[rank][0]), ("pp", place[rank][1])), False)
        for rank in range(ranks)
    ]


_STREAMS = {
    name: number
    for number, name in enumerate(
        (
            "forward-send",
            "forward-recv",
            "backward-send",
            "backward-recv",
            "params-all-gather",
            "grads-reduce-scatter",
            "embedding-grads-all-reduce",
            "optimizer-clip-main-grad",
        )
    )
}


def primus(name: str, iterations: tuple[int, ...] = tuple(range(5, 13))) -> list[RankFacts]:
    """Eight stages of a pipeline; what lies between two passes of a stage is a receive from a neighbour."""
    config, ranks = json.loads(gzip.decompress((RECORDED / f"primus_{name}.json.gz").read_bytes()))
    count = config["pp_size"]
    result = []
    for rank, steps in enumerate(ranks):
        one = Recorded()
        ends: dict[Any, float] = {}
        now = 0.0
        for index, step in enumerate(steps[number - 5] for number in iterations):
            one.begins.append(now)
            passes = sorted(
                [
                    *zip(step["fwd_start"], step["fwd_end"], strict=True),
                    *zip(step["bwd_start"], step["bwd_end"], strict=True),
                ]
            )
            before = 0.0
            for begin, end in passes:
                one.work.append((now + begin * MS, now + end * MS))
                if begin > before:
                    peer = rank - 1 if rank else 1
                    action = Launch("", tuple(sorted((rank, peer))), Operation.RECEIVE, 1_000_000, 0, "pp", 1, peer)
                    key = (index, begin)
                    one.calls.append({"key": key, "action": action, "start": now + before * MS, "step": index})
                    ends[key] = now + begin * MS
                before = max(before, end)
            now += step["total"] * MS
        one.now = now
        result.append(facts_of(rank, count, one, ends, 0, (("pp", rank),), False))
    return result
