"""A job of thousands of ranks made from a recorded one of two, and how long it takes to import and to answer.

    python -m lab.ranks.scale JOB --out DIRECTORY [--ranks 256] [--straggler 37] [--workers 1 2] [--s3] [--kill]

JOB is a directory with the traces of two ranks, rank0*.json.gz and rank1*.json.gz, of which rank 1 is late. It becomes
the straggler; rank 0, with jitter in when it arrives at each collective, becomes all others. Eight ranks share a host,
whose clock is off by up to 5 ms. With `--s3` the files are objects of moto's S3 server on this machine, and Dask's
workers read and write there. With `--kill` a worker's process is killed when a third of the ranks are done; all have to
be there in the end. `--ranks 4096` is the full size.

Prints seconds, ranks per second and worker, the workers' CPU time for each rank, the peak memory of this process, and
what `tb-dlprof distributed` says of the job and how long that takes.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tb_dlprof_plugin.api.import_job import import_job
from tb_dlprof_plugin.model import addresses

from .many_facts import answered

VARIANTS = 8
JITTER_US = 150.0
HOST_RANKS = 8
CLOCK_NS = 5_000_000
_EVENTS = b'"traceEvents"'
_COLLECTIVE = "nccldevkernel"


def multiplied(job: Path, target: str, ranks: int, straggler: int) -> int:
    """Writes the traces of so many ranks; their bytes.

    What is before the events names the rank, and is compressed for each by itself; the events are compressed once for
    each variant: gzip files may be joined.
    """
    draw = random.Random(0)
    heads, bodies = {}, {}
    for rank in (0, 1):
        text = gzip.decompress(next(job.glob(f"rank{rank}*.json.gz")).read_bytes())
        at = text.index(_EVENTS)
        heads[rank], events = text[:at], text[at:]
        document = json.loads(b"{" + events)
        _join(document["traceEvents"], ranks)
        variants = range(VARIANTS) if rank == 0 else range(1)
        bodies[rank] = [_packed(document, draw if number else None) for number in variants]
    head = json.loads(heads[0].rstrip().rstrip(b",") + b"}")
    offsets = [draw.randint(-CLOCK_NS, CLOCK_NS) for _ in range(-(-ranks // HOST_RANKS))]
    written = 0
    for rank in range(ranks):
        info = {**head.get("distributedInfo", {}), "rank": rank, "world_size": ranks}
        for group in info.get("pg_config", []):
            group |= {"pg_size": ranks, "ranks": list(range(ranks))}
        host = rank // HOST_RANKS
        base = head.get("baseTimeNanoseconds", 0) + offsets[host]
        own = {**head, "distributedInfo": info, "baseTimeNanoseconds": base, "host_name": f"node{host:04d}"}
        body = bodies[1][0] if rank == straggler else bodies[0][rank % VARIANTS]
        content = gzip.compress(json.dumps(own).rstrip("}").encode() + b",\n", 1) + body
        addresses.write(addresses.join(target, f"rank{rank}.json.gz"), content)
        written += len(content)
    return written


def _join(events: list[dict[str, Any]], ranks: int) -> None:
    """Makes all of the job's ranks members of each group, as torch writes a long list."""
    members = list(map(str, range(ranks)))
    shown = members if ranks <= 30 else [*members[:29], "...", members[-1]]
    for event in events:
        arguments = event.get("args", {})
        if "Process Group Ranks" in arguments:
            arguments["Process Group Ranks"] = f"[{', '.join(shown)}]"
            arguments["Group size"] = ranks


def _packed(document: dict[str, Any], draw: random.Random | None) -> bytes:
    """The events and what follows, gzip'd; with ``draw`` each collective begins somewhat later and ends as it did."""
    events = document["traceEvents"]
    if draw is not None:
        events = [
            _later(event, draw) if event.get("cat") == "kernel" and _COLLECTIVE in event["name"].lower() else event
            for event in events
        ]
    return gzip.compress(json.dumps({**document, "traceEvents": events}).encode()[1:], 1)


def _later(event: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    by = min(draw.uniform(0, JITTER_US), 0.5 * event["dur"])
    return {**event, "ts": event["ts"] + by, "dur": event["dur"] - by}


@contextlib.contextmanager
def object_storage() -> Iterator[str]:
    """The address of an empty bucket on this machine's S3 server, which is in the environment from here on."""
    with subprocess.Popen(
        [sys.executable, "-c", _SERVER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdout is not None
        os.environ["AWS_ENDPOINT_URL"] = server.stdout.readline().strip()
        os.environ |= {"AWS_ACCESS_KEY_ID": "t", "AWS_SECRET_ACCESS_KEY": "t", "AWS_DEFAULT_REGION": "us-east-1"}
        import fsspec

        fsspec.filesystem("s3").mkdir("scale")
        try:
            yield "s3://scale"
        finally:
            server.kill()


_SERVER = """
import time
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
print("http://%s:%d" % server.get_host_and_port(), flush=True)
time.sleep(1e6)
"""


def imported(traces: str, logdir: str, workers: int, ranks: int, kill: bool) -> dict[str, Any]:
    """Imports with so many Dask workers, each a process; seconds without their start.

    With ``kill`` the process of one dies when a third is done. Dask's nanny starts another.
    """
    import distributed

    with (
        distributed.LocalCluster(workers, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        before = client.run(_warm)
        began = time.perf_counter()
        killed: list[int] = []

        def progress(done: int, of: int) -> None:
            if kill and not killed and 3 * done >= of:
                killed.append(next(iter(client.run(os.getpid).values())))
                os.kill(killed[0], signal.SIGKILL)

        (run,) = import_job(f"{traces}/rank*.json.gz", logdir, engine=client, run="job", progress=progress)
        seconds = time.perf_counter() - began
        spent = 0.0 if kill else sum(client.run(time.process_time).values()) - sum(before.values())
    assert run.missing_ranks == [], run.missing_ranks
    assert len(run.ranks) == ranks
    return {
        "workers": workers,
        "seconds": round(seconds, 1),
        "per_second_and_worker": round(ranks / seconds / workers, 2),
        "cpu_seconds_a_rank": round(spent / ranks, 3) if spent else None,
        "killed_workers": len(killed),
    }


def _warm() -> float:
    import tb_dlprof_plugin.api.import_job  # noqa: F401 - workers import it once

    return time.process_time()


def here(run: str, folder: Path) -> str:
    """A run on this machine's disk: commands read no remote one."""
    if not addresses.is_remote(run):
        return run
    import fsspec

    folder.mkdir(parents=True)
    fsspec.filesystem("s3").get(f"{run}/", f"{folder}/", recursive=True)
    return str(folder)


def main() -> None:
    """Prints the figures, one line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--ranks", type=int, default=256)
    parser.add_argument("--straggler", type=int, default=37)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--s3", action="store_true", help="files as objects of moto's S3 server on this machine")
    parser.add_argument("--kill", action="store_true", help="kill a worker when a third of the ranks are done")
    given = parser.parse_args()
    with object_storage() if given.s3 else contextlib.nullcontext(str(given.out.resolve())) as place:
        began = time.perf_counter()
        size = multiplied(given.job, f"{place}/traces", given.ranks, given.straggler % given.ranks)
        print(f"{given.ranks} ranks, {size / 1e6:.0f} MB, written in {time.perf_counter() - began:.0f} s", flush=True)
        for workers in given.workers:
            print(imported(f"{place}/traces", f"{place}/runs{workers}", workers, given.ranks, given.kill), flush=True)
        print("peak memory of the client:", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, "MB")
        run = here(f"{place}/runs{given.workers[-1]}/job", given.out / "job")
        print("tb-dlprof distributed:", answered(run))


if __name__ == "__main__":
    main()
