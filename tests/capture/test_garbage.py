"""The hook notes the long runs of Python's garbage collector in the recorded steps."""

from __future__ import annotations

import gc
import time

from tb_dlprof_plugin.capture.facts import garbage
from tb_dlprof_plugin.capture.facts.garbage import GarbageWatch
from tb_dlprof_plugin.model.run_facts import RunFacts


def _seen(watch: GarbageWatch) -> RunFacts:
    facts = RunFacts()
    watch.fill(facts)
    return facts


def test_a_collection_is_noted_with_its_time_while_it_is_watched(monkeypatch) -> None:
    monkeypatch.setattr(garbage, "SHORTEST_NS", 0)
    watch = GarbageWatch()
    assert _seen(watch).garbage_recorded is None
    gc.collect()
    before = time.time_ns()
    watch.install()
    watch.install()
    try:
        gc.collect()
    finally:
        watch.remove()
    after = time.time_ns()
    gc.collect()
    facts = _seen(watch)
    full = [one for one in facts.garbage_collections if one.generation == 2]
    # One although it was installed twice, and none after its end.
    assert (facts.garbage_recorded, len(full)) == (True, 1)
    assert before <= full[0].start_unix_ns <= full[0].start_unix_ns + full[0].duration_ns <= after
    watch.new_cycle()
    assert _seen(watch).garbage_collections == []


def test_short_collections_are_passed_over(monkeypatch) -> None:
    monkeypatch.setattr(garbage, "SHORTEST_NS", 1 << 60)
    watch = GarbageWatch()
    watch.install()
    try:
        gc.collect()
    finally:
        watch.remove()
    assert (_seen(watch).garbage_recorded, _seen(watch).garbage_collections) == (True, [])
