"""Answers that are kept: made once for all who ask, again where the profiles are others, not kept where partial."""

from __future__ import annotations

import gzip
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest
from tensorboard.plugins.base_plugin import TBContext
from werkzeug.test import Client

from tb_dlprof_plugin.fleet.stored_facts import JobFacts
from tb_dlprof_plugin.plugin import DlprofPlugin
from tb_dlprof_plugin.web.kept_answers import KeptAnswers
from tb_dlprof_plugin.web.listings import Listing, Listings
from tb_dlprof_plugin.web.open_runs import KeptBetweenRequests
from tb_dlprof_plugin.web.queries import AnyQuery, CompareQuery, RangeQuery, runs_of
from tb_dlprof_plugin.web.respond import MAX_RESPONSE_BYTES
from tb_dlprof_plugin.web.run_source import DataProviderSource, is_local


class _Page(msgspec.Struct, frozen=True):
    rows: list[str]
    total_rows: int = 0


class _Table(msgspec.Struct, frozen=True):
    done: int
    total: int


def _of(answer: Any) -> Any:
    return msgspec.json.decode(gzip.decompress(answer.packed))


class TestKeptAnswers:
    def test_all_who_ask_at_once_get_one_answer(self) -> None:
        answers, made, begun = KeptAnswers(), [], threading.Event()

        def make() -> _Page:
            begun.wait(timeout=10)
            made.append(1)
            return _Page(["a"])

        with ThreadPoolExecutor(8) as pool:
            found = [pool.submit(answers.get, "question", "content", 0, make) for _ in range(8)]
            begun.set()
        assert [_of(one.result())["rows"] for one in found] == [["a"]] * 8
        assert made == [1]

    def test_other_profiles_make_another_answer(self) -> None:
        answers = KeptAnswers()
        first = answers.get("question", "1", 0, lambda: _Page(["a"]))
        second = answers.get("question", "2", 0, lambda: _Page(["b"]))
        assert (_of(first)["rows"], _of(second)["rows"]) == (["a"], ["b"])
        assert first.etag != second.etag
        assert answers.get("question", "1", 0, lambda: _Page(["c"])).etag == first.etag

    def test_a_table_that_is_still_read_is_not_kept(self) -> None:
        answers = KeptAnswers()
        done = [answers.get("q", "c", 0, lambda n=n: _Table(n, 2), of_table=True) for n in (1, 2, 1)]
        assert [_of(one)["done"] for one in done] == [1, 2, 2]

    def test_the_pieces_of_a_long_table_are_of_one_page(self) -> None:
        answers, made = KeptAnswers(), []
        rows = [f"{number:01000d}" for number in range(2_500)]

        def make() -> _Page:
            made.append(1)
            return _Page(rows, len(rows))

        pieces: list[str] = []
        while len(pieces) < len(rows):
            answer = answers.get("q", "c", len(pieces), make)
            assert len(gzip.decompress(answer.packed)) <= MAX_RESPONSE_BYTES
            pieces += _of(answer)["rows"]
        assert pieces == rows
        assert made == [1]


class _MultiplexerDataProvider:
    """Counts how often it is asked for its profiles; its runs change with each."""

    def __init__(self) -> None:
        self.asked = 0

    def read_blob_sequences(self, *_: Any, **__: Any) -> Any:
        self.asked += 1
        reference = type("Reference", (), {"blob_key": f"key {self.asked}"})
        datum = type("Datum", (), {"step": 0, "wall_time": 1.0, "values": [reference]})
        return {run: {"tb_dlprof/v1/s1/rank0": [datum]} for run in ("a", "b")}


def _provider(name: str) -> Any:
    return type(name, (_MultiplexerDataProvider,), {})()


class TestListings:
    def test_requests_of_a_moment_share_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        now = [100.0]
        monkeypatch.setattr("tb_dlprof_plugin.web.listings.time.monotonic", lambda: now[0])
        provider = _provider("MultiplexerDataProvider")
        listings = Listings()
        first = listings.of("e", DataProviderSource(provider, None, "e"))
        assert listings.of("e", DataProviderSource(provider, None, "e")) is first
        assert provider.asked == 1
        now[0] += 5
        second = listings.of("e", DataProviderSource(provider, None, "e"))
        assert provider.asked == 2
        assert first.content() != second.content()
        assert first.content(["a"]) != second.content(["a"])
        assert listings.of("another", DataProviderSource(provider, None, "another")) is not second
        assert listings.of("e", DataProviderSource(provider, None, "e"), ("a", "b")) is second
        # A run that is not there may have come since.
        assert listings.of("e", DataProviderSource(provider, None, "e"), ("new",)) is not second

    def test_one_that_took_long_is_used_longer(self, monkeypatch: pytest.MonkeyPatch) -> None:
        now = [100.0]
        monkeypatch.setattr("tb_dlprof_plugin.web.listings.time.monotonic", lambda: now[0])
        provider = _provider("MultiplexerDataProvider")
        read = type(provider).read_blob_sequences

        def slow(*arguments: Any, **named: Any) -> Any:
            now[0] += 1.5
            return read(provider, *arguments, **named)

        monkeypatch.setattr(provider, "read_blob_sequences", slow, raising=False)
        listings = Listings()
        first = listings.of("e", DataProviderSource(provider, None, "e"))
        now[0] += 14
        assert listings.of("e", DataProviderSource(provider, None, "e")) is first
        now[0] += 2
        assert listings.of("e", DataProviderSource(provider, None, "e")) is not first

    def test_a_provider_that_may_answer_by_who_asks_is_asked_each_time(self) -> None:
        provider = _provider("SomebodysProvider")
        plugin = DlprofPlugin(TBContext(data_provider=provider, logdir=""))
        for _ in range(2):
            Client(plugin.get_plugin_apps()["/overview"]).get("/overview?run=gone")
        assert provider.asked == 2
        assert is_local(_provider("GrpcDataProvider"))

    def test_the_content_of_a_run_is_its_own(self) -> None:
        listing = Listing(DataProviderSource(_provider("MultiplexerDataProvider"), None, "e"))
        assert listing.content(["a"]) == (("key 1", 1.0),)
        assert listing.content(["gone"]) == ()


def test_an_answer_is_made_of_the_runs_of_its_query() -> None:
    a, b = RangeQuery(run="a"), RangeQuery(run="b")
    assert runs_of(a) == ("a",)
    assert runs_of(CompareQuery(a=a, b=b)) == ("a", "b")
    assert runs_of(AnyQuery()) is None


def test_jobs_that_are_kept_make_room_for_each_other() -> None:
    kept = KeptBetweenRequests()
    for key in (1, 2):
        kept.jobs.keep(key, JobFacts([], [], size=300_000_000))
    assert [kept.jobs.known(key) is None for key in (1, 2)] == [True, False]
