"""Hostile inputs of single pages: stored trials, plans of any configuration, and runs exported as one file."""

from __future__ import annotations

import copy
import dataclasses
import gzip
import json
import random
import re
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from hostile.outcome import Outcome, Try, small_profiles
from support import all_answers, hostile_traces
from support.messages import pb
from support.stored_profiles import mutated, packed, trial_result

from tb_dlprof_plugin.model.plan_request import PARTS, PlanError, PlanQuestion
from tb_dlprof_plugin.model.trial_result import decode_trial, encode_trial
from tb_dlprof_plugin.pages.plan import plan_page, refused_page
from tb_dlprof_plugin.pages.tried import tried_page
from tb_dlprof_plugin.planning.memory.rewrite_optimizer import OPTIMIZERS
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.codec import ProfileError, decode, encode
from tb_dlprof_plugin.store.header import header_of
from tb_dlprof_plugin.store.reclassify import reclassified
from tb_dlprof_plugin.web.export import ExportedRun, answer_all, html_file


def trials(folder: Path) -> Try:
    """Reads results of `tb-dlprof try` in which values are others, or bytes wrong, and shows what is let in."""
    profile = small_profiles()[0]
    sound = json.loads(encode_trial(trial_result()))
    path = folder / "trace.json"
    path.write_text("[]")

    def one(source: random.Random) -> Outcome:
        content = json.loads(json.dumps(sound))
        for _ in range(source.choice((1, 1, 2, 5))):
            _change_value(content, source)
        data = json.dumps(content).encode()
        if source.random() < 0.2:
            at = source.randrange(len(data))
            data = data[:at] + source.choice((b"", b"\x00", b'"', b"1e999", b"\xff", b"[")) + data[at + 1 :]
        found = Outcome(False)
        trial = found.ask("a trial", lambda: decode_trial(data))
        if trial is None:
            return found
        found.let_in = True
        stored = decode(encode(dataclasses.replace(profile, trial=trial)))
        view = ProfileView(reclassified(stored))
        found.ask("stored trial", lambda: encode_trial(stored.trial) if stored.trial else b"")
        found.ask("tried page", lambda: tried_page(view, all_answers.REF, view.selection()))
        for name, ask in all_answers.commands(view, path):
            if name.startswith("command tried"):
                found.ask(name, ask)
        return found

    return one


_VALUES = (*hostile_traces.VALUES, "=1+1", "a\nb", "\ud800", 1e308, -1e308, 5e-324, 10**400, ["x"] * 50)


_KINDS: dict[type, tuple[type, ...]] = {
    str: (str, type(None)), float: (float, int, type(None)), int: (int, type(None)), type(None): (int, float),
    bool: (bool,),
}  # fmt: skip


def _change_value(content: Any, source: random.Random) -> None:
    at = content
    while True:
        key = source.choice(list(at)) if isinstance(at, dict) else source.randrange(len(at))
        if not isinstance(at[key], (dict, list)) or not at[key] or source.random() < 0.1:
            break
        at = at[key]
    alike = [one for one in _VALUES if isinstance(one, _KINDS[type(at[key])])] if type(at[key]) in _KINDS else []
    # A copy: what is changed next may be inside of it.
    at[key] = copy.deepcopy(source.choice(alike if alike and source.random() < 0.85 else _VALUES))


def plans(folder: Path) -> Try:
    """Asks for plans of any configuration, of recorded runs and of stored profiles with other numbers."""
    messages = [pb.Profile.FromString(gzip.decompress(encode(profile))) for profile in small_profiles()]

    def one(source: random.Random) -> Outcome:
        message = source.choice(messages)
        try:
            profile = decode(packed(mutated(message, source) if source.random() < 0.7 else message))
        except ProfileError:
            return Outcome(False)
        view = ProfileView(reclassified(profile))
        found = Outcome(True)
        request = _request(view, source)
        page = found.ask(
            "plan",
            lambda: plan_page(view, all_answers.REF, request),
            own=(PlanError,),
        )
        if page is None:
            found.ask("refused plan", lambda: refused_page(view, all_answers.REF, "x"))
        return found

    return one


_COUNTS = (None, None, 0, 1, 2, 3, 7, 64, 4096, 2**31, 2**62, -1)


def _request(view: ProfileView, source: random.Random) -> PlanQuestion:
    """Any, and half of its values those of a sensible one."""
    modules = [text for text in view.profile.strings if re.fullmatch(r"[a-z_0-9.]{1,30}", text)] or ["x"]
    some = tuple(source.sample(modules, min(len(modules), source.choice((0, 0, 1, 3)))))
    return PlanQuestion(
        also=PARTS if source.random() < 0.3 else (),
        batch_size=source.choice(_COUNTS),
        sequence_length=source.choice((None, None, None, *_COUNTS)),
        image_size=source.choice((None, None, None, *_COUNTS)),
        precision=source.choice((None, None, "fp16", "bf16", "fp8")),
        optimizer=source.choice((None, None, "x", *OPTIMIZERS)),
        checkpoint=some,
        layers={name: source.choice((0, 1, 2, -3, 10**4)) for name in some[:1]} if source.random() < 0.3 else {},
        set_to_none=source.choice((None, True, False)),
        accumulate=source.choice((1, 1, 2, 0, 2**31)),
        offload=source.choice(((), (), ("optimizer",), some)),
        relu=source.choice((None, None, "inplace", "behind_pool")),
        shard=source.choice((None, None, "ddp", "zero1", "zero2", "fsdp", "fsdp2", "x")),  # type: ignore[arg-type]
        gpus=source.choice((1, 2, 4, 8, 0, 10**6)),
        expandable_segments=source.choice((None, True, False)),
        gpu=source.choice((None, None, "A100 80GB", "H100", "x", "")),
        memory_bytes=source.choice((None, None, 2**30, 2**36, 0, -1, 2**62)),
    )


def exports(folder: Path) -> Try:
    """Exports a run whose stored profile has other numbers, and names of any characters, as one HTML file."""
    profiles = small_profiles()
    messages = [pb.Profile.FromString(gzip.decompress(encode(profile))) for profile in profiles]

    def one(source: random.Random) -> Outcome:
        message = mutated(source.choice(messages), source)
        for number in source.sample(range(1, len(message.strings)), min(3, len(message.strings) - 1)):
            message.strings[number] += source.choice(_IN_HTML)
        blob = packed(message)
        try:
            profile = decode(blob)
        except ProfileError:
            return Outcome(False)
        found = Outcome(True)
        made_by = profile.source
        run = ExportedRun(
            source.choice(("run", *_IN_HTML)), made_by.session, made_by.rank, made_by.cycle,
            header_of(profile).encode(), {made_by.rank: blob},
        )  # fmt: skip
        found.faults += _exported(run, found)
        return found

    return one


_IN_HTML = ("</script><script>alert(1)</script>", "<!--<script", "\u2028", "]]>", "&lt;", '"', "\\u003c", "=1+1", "%s")
_LONGEST_EXPORT_S = 10.0
"""All answers about a run, and the page itself."""


def _exported(run: ExportedRun, found: Outcome) -> list[str]:
    made = found.ask("export", lambda: _text(run, "</title></script><script>alert(1)"), longest_s=_LONGEST_EXPORT_S)
    return ["export: a name is an element"] if made is not None and "<script>alert(1)" in made else []


def _text(run: ExportedRun, title: str) -> str:
    made = html_file(answer_all([run]), title, datetime(2026, 1, 1, tzinfo=timezone.utc))
    assert isinstance(made.text, str)
    return made.text
