"""Answer times of TensorBoard with many clients on our pages while runs are added, and of its own scalars.

A real TensorBoard reads a logdir of many runs, each a recorded one of demo/recorded under another name and with a curve
of scalars. Clients ask over HTTP, each for the next thing as soon as the last is there, as browsers ask: with gzip, one
connection a request. Measured are, in this order:

- *complete*: the time from the first request for the table of runs until it holds all of them, on a server that has
  loaded them;
- *first*: the time for every page of 24 runs, none of which was asked before;
- *pages*: all clients on our pages: tables of all runs, and pages of single ones, mostly of these 24, while a run is
  added every second;
- *scalars*: all clients on TensorBoard's scalars, with our data loaded; and again in a TensorBoard without the plugin;
- *one on scalars*: a client on scalars while all the others are on our pages, and while they are on scalars without the
  plugin.

    python lab/speed/server_load.py --runs 1600 --clients 64 --seconds 30

With `--soak 60` all clients ask for our pages for so many minutes instead, of a logdir that stays as it is; each five
minutes a line says the memory of the server, its threads and its open files.

The ratios of scalars come last: with the plugin to without. Clients and server share the machine.
"""

from __future__ import annotations

import argparse
import gzip
import http.client
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter
from tensorboard_startup import ENTRY_POINT, LAUNCHER

from tb_dlprof_plugin.fleet.run_writer import write_run
from tb_dlprof_plugin.store.logdir import read_profiles

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("overview", "ops", "op_types", "kernels", "modules", "launches", "tensor_cores", "advice", "trust")
TABLES = ("many_runs", "by_model", "sweep", "runs")
POPULAR = range(24)
"""Runs that many look at, each another recording."""
POINTS = 200
"""Of the curve of each run."""
TAGS = "/data/plugin/scalars/tags"
TIMEOUT_S = 300
SOAK_LINE_MINUTES = 5

Ask = Callable[[random.Random], tuple[str, str]]
"""Makes the next request of a client: a name for the table, and the address."""


@dataclass
class Logdir:
    """Many runs that share a few files: links, so that 1,600 take no more room than 24."""

    folder: Path
    sources: list[Path]
    names: list[str] = field(default_factory=list)

    def add(self) -> None:
        number = len(self.names)
        name = f"group{number % 40:02d}/run{number:05d}"
        run = self.folder / name
        run.mkdir(parents=True)
        for file in self.sources[number % len(self.sources)].iterdir():
            os.link(file, run / file.name)
        self.names.append(name)


def make_logdir(folder: Path, runs: int, recorded: list[Path]) -> Logdir:
    """A logdir with links to profiles, written by this version, and to scalars."""
    sources = []
    for number, run in enumerate(recorded):
        source = folder / "sources" / str(number)
        _write(source, run)
        writer = EventFileWriter(str(source))
        for step in range(POINTS):
            value = Summary.Value(tag="loss", simple_value=1 / (step + 1))
            writer.add_event(Event(step=step, wall_time=1e9 + step, summary=Summary(value=[value])))
        writer.close()
        sources.append(source)
    logdir = Logdir(folder / "logdir", sources)
    for _ in range(runs):
        logdir.add()
    return logdir


def _write(folder: Path, run: Path) -> None:
    for stored in read_profiles(run):
        write_run(folder, stored.profile)


@dataclass
class Server:
    """A TensorBoard on this machine."""

    port: int
    process: subprocess.Popen[bytes]

    def get(self, path: str) -> bytes:
        """The body as it was sent. Raises where the answer is no 200."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_S)
        try:
            connection.request("GET", path, headers={"Accept-Encoding": "gzip"})
            answer = connection.getresponse()
            body = answer.read()
        finally:
            connection.close()
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status} {body[:300]!r}")
        return body

    def json(self, path: str) -> Any:
        """The decoded answer."""
        body = self.get(path)
        return json.loads(gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body)

    @property
    def resident_mb(self) -> float:
        """Memory of the server's Python process."""
        status = Path(f"/proc/{self.process.pid}/status")
        if not status.exists():
            return float("nan")
        return int(next(line for line in status.read_text().splitlines() if line.startswith("VmRSS")).split()[1]) / 1e3

    @property
    def held(self) -> str:
        """How many threads and open files the server's Python process has."""
        own = Path(f"/proc/{self.process.pid}")
        if not own.exists():
            return "threads and files unknown"
        return f"{len(list((own / 'task').iterdir()))} threads, {len(list((own / 'fd').iterdir()))} files"


@contextmanager
def tensorboard(logdir: Logdir, load_fast: str, with_plugin: bool) -> Iterator[Server]:
    """A TensorBoard that has loaded every run's scalars, and our data where it has the plugin."""
    port = random.SystemRandom().randint(20_000, 60_000)
    hidden = "" if with_plugin else ENTRY_POINT
    options = ["--logdir", str(logdir.folder), "--port", str(port), "--host", "127.0.0.1", "--load_fast", load_fast]
    process = subprocess.Popen(
        [sys.executable, "-c", LAUNCHER, hidden, *options, "--reload_interval", "1"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    server = Server(port, process)
    try:
        deadline = time.monotonic() + TIMEOUT_S
        while not _loaded(server, len(logdir.names), with_plugin):
            if process.poll() is not None or time.monotonic() > deadline:
                sys.exit("TensorBoard does not load the logdir.")
            time.sleep(1)
        yield server
    finally:
        process.terminate()
        process.wait()


def _loaded(server: Server, runs: int, with_plugin: bool) -> bool:
    try:
        if len(server.json(TAGS)) < runs:
            return False
        return not with_plugin or server.json("/data/plugin/tb_dlprof/runs")["total"] >= runs
    except (OSError, http.client.HTTPException, RuntimeError):
        return False


def time_to_complete(server: Server) -> tuple[float, int, int]:
    """Seconds until the table of runs holds all of them, how many these are, and how many answers that took."""
    began, answers = time.perf_counter(), 0
    while True:
        table = server.json("/data/plugin/tb_dlprof/many_runs")
        answers += 1
        if table["done"] == table["total"]:
            return time.perf_counter() - began, table["total"], answers


def time_of_first_answers(server: Server, names: list[str]) -> float:
    """Seconds for all pages of the runs that many look at, asked by four clients for the first time."""
    began = time.perf_counter()
    with ThreadPoolExecutor(4) as pool:
        paths = [f"/data/plugin/tb_dlprof/{page}?run={quote(names[at])}" for at in POPULAR for page in PAGES]
        list(pool.map(server.get, paths))
    return time.perf_counter() - began


def our_pages(names: list[str]) -> Ask:
    """Half tables of all runs, half pages of one: of 24 runs that many look at, one in a hundred of any other."""

    def ask(chance: random.Random) -> tuple[str, str]:
        if chance.random() < 0.5:
            name = chance.choice(TABLES)
            return name, f"/data/plugin/tb_dlprof/{name}"
        run = chance.choice([names[at] for at in POPULAR]) if chance.random() < 0.99 else chance.choice(names)
        name = chance.choice(PAGES)
        return name, f"/data/plugin/tb_dlprof/{name}?run={quote(run)}"

    return ask


def scalars(names: list[str]) -> Ask:
    """The curve of a run."""

    def ask(chance: random.Random) -> tuple[str, str]:
        return "scalars", f"/data/plugin/scalars/scalars?run={quote(chance.choice(names))}&tag=loss"

    return ask


Times = dict[str, list[float]]
"""Seconds, by the name of what was asked."""


def load(server: Server, asks: list[Ask], seconds: float, add: Callable[[], None] | None = None) -> list[Times]:
    """Answer times in seconds by name, for each client; ``add`` is called every second meanwhile."""
    until = time.monotonic() + seconds
    times: list[Times] = [{} for _ in asks]
    failures: list[str] = []

    def client(number: int) -> None:
        chance = random.Random(number)
        while time.monotonic() < until and not failures:
            name, path = asks[number](chance)
            began = time.perf_counter()
            try:
                server.get(path)
            except (OSError, http.client.HTTPException, RuntimeError) as error:
                failures.append(f"{path}: {error}")
            times[number].setdefault(name, []).append(time.perf_counter() - began)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(len(asks))]
    for thread in threads:
        thread.start()
    while time.monotonic() < until:
        time.sleep(1)
        if add is not None:
            add()
    for thread in threads:
        thread.join()
    if failures:
        sys.exit(f"A request failed: {failures[0]}")
    return times


def percentile(times: list[Times], percent: float, names: tuple[str, ...] = ()) -> float:
    """Seconds, over all clients and these names, by default all."""
    found = [one for of_client in times for name, own in of_client.items() if not names or name in names for one in own]
    return float(np.percentile(found, percent)) if found else float("nan")


def _line(title: str, times: list[Times], seconds: float, names: tuple[str, ...] = ()) -> None:
    count = sum(len(own) for of_client in times for name, own in of_client.items() if not names or name in names)
    p50, p95, most = (percentile(times, percent, names) for percent in (50, 95, 100))
    print(f"{title:<58}{count / seconds:8.0f}/s  p50 {p50:7.3f} s  p95 {p95:7.3f} s  max {most:7.3f} s", flush=True)


def soak(logdir: Logdir, given: argparse.Namespace) -> None:
    """Prints what the server holds, each five minutes under load; the last memory to the first comes last."""
    first = last = float("nan")
    with tensorboard(logdir, given.load_fast, with_plugin=True) as server:
        time_to_complete(server)
        for minutes in range(SOAK_LINE_MINUTES, int(given.soak) + 1, SOAK_LINE_MINUTES):
            seconds = 60.0 * SOAK_LINE_MINUTES
            times = load(server, [our_pages(list(logdir.names))] * given.clients, seconds)
            _line(f"after {minutes} min: {server.resident_mb:.0f} MB, {server.held}", times, seconds)
            last = server.resident_mb
            first = last if minutes == SOAK_LINE_MINUTES else first
    print(f"memory after {int(given.soak)} min to that after {SOAK_LINE_MINUTES}: {last / first:.3f}")


def main() -> None:
    """Measures and prints; the ratios come last."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1600)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=30.0, help="for each of the measurements under load")
    parser.add_argument("--load-fast", choices=("true", "false"), default="true", help="TensorBoard's loader")
    parser.add_argument("--only-pages", action="store_true", help="leave out the scalars")
    parser.add_argument("--soak", type=float, metavar="MINUTES", help="only ask for pages, for so long")
    given = parser.parse_args()
    recorded = sorted({file.parent for file in (ROOT / "demo" / "recorded").rglob("*tfevents*")})
    folder = Path(tempfile.mkdtemp(prefix="server_load"))
    try:
        (soak if given.soak else measure)(make_logdir(folder, given.runs, recorded), given)
    finally:
        shutil.rmtree(folder)


def measure(logdir: Logdir, given: argparse.Namespace) -> None:
    """Prints a line for each measurement."""
    names, clients, seconds = list(logdir.names), given.clients, given.seconds
    ours, theirs = [our_pages(names)] * clients, [scalars(names)] * clients
    with tensorboard(logdir, given.load_fast, with_plugin=True) as server:
        took, runs, answers = time_to_complete(server)
        print(
            f"{f'complete: {runs} runs in the table':<58}{took:.1f} s in {answers} answers; {server.resident_mb:.0f} MB"
        )
        took = time_of_first_answers(server, names)
        print(f"{f'first: {len(POPULAR) * len(PAGES)} pages, each once':<58}{took:.1f} s", flush=True)
        times = load(server, ours, seconds, logdir.add)
        _line(f"pages: {clients} clients, a run added every second", times, seconds)
        _line("  of these tables of all runs", times, seconds, TABLES)
        _line("  of these pages of one run", times, seconds, PAGES)
        print(f"{'  memory afterwards':<58}{server.resident_mb:.0f} MB")
        if given.only_pages:
            return
        with_plugin = load(server, theirs, seconds)
        _line(f"scalars: {clients} clients, with the plugin", with_plugin, seconds)
        beside_ours = load(server, [*theirs[:1], *ours[1:]], seconds)
        _line("one on scalars, the others on our pages", beside_ours[:1], seconds)
    with tensorboard(logdir, given.load_fast, with_plugin=False) as server:
        without = load(server, theirs, seconds)
        _line(f"scalars: {clients} clients, without the plugin", without, seconds)
        beside_scalars = load(server, theirs, seconds)
        _line("one on scalars, the others on scalars", beside_scalars[:1], seconds)
    print(f"scalars with the plugin to without (p50): {percentile(with_plugin, 50) / percentile(without, 50):.2f}")
    shared = percentile(beside_ours[:1], 50) / percentile(beside_scalars[:1], 50)
    print(f"one on scalars, the others on our pages, to the others on scalars without the plugin (p50): {shared:.2f}")


if __name__ == "__main__":
    main()
