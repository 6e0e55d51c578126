"""Everything that is asked about a generated recording, by name, from reading its traces to the answers of a job."""

from __future__ import annotations

import functools
import itertools
import os
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from growth.generator import DIMENSIONS
from support import all_answers
from support.all_answers import REF, Question, ask

from tb_dlprof_plugin.analysis import analyze_trace
from tb_dlprof_plugin.fleet.answers.job_of import job_of
from tb_dlprof_plugin.fleet.facts_of_profile import facts_of_profile
from tb_dlprof_plugin.fleet.rank_facts import RankFacts
from tb_dlprof_plugin.fleet.run_writer import facts_beside
from tb_dlprof_plugin.fleet.several_jobs.compare_jobs import compare_jobs
from tb_dlprof_plugin.model.profile import Profile
from tb_dlprof_plugin.pages.advice import advice_page
from tb_dlprof_plugin.pages.distributed import distributed_page
from tb_dlprof_plugin.pages.rank_lines import rank_lines_page
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.reports.page import report_page
from tb_dlprof_plugin.reports.registry import REPORTS
from tb_dlprof_plugin.store.codec import decode, encode
from tb_dlprof_plugin.store.event_file import event_file_content

_COMMANDS = ("command plan", "command predict")
"""Those that do more than print a page."""


@dataclass(frozen=True, slots=True)
class Recording:
    """Generated traces, one per rank, and the profiles and the facts of their ranks as they are stored."""

    paths: list[Path]
    profiles: list[Profile]
    facts: list[RankFacts]


def recording(dimension: str, n: int, folder: Path) -> Recording:
    """With n of a dimension."""
    (at := folder / f"{dimension.replace(' ', '_')}-{n}").mkdir(parents=True)
    paths = DIMENSIONS[dimension](n, at)
    profiles = [decode(encode(analyze_trace(path))) for path in paths]
    # Only a job's answers need them ready; of one rank they are part of what is measured.
    facts = [facts_of_profile(ProfileView(profile)) for profile in profiles] if len(profiles) > 1 else []
    return Recording(paths, profiles, facts)


def questions(one: Recording) -> Iterator[Question]:
    """What is asked: each computes all it needs, unless an answer before it in this process did."""
    yield "import", functools.partial(_import, one.paths)
    yield from _of_job(one) if one.facts else _of_rank(one)


def _import(paths: Sequence[Path]) -> str:
    for path in paths:
        profile = analyze_trace(path)
        blob = encode(profile)
        event_file_content(profile, 1, facts_beside(profile, blob), blob)
    return ""


def _of_rank(one: Recording) -> Iterator[Question]:
    (profile,), (path,) = one.profiles, one.paths
    view = ProfileView(profile)
    yield from all_answers.pages(view)
    for name in REPORTS:
        yield f"report {name}", functools.partial(report_page, view, REF, view.selection(), name)
    # What is offered to open is known from pages of another view: this one has computed nothing yet.
    other = ProfileView(profile)
    answered = {question[0]: ask(question) for question in all_answers.pages(other) if question[0] in _OFFERING}
    yield from _first_of_each(all_answers.parts(view, answered))
    yield from _first_of_each(all_answers.together(view, ProfileView(profile)))
    yield from (question for question in all_answers.commands(view, path) if question[0].startswith(_COMMANDS))
    yield "distributed", lambda: distributed_page(job_of([facts_of_profile(view)]), REF)


_OFFERING = ("ops", "op_types", "kernels", "modules", "memory", "timeline", "key_nodes")


def _first_of_each(asked: Iterator[Question]) -> Iterator[Question]:
    """Several are asked by one name."""
    return (next(group) for _, group in itertools.groupby(asked, key=lambda question: question[0]))


def _of_job(one: Recording) -> Iterator[Question]:
    facts, job = one.facts, functools.partial(job_of, one.facts)
    views = [ProfileView(profile) for profile in one.profiles]
    view = ProfileView(one.profiles[0], lambda: views[1:])
    yield "distributed", lambda: distributed_page(job(), REF)
    yield "compare_jobs", lambda: compare_jobs(job(), job(), ("base", "candidate"))
    yield "rank_lines", lambda: rank_lines_page(facts, [one.rank for one in facts[:8]])
    yield "advice", lambda: advice_page(view, REF, view.selection())


def in_child(work: Callable[[], object], measure: Callable[[Callable[[], object]], str]) -> str:
    """What ``measure`` says of a piece of work, in a child process: it leaves nothing that the next would find.

    Raises:
        ChildProcessError: the work failed.
    """
    read, write = os.pipe()
    if not (child := os.fork()):
        os.close(read)
        try:
            os.write(write, measure(work).encode())
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as stream:
        said = stream.read()
    os.waitpid(child, 0)
    if not said:
        raise ChildProcessError("it failed in its child process")
    return said
