"""Hostile inputs about jobs of several ranks: jobs compared and in a series, and files that lie with recordings."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import gzip
import io
import json
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from hostile.event_files import bytes_changed
from hostile.outcome import ROOT, Outcome, Try
from support import all_answers, hostile_traces
from support.messages import pb
from support.simulated_job import ddp, simulate
from support.stored_profiles import mutated, packed

from tb_dlprof_plugin.analysis import analyze_trace
from tb_dlprof_plugin.api.distributed import job_table
from tb_dlprof_plugin.cli.compared_jobs_text import print_compared_jobs
from tb_dlprof_plugin.cli.scaling import print_sentence_and_tables
from tb_dlprof_plugin.fleet.answers.hang import hang_notes, job_of_dumps
from tb_dlprof_plugin.fleet.answers.job_of import job_of
from tb_dlprof_plugin.fleet.facts_of_profile import facts_of_profile
from tb_dlprof_plugin.fleet.flight_recorder import dumps_beside, with_sequences
from tb_dlprof_plugin.fleet.inspected_calls import with_logs
from tb_dlprof_plugin.fleet.job import Job
from tb_dlprof_plugin.fleet.nccl_inspector import logs_beside
from tb_dlprof_plugin.fleet.operations import operation_of
from tb_dlprof_plugin.fleet.rank_facts import UNKNOWN, Operation, RankFacts
from tb_dlprof_plugin.fleet.several_jobs.compare_jobs import compare_jobs
from tb_dlprof_plugin.fleet.several_jobs.scaling import scaling
from tb_dlprof_plugin.pages.other_jobs import other_jobs_page
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.reports.table import to_csv, to_json
from tb_dlprof_plugin.store.codec import ProfileError, decode, encode
from tb_dlprof_plugin.store.reclassify import reclassified

_TABLES = ("parts", "rank_changes", "delays", "collectives")


def recorded_jobs() -> list[tuple[list[Any], list[Any], list[RankFacts]]]:
    """Of each recorded job of two ranks: documents to change (of one rank, the other, ...), messages, sound facts."""
    found = []
    for names in (("nccl_rank0", "nccl_rank1"), ("cpu_gloo_rank0", "cpu_gloo_rank1")):
        documents = [*hostile_traces.documents(400, names), *hostile_traces.first_steps(600, names)]
        recorded = [analyze_trace(ROOT / "tests" / "traces" / f"{name}.pt.trace.json.gz") for name in names]
        facts = [facts_of_profile(ProfileView(profile)) for profile in recorded]
        found.append((documents, [pb.Profile.FromString(gzip.decompress(encode(one))) for one in recorded], facts))
    return found


def hostile_rank(
    documents: list[Any], messages: list[Any], rank: int, path: Path, source: random.Random
) -> ProfileView | None:
    """The view of a rank with a hostile trace or stored profile; None of what is refused."""
    try:
        if source.random() < 0.25:
            profile = decode(packed(mutated(messages[rank], source)))
        else:
            path.write_text(json.dumps(hostile_traces.mutated(documents[rank::2][source.randrange(2)], source)))
            profile = analyze_trace(path)
    except (ProfileError, TraceError):
        return None
    return ProfileView(reclassified(profile))


def several_jobs(folder: Path) -> Try:
    """Compares jobs, one rank of which is hostile, with sound ones, and puts them into a series of sizes."""
    jobs = recorded_jobs()
    four = [dataclasses.replace(one, batch_size=32) for one in simulate(4, ddp(4))]
    alone = [job_of(four[:1]), job_of(four)]

    def one(source: random.Random) -> Outcome:
        number = source.randrange(len(jobs))
        documents, messages, sound = jobs[number]
        rank = source.randrange(len(sound))
        view = hostile_rank(documents, messages, rank, folder / "trace.json", source)
        if view is None:
            return Outcome(False)
        found = Outcome(True)
        facts = dataclasses.replace(facts_of_profile(view), rank=rank)
        batch = source.choice((UNKNOWN, 1, 32, 32, 2**31, 2**62)) if source.random() < 0.7 else facts.batch_size
        others = [dataclasses.replace(other, batch_size=batch) for at, other in enumerate(sound) if at != rank]
        facts = dataclasses.replace(facts, batch_size=source.choice((batch, batch, 0, 1)))
        job, single, whole = job_of([facts, *others]), job_of([facts]), job_of(sound)
        for first, second in ((job, whole), (whole, job), (job, job), (single, job), (job, alone[1])):
            _compare(found, first, second)
        for series in ([single, job], [job, alone[1], single], [alone[1], whole, job]):
            _scale(found, series)
        return found

    return one


def _known(job: Job) -> bool:
    """Whether the steps of a job are known: without, a comparison is refused."""
    return bool(job.account) and job.step is not None


def _compare(found: Outcome, base: Job, candidate: Job) -> None:
    if not (_known(base) and _known(candidate)):
        found.ask("compare jobs", lambda: compare_jobs(base, candidate), own=(ValueError,))
        return
    compared = found.ask("compare jobs", lambda: compare_jobs(base, candidate))
    if compared is None:
        return
    for table in _TABLES:
        found.ask(f"table {table}", lambda table=table: to_csv(job_table(compared, table)))
        found.ask(f"table {table}", lambda table=table: to_json(job_table(compared, table)))
    found.ask("page of other jobs", lambda: other_jobs_page(all_answers.REF, compared, None))
    found.ask("command compare jobs", lambda: _printed(lambda: print_compared_jobs(compared, 20)))


def _scale(found: Outcome, jobs: list[Job]) -> None:
    series = [(f"job {number}", job) for number, job in enumerate(jobs)]
    if not all(map(_known, jobs)) or len({job.world_size for job in jobs}) < 2:
        found.ask("scaling", lambda: scaling(series), own=(ValueError,))
        return
    scaled = found.ask("scaling", lambda: scaling(series))
    if scaled is None:
        return
    found.ask("table of scaling", lambda: to_csv(job_table(scaled)))
    found.ask("page of scaling", lambda: other_jobs_page(all_answers.REF, compare_jobs(*jobs[:2]), scaled))
    found.ask("command scaling", lambda: _printed(lambda: print_sentence_and_tables(scaled)))


def _printed(command: Callable[[], None]) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as said:
        command()
    return said.getvalue()


def job_files(folder: Path) -> Try:
    """Reads dumps of the flight recorder and files of NCCL Inspector of the ranks of a job."""
    (_, _, nccl), (_, _, gloo) = recorded_jobs()
    kinds = (_dumps, _logs)

    def one(source: random.Random) -> Outcome:
        for path in folder.iterdir():
            path.unlink()
        sound = source.choice((nccl, gloo))
        source.choice(kinds)(folder, sound, source)
        found = Outcome(True)
        dumps = found.ask("dumps", lambda: dumps_beside(folder)) or []
        logs = found.ask("logs", lambda: [_plain(log) for log in logs_beside(folder)])
        found.let_in = bool(dumps or logs)
        if dumps:
            found.ask("a job of dumps", lambda: job_of_dumps(dumps))
            found.ask("who is behind", lambda: hang_notes(dumps))
        if not found.let_in or found.faults:
            return found
        facts = [_stripped(one, source) for one in sound]
        by_rank = {dump.rank: dump for dump in dumps}
        found.ask("a job with numbers", lambda: _job(facts, by_rank, folder))
        return found

    return one


def _plain(log: Any) -> list[tuple[str, int, int]]:
    return [(one.name, one.rank, len(one.sequence)) for one in log.communicators]


def _job(facts: list[RankFacts], dumps: dict[int, Any], folder: Path) -> Job:
    facts = [with_sequences(one, dumps[one.rank]) if one.rank in dumps else one for one in facts]
    return job_of(with_logs(facts, logs_beside(folder))[0])


def _stripped(facts: RankFacts, source: random.Random) -> RankFacts:
    """Without columns that a file can add."""
    calls = facts.collectives
    unknown = np.full(len(calls), UNKNOWN, dtype=np.int64)
    left_out = [name for name in ("sequence", "bytes", "group") if source.random() < 0.6]
    return dataclasses.replace(facts, collectives=dataclasses.replace(calls, **dict.fromkeys(left_out, unknown)))


def _dumps(folder: Path, sound: list[RankFacts], source: random.Random) -> None:
    for facts in sound:
        content = _with_other_values(_dump_of(facts), source) if source.random() < 0.7 else _dump_of(facts)
        try:
            data = pickle.dumps(content, 2) if source.random() < 0.6 else json.dumps(content).encode()
        except (ValueError, OverflowError):
            continue
        if source.random() < 0.4:
            data = bytes_changed(data, source, source.choice((1, 1, 3, 20)))
        (folder / f"_dump_{facts.rank}").write_bytes(data)


def _dump_of(facts: RankFacts) -> dict[str, Any]:
    """What the flight recorder of a rank holds, as far as its recording says it."""
    calls = facts.collectives
    name = facts.groups[0].name if facts.groups else "0"
    members = list(facts.groups[0].members) if facts.groups else [0, 1]
    entries = [
        {
            "process_group": (name, "default_pg"), "collective_seq_id": row, "is_p2p": False,
            "profiling_name": f"nccl:{Operation(int(calls.operation[row])).name.lower()}",
            "input_sizes": [[8, row]], "input_dtypes": ["Float"], "state": "completed" if row % 7 else "scheduled",
            "time_created_ns": int(facts.base_ns + calls.launched_ns[row]),
        }
        for row in range(min(len(calls), 30))
    ]  # fmt: skip
    config = {"0": {"name": name, "desc": "default_pg", "ranks": str(members)}}
    return {"version": "2.9", "pg_config": config, "entries": entries}


_FUNCTIONS = ("AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce")


def _logs(folder: Path, sound: list[RankFacts], source: random.Random) -> None:
    for facts in sound:
        lines = _lines_of(facts)
        if source.random() < 0.7:
            lines = _with_other_values(lines, source)
        data = b"\n".join(map(_line, lines if isinstance(lines, list) else [lines]))
        if source.random() < 0.4:
            data = bytes_changed(data, source, source.choice((1, 1, 3, 20)))
        is_packed = source.random() < 0.3
        if is_packed:
            data = gzip.compress(data, 1)
            if source.random() < 0.5:
                data = bytes_changed(data, source, 1)
        (folder / f"node-pid{facts.rank + 1}.log{'.gz' if is_packed else ''}").write_bytes(data)


def _line(value: Any) -> bytes:
    try:
        return json.dumps(value).encode()
    except ValueError:
        return b"{"


def _lines_of(facts: RankFacts) -> list[dict[str, Any]]:
    calls = facts.collectives
    ended = facts.base_ns + calls.start_ns + calls.duration_ns
    return [
        {
            "header": {"id": "0xa1", "rank": facts.rank, "n_ranks": 2, "nnodes": 1},
            "metadata": {"dump_timestamp_us": int(ended[row]) // 1000},
            "coll_perf": {
                "coll": next((one for one in _FUNCTIONS if operation_of(one) == calls.operation[row]), "AllReduce"),
                "coll_sn": row,
                "coll_msg_size_bytes": max(int(calls.bytes[row]), 0),
                "coll_exec_time_us": int(calls.duration_ns[row]) // 1000,
            },
        }
        for row in range(min(len(calls), 30))
    ]  # fmt: skip


_ODD = ("AllGather", "nccl:send", "9" * 5000, [[1] * 500] * 50)


def _with_other_values(content: Any, source: random.Random) -> Any:
    """A copy in which a few values anywhere are others."""
    content = pickle.loads(pickle.dumps(content))
    for _ in range(source.choice((1, 1, 2, 5))):
        at, key = content, None
        while isinstance(at, (dict, list)) and at:
            inside = at
            key = source.choice(list(at)) if isinstance(at, dict) else source.randrange(len(at))
            at = inside[key]
            if source.random() < 0.1:
                break
        if key is not None:
            # A copy: what is changed next may be inside of it.
            inside[key] = copy.deepcopy(source.choice((*hostile_traces.VALUES, *_ODD)))
    return content
