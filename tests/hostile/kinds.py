"""The kinds of hostile input: each makes its input number n, always the same, tries it, and says what was wrong."""

from __future__ import annotations

import dataclasses
import gzip
import json
import random
import time
from collections.abc import Callable
from pathlib import Path

from hostile.event_files import mutated_file, read_everything
from hostile.http_requests import Server
from hostile.job_kinds import hostile_rank, job_files, recorded_jobs, several_jobs
from hostile.outcome import LONGEST_S, Outcome, Try, small_profiles, timed
from hostile.page_kinds import exports, plans, trials
from hostile.recording_kinds import databases, xplanes
from hostile.stored_blobs import blobs
from support import all_answers, broken_traces, hostile_traces
from support.hostile_names import STEERS
from support.messages import pb
from support.stored_profiles import mutated, packed

from tb_dlprof_plugin.fleet.answers.job_of import job_of
from tb_dlprof_plugin.fleet.facts_codec import decode_facts, encode_facts
from tb_dlprof_plugin.fleet.facts_of_profile import facts_of_profile
from tb_dlprof_plugin.fleet.rank_facts import RankFacts
from tb_dlprof_plugin.fleet.run_writer import write_run
from tb_dlprof_plugin.model.profile import Profile
from tb_dlprof_plugin.pages.distributed import distributed_page
from tb_dlprof_plugin.pages.rank_lines import RankLinesPage, rank_lines_page
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.codec import ProfileError, decode, encode
from tb_dlprof_plugin.store.reclassify import reclassified


def traces(folder: Path) -> Try:
    """Reads trace files whose text is broken, or whose fields, events and times are wrong."""
    texts = [*broken_traces.sound_traces(20).values(), *broken_traces.sound_traces(80).values()]
    whole = [*hostile_traces.documents(20), *hostile_traces.first_steps(150)]
    path = folder / "trace.json"

    def one(source: random.Random) -> Outcome:
        if source.random() < 0.5:
            data = broken_traces.apply(source.choice(texts), broken_traces.draw(source))
        else:
            data = json.dumps(hostile_traces.mutated(source.choice(whole), source)).encode()
        path.write_bytes(gzip.compress(data, 1) if source.random() < 0.05 else data)
        return timed(lambda: isinstance(broken_traces.check(path), Profile), LONGEST_S + len(data) / 2e5)

    return one


def answers(folder: Path) -> Try:
    """Asks pages, rules and reports, of a tenth commands too, about traces and stored profiles that are let in."""
    documents = [*hostile_traces.documents(20), *hostile_traces.documents(80), *hostile_traces.first_steps(150)]
    messages = [pb.Profile.FromString(gzip.decompress(encode(profile))) for profile in small_profiles()]
    path = folder / "trace.json"

    def one(source: random.Random) -> Outcome:
        with_commands = source.random() < 0.1
        if source.random() < 0.25:
            try:
                profile = decode(packed(mutated(source.choice(messages), source)))
            except ProfileError:
                return Outcome(False)
            path.write_text("[]")
        else:
            path.write_text(json.dumps(hostile_traces.mutated(source.choice(documents), source)))
            try:
                checked = broken_traces.check(path)
            except Exception as error:
                return Outcome(True, 0, [f"reading: {hostile_traces.where(error)}"])
            if isinstance(checked, str):
                return Outcome(False)
            profile = checked
        asked: list[str] = []
        view = ProfileView(reclassified(decode(encode(profile))))
        faults = list(hostile_traces.faults_of(view, path, with_commands, asked.append))
        return Outcome(True, len(asked), faults)

    return one


def ranks(folder: Path) -> Try:
    """Asks about a job of two ranks, one of which has a hostile trace or a stored profile with other numbers."""
    jobs = recorded_jobs()

    def one(source: random.Random) -> Outcome:
        documents, messages, sound = source.choice(jobs)
        rank = source.randrange(len(sound))
        view = hostile_rank(documents, messages, rank, folder / "trace.json", source)
        return Outcome(False) if view is None else _asked_of_job(view, sound, rank, source)

    return one


def _asked_of_job(view: ProfileView, sound: list[RankFacts], rank: int, source: random.Random) -> Outcome:
    """What is wrong with what is said of a job of sound ranks and this one, as read, as stored, and alone."""
    found = Outcome(True)
    facts = found.ask("facts of a rank", lambda: facts_of_profile(view))
    if facts is None:
        return found
    facts = dataclasses.replace(facts, rank=rank)  # of two ranks that say the same, the server has one
    # Of stored facts that are refused the profile is opened instead (`fleet.stored_facts`).
    again = found.ask("stored facts", lambda: decode_facts(encode_facts(facts)), own=(ProfileError,))
    others = [one for number, one in enumerate(sound) if number != rank]
    for name, job in (("job", [facts, *others]), ("job of stored facts", [again or facts, *others]), ("rank", [facts])):
        found.ask(name, lambda job=job: distributed_page(job_of(job), all_answers.REF))
    found.ask("lines of ranks", lambda: _lines([facts, *others], source.choice((None, 0, 1, 10**6))))
    return found


def _lines(facts: list[RankFacts], step: int | None) -> RankLinesPage | None:
    try:
        return rank_lines_page(facts, [one.rank for one in facts], step)
    except KeyError:  # of which the route makes a sentence
        return None


def event_file(folder: Path) -> Try:
    """Reads event files in which bytes, records, messages or numbers are wrong."""
    sound = []
    for number, profile in enumerate(small_profiles()):
        sound.append(write_run(folder / "sound" / str(number), profile).read_bytes())
    path = folder / "events.out.tfevents.1.tb_dlprof"

    def one(source: random.Random) -> Outcome:
        path.write_bytes(mutated_file(source.choice(sound), source))
        return timed(lambda: read_everything(path), LONGEST_S)

    return one


def requests(folder: Path) -> Try:
    """Sends requests that no page of ours makes to a server with recorded runs."""
    for number, profile in enumerate(small_profiles()):
        write_run(folder / "logdir" / f"run{number}", profile)
    server = Server(folder / "logdir")

    def one(source: random.Random) -> Outcome:
        began = time.process_time()
        fault = server.fault(source)
        took = time.process_time() - began
        faults = [fault] if fault else []
        return Outcome(True, 1, [*faults, *([f"an answer takes {took:.1f} s"] if took > LONGEST_S else [])])

    return one


def names(folder: Path) -> Try:
    """Prints recordings whose names hold any characters: none that steers a terminal comes out."""
    profiles = small_profiles()
    path = folder / "trace.json"
    path.write_text("[]")

    def one(source: random.Random) -> Outcome:
        profile = source.choice(profiles)
        strings = [text + _any_text(source) if text and source.random() < 0.5 else text for text in profile.strings]
        view = ProfileView(reclassified(decode(encode(dataclasses.replace(profile, strings=strings)))))
        asked = list(all_answers.commands(view, path))
        found = Outcome(True)
        for name, ask in source.sample(asked, 3):
            found.answers += 1
            try:
                said = ask()
            except Exception as error:
                found.faults.append(f"{name}: {hostile_traces.where(error)}")
                continue
            if steering := STEERS.search(said):
                found.faults.append(f"{name} prints {steering[0]!r}")
        return found

    return one


KINDS: dict[str, Callable[[Path], Try]] = {
    "traces": traces,
    "answers": answers,
    "ranks": ranks,
    "event-files": event_file,
    "blobs": blobs,
    "requests": requests,
    "names": names,
    "several-jobs": several_jobs,
    "job-files": job_files,
    "databases": databases,
    "xplanes": xplanes,
    "trials": trials,
    "plans": plans,
    "exports": exports,
}
"""By name, what prepares a folder and returns what tries one input after the other."""


def source_of(kind: str, number: int) -> random.Random:
    """The source of chance of an input: the same for the same number."""
    return random.Random(f"{kind} {number}")


def _any_text(source: random.Random) -> str:
    """A few characters of any kind, those that steer something among them."""
    planes = (range(0x20), range(0x7F, 0xA0), range(0x2000, 0x2070), range(0x20, 0x7F), range(0xE0000, 0xE0080))
    found = [source.choice(source.choice((*planes, range(0xD800), range(0xE000, 0x110000)))) for _ in range(6)]
    return "".join(map(chr, found)) + source.choice(("", "\x1b[2J", "\r\nforged", "\u202e", "=1+1", "%s"))
