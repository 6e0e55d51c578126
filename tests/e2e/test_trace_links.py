"""The raw trace on its way out of the page: into Perfetto, whose site alone is a stand-in here, and into a file."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser, expect
from support.tensorboard import PAGE_MS, RECORDED, Server, frame_in

from tb_dlprof_plugin.store.event_file import write_profile
from tb_dlprof_plugin.store.logdir import read_profiles

_NAME = "big.pt.trace.json.gz"  # sent in two pieces
# What Perfetto documents: it answers PING with PONG and takes the bytes of one message.
_PERFETTO = """<!doctype html><title>waiting</title><script>
addEventListener("message", async ({data, source, origin}) => {
  if (data === "PING") return source.postMessage("PONG", origin);
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", data.perfetto.buffer));
  document.title = data.perfetto.fileName + " " + Array.from(digest, (b) => b.toString(16).padStart(2, "0")).join("");
});
</script>"""


def test_a_trace_arrives_whole_in_perfetto_and_in_a_file(
    serve: Callable[[Path, int], Server], browser: Browser, tmp_path: Path
) -> None:
    (stored,) = read_profiles(RECORDED / "lenet" / "fp32")
    source = dataclasses.replace(stored.profile.source, trace_file=_NAME)
    write_profile(tmp_path / "with", dataclasses.replace(stored.profile, source=source))
    write_profile(tmp_path / "without", stored.profile)
    trace = gzip.compress(b'{"traceEvents": [], "traceName": "%s"}' % os.urandom(1_200_000).hex().encode())
    (tmp_path / "with" / _NAME).write_bytes(trace)
    digest = hashlib.sha256(trace).hexdigest()
    server = serve(tmp_path, 2)
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.route("https://ui.perfetto.dev/**", lambda route: route.fulfill(body=_PERFETTO, content_type="text/html"))
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))

    page.goto(f"{server.url}#tb_dlprof&p.tb_dlprof.run=with")
    frame = frame_in(page)
    more = frame.get_by_test_id("overview-more").locator("> summary")
    more.click(timeout=PAGE_MS)
    links = frame.get_by_test_id("trace-links")
    expect(links).to_contain_text(str(tmp_path / "with" / _NAME), timeout=PAGE_MS)
    with page.expect_popup() as popup:
        frame.get_by_test_id("open-perfetto").click()
    expect(popup.value).to_have_title(f"{_NAME} {digest}", timeout=PAGE_MS)
    expect(frame.get_by_test_id("trace-report")).to_have_text("Opened in the Perfetto window.")

    with page.expect_download() as download:
        frame.get_by_test_id("save-trace").click()
    assert download.value.suggested_filename == _NAME
    assert hashlib.sha256(Path(download.value.path()).read_bytes()).hexdigest() == digest

    frame.get_by_test_id("run-picker").select_option("without")
    expect(links).to_contain_text("Copy it there to open it from here.", timeout=PAGE_MS)
    expect(frame.get_by_test_id("open-perfetto")).to_have_count(0)
    assert errors == []
    context.close()
