"""How smoothly the Timeline page moves through a large iteration, in a real Chromium on a real TensorBoard.

The run is a recorded trace whose steps follow each other (``big_trace.py``) until one iteration holds the wanted number
of calls and GPU activities: of its step annotations only one is kept, around all of them, and of its optimizer steps
the last, as when gradients are accumulated over many batches. Everything else in it is as torch wrote it.

Measured are the sizes of the answers; the time from opening the page until the first picture and until every event is
there; and the time between frames while, in each frame, a wheel turns (zooming in to a few events and out again), a key
moves the view, and a hand drags it. The same with nothing moving gives the frame time of the screen.

    python lab/speed/timeline_frames.py tests/traces/resnet50_fp32.pt.trace.json.gz --events 100000
"""

from __future__ import annotations

import argparse
import gzip
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import msgspec
from big_trace import make, read
from playwright.sync_api import Frame, sync_playwright

from tb_dlprof_plugin.analysis import analyze_trace
from tb_dlprof_plugin.pages.timeline.events import timeline_events
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.store.event_file import write_profile

RUN = "large"
SIZES = (("1440x900", 1440, 900), ("2560x1300", 2560, 1300))

# In each frame one event of the hand, then the time since the frame before. Runs in the page.
_MOVE = """
async ([kind, frames]) => {
  const figure = document.querySelector('[data-testid="timeline-figure"]');
  const canvas = document.querySelector('[data-testid="timeline-canvas"]');
  const box = canvas.getBoundingClientRect();
  const real = { bubbles: true, cancelable: true };
  const at = (share) => ({ ...real, clientX: box.left + box.width * share, clientY: box.top + 120 });
  const pointer = (type, share) => canvas.dispatchEvent(
    new PointerEvent(type, { ...at(share), pointerId: 1, pointerType: "mouse", button: 0, isPrimary: true }));
  canvas.setPointerCapture = () => undefined;
  figure.focus();
  const wheel = (delta) => canvas.dispatchEvent(new WheelEvent("wheel", { ...at(0.61), deltaY: delta }));
  const key = (name) => figure.dispatchEvent(new KeyboardEvent("keydown", { ...real, key: name }));
  const moves = {
    nothing: () => undefined,
    zoom: (step) => wheel(step % 120 < 60 ? -120 : 120),
    keys: (step) => key(step % 40 < 20 ? "d" : "a"),
    drag: (step) => pointer("pointermove", 0.5 + 0.3 * Math.sin(step / 12)),
  };
  if (kind === "drag") pointer("pointerdown", 0.5);
  const times = [], drawing = [];
  let last = null;
  const ask = window.requestAnimationFrame;
  window.requestAnimationFrame = (draw) => ask((now) => {
    const begin = performance.now();
    draw(now);
    drawing.push(performance.now() - begin);
  });
  for (let step = 0; step < frames; step++) {
    await new Promise((next) => ask(next));
    const now = performance.now();
    if (last !== null) times.push(now - last);
    last = now;
    moves[kind](step);
  }
  if (kind === "drag") pointer("pointerup", 0.5);
  window.requestAnimationFrame = ask;
  return [times, drawing];
}
"""


class Event(msgspec.Struct):
    """What of an event is looked at."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    ts: float = 0.0
    dur: float = 0.0


class Document(msgspec.Struct):
    """A trace."""

    traceEvents: list[msgspec.Raw]


def one_step(data: bytes) -> bytes:
    """The trace with one step annotation in place of all, from the first's start to the last's end."""
    raws = msgspec.json.decode(data, type=Document).traceEvents
    events = [msgspec.json.decode(raw, type=Event, strict=False) for raw in raws]
    steps = [i for i, event in enumerate(events) if event.name.startswith("ProfilerStep#")]
    host = [i for i in steps if events[i].cat != "gpu_user_annotation"]
    first, last = host[0], host[-1]
    whole = bytes(raws[first]).replace(
        f'"dur": {_number(raws[first], b"dur")}'.encode(),
        f'"dur": {events[last].ts + events[last].dur - events[first].ts:.3f}'.encode(),
    )
    optimizer = [i for i, event in enumerate(events) if event.name.startswith("Optimizer.step#")]
    dropped = {*steps, *optimizer[:-1]}
    kept = [bytes(raw) for i, raw in enumerate(raws) if i not in dropped]
    head, _, _ = data.partition(b'"traceEvents"')
    return head + b'"traceEvents": [\n' + b",\n".join([*kept, whole]) + b"\n]}"


def _number(raw: msgspec.Raw, name: bytes) -> str:
    """The number behind a key, as it is written."""
    behind = bytes(raw).split(b'"' + name + b'": ')[1]
    return behind.split(b",")[0].split(b"}")[0].split(b"\n")[0].strip().decode()


def large_run(source: Path, events: int, logdir: Path) -> int:
    """Writes the run; returns how many calls and GPU activities its iteration holds."""
    megabytes = len(read(source)) / 1e6
    for _ in range(3):
        trace = logdir.parent / "large.pt.trace.json"
        make(source, trace, megabytes)
        trace.write_bytes(one_step(trace.read_bytes()))
        profile = analyze_trace(trace)
        frame = ProfileView(profile)
        drawn = timeline_events(frame, Selection(0, 0))
        found = sum(len(rows) for rows in (profile.calls.op, profile.launches.kernel))
        if len(drawn) >= events:
            write_profile(logdir / RUN, profile)
            print(f"{len(drawn):,} events in one iteration ({found:,} calls and GPU activities, the rest idle gaps)")
            return len(drawn)
        megabytes *= 1.1 * events / len(drawn)
    raise SystemExit(f"{source} does not grow: {len(drawn):,} events in the iteration.")


def serve(logdir: Path) -> tuple[subprocess.Popen[bytes], str]:
    """A TensorBoard that lists the run."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(logdir), "--port", str(port)]
    server = subprocess.Popen([*command, "--load_fast=false"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://localhost:{port}/"
    for _ in range(600):
        try:
            if RUN in urllib.request.urlopen(f"{url}data/plugin/tb_dlprof/runs").read().decode():
                return server, url
        except OSError:
            pass
        time.sleep(0.1)
    server.kill()
    raise SystemExit("TensorBoard did not list the run within a minute.")


def sizes(url: str) -> None:
    """Prints how large the answers are, as JSON and as they travel."""

    def ask(path: str, name: str) -> bytes:
        request = urllib.request.Request(f"{url}data/plugin/tb_dlprof/{path}", headers={"Accept-Encoding": "gzip"})
        begin = time.perf_counter()
        sent: bytes = urllib.request.urlopen(request).read()
        seconds = time.perf_counter() - begin
        data = gzip.decompress(sent) if sent[:2] == b"\x1f\x8b" else sent
        print(f"{name}: {len(data) / 1e3:.0f} kB of JSON, {len(sent) / 1e3:.0f} kB sent, {1000 * seconds:.0f} ms")
        return data

    first = msgspec.json.decode(ask(f"timeline?run={RUN}", "first answer, profile not read yet"))
    ask(f"timeline?run={RUN}", "first answer, again")
    parts = len(first["chunks"])
    all_parts = [len(ask(f"timeline_events?run={RUN}&chunk={i}", f"part {i + 1} of {parts}")) for i in range(parts)]
    print(f"largest part: {max(all_parts, default=0) / 1e3:.0f} kB of at most 1,000")


def measure(url: str, frames: int) -> float:
    """Opens the page and moves through it; returns the slowest kind's 95th percentile over that of a still picture."""
    worst = 0.0
    with sync_playwright() as playwright:
        path = next(p for n in ("chromium", "chromium-browser", "google-chrome") if (p := shutil.which(n)))
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for name, width, height in SIZES:
            page = browser.new_page(viewport={"width": width, "height": height})
            begin = time.perf_counter()
            page.goto(f"{url}#tb_dlprof&p.tb_dlprof.page=timeline&p.tb_dlprof.run={RUN}")
            figure = page.frame_locator("iframe").get_by_test_id("timeline-figure")
            figure.wait_for(timeout=120_000)
            shown = time.perf_counter() - begin
            page.frame_locator("iframe").locator('[data-testid="timeline-figure"][data-loaded="true"]').wait_for(
                timeout=120_000
            )
            print(f"{name}: first picture after {shown:.2f} s, all events after {time.perf_counter() - begin:.2f} s")
            frame = next(f for f in page.frames if f != page.main_frame)
            still = _report(frame, name, "nothing", frames, None)
            for kind in ("zoom", "keys", "drag"):
                # Keys and hand move a view that shows a tenth, where most is drawn.
                worst = max(worst, _report(frame, name, kind, frames, still) / still)
            page.close()
        browser.close()
    return worst


def _report(frame: Frame, name: str, kind: str, frames: int, still: float | None) -> float:
    times, drawing = (sorted(found) for found in frame.evaluate(_MOVE, [kind, frames]))
    p95 = _p95(times)
    slow = sum(t > 50 for t in times)
    print(
        f"{name}, {kind}: p50 {statistics.median(times):.1f} ms, p95 {p95:.1f} ms, longest {times[-1]:.1f} ms, "
        f"{slow} of {len(times)} frames over 50 ms"
        + (f"; drawing p50 {statistics.median(drawing):.1f} ms, p95 {_p95(drawing):.1f} ms" if drawing else "")
    )
    return p95


def _p95(times: list[float]) -> float:
    return times[int(0.95 * len(times))]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Measure the Timeline page's frames.")
    parser.add_argument("source", type=Path, help="a *.pt.trace.json[.gz] of a run on a GPU")
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--frames", type=int, default=240, help="frames of each kind of movement")
    parser.add_argument("--logdir", type=Path, help="keep the run here; one that is there already is used again")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        logdir = args.logdir or Path(folder) / "logdir"
        if not (logdir / RUN).exists():
            large_run(args.source, args.events, logdir)
        server, url = serve(logdir)
        try:
            sizes(url)
            worst = measure(url, args.frames)
        finally:
            server.terminate()
            server.wait(timeout=30)
    print(f"95th percentile of the frame time while moving over that of a still picture: {worst:.2f}")


if __name__ == "__main__":
    main()
