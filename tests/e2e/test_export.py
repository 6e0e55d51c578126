"""An exported file, opened from disk in a Chromium without a network: every page, with the numbers of TensorBoard."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from base64 import b64decode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from support.marks import long
from support.tensorboard import RECORDED, Server, start_tensorboard
from typer.testing import CliRunner

from tb_dlprof_plugin.api.profiles import read_profiles
from tb_dlprof_plugin.cli.main import app

STRANGE = "</b><!--<script>alert(1)"
"""A run's name that would be an element, if it were put anywhere but into a text node."""
FP32, AMP = "lenet/fp32", f"lenet/{STRANGE.replace('/', '')}"


@pytest.fixture(scope="module")
def logdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("exported") / "runs"
    shutil.copytree(RECORDED / "lenet/fp32", root / FP32)
    shutil.copytree(RECORDED / "lenet/amp-fp16", root / AMP)
    return root


@pytest.fixture(scope="module")
def exported(logdir: Path) -> Path:
    target = logdir.parent / "pair.html"
    result = CliRunner().invoke(app, ["export", str(logdir), "--html", str(target)])
    assert result.exit_code == 0, result.output
    return target


@pytest.fixture(scope="module")
def server(logdir: Path) -> Iterator[Server]:
    started = start_tensorboard(logdir, "false", 2)
    yield started
    started.process.terminate()
    started.process.wait(timeout=20)


def test_a_file_from_python_runs_in_a_frame_without_an_origin(browser: Browser, tmp_path: Path) -> None:
    """As experiment trackers show it."""
    text = read_profiles(RECORDED / "lenet/fp32")[0].html()
    assert len(text) < 2_000_000
    (tmp_path / "profile.html").write_text(text)
    address = "profile.html#tb_dlprof&p.tb_dlprof.page=ops"
    (tmp_path / "tracker.html").write_text(
        f'<iframe sandbox="allow-scripts" src="{address}" width="1400" height="850"></iframe>'
    )
    page = browser.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto((tmp_path / "tracker.html").as_uri())
    frame = page.frame_locator("iframe")
    expect(frame.get_by_test_id("ops-table").get_by_role("row").nth(2)).to_be_visible()
    assert errors == []
    page.close()


@pytest.fixture(scope="module")
def offline(browser: Browser) -> Iterator[Callable[[str], BrowserContext]]:
    """Contexts that can reach nothing, by their colour scheme."""
    opened: dict[str, BrowserContext] = {}

    def context(scheme: str) -> BrowserContext:
        if scheme not in opened:
            opened[scheme] = browser.new_context(
                viewport={"width": 1440, "height": 900},
                color_scheme=scheme,  # type: ignore[arg-type]
                reduced_motion="reduce",
                offline=True,
            )
        return opened[scheme]

    yield context
    for one in opened.values():
        one.close()


@pytest.fixture
def page(offline: Callable[[str], BrowserContext], request: pytest.FixtureRequest) -> Iterator[Page]:
    """A page that can reach nothing; it fails where it tried to, or where anything was logged as an error."""
    opened = offline(getattr(request, "param", "light")).new_page()
    wrong: list[str] = []
    opened.route(re.compile("^https?:"), lambda route: (wrong.append(route.request.url), route.abort()))
    opened.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
    yield opened
    opened.close()
    assert wrong == []


def open_file(opened: Page, exported: Path, **state: str) -> None:
    pairs = "".join(f"&p.tb_dlprof.{key}={quote(value, safe='')}" for key, value in state.items())
    opened.goto("about:blank")
    opened.goto(f"{exported.as_uri()}#tb_dlprof{pairs}")


@pytest.mark.parametrize("page", ["light", long("dark")], indirect=True)
def test_every_page_opens_from_disk(page: Page, exported: Path) -> None:
    open_file(page, exported, run=AMP)
    expect(page.get_by_test_id("run-picker").locator("option:checked")).to_contain_text(AMP)
    places, views = page.locator("nav[aria-label=Places] button"), page.locator(".top-views nav button")
    shown = 0
    for place in places.all_text_contents():
        places.get_by_text(place, exact=True).click()
        expect(page.locator("nav[aria-label=Places] [aria-current]")).to_have_text(place)
        # A view offers what it can show in another way: their number changes with it.
        view = 0
        while view < max(1, views.count()):
            if views.count():
                views.nth(view).click()
            expect(page.locator("main .headline").first).not_to_be_empty()
            expect(page.get_by_test_id("run-error")).to_have_count(0)
            expect(page.get_by_test_id("not-in-file")).to_have_count(0)
            shown, view = shown + 1, view + 1
    assert shown >= 12
    assert page.evaluate("document.documentElement.dataset.theme") in ("light", "dark")
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_test_id("theme").click()
    page.wait_for_function("before => getComputedStyle(document.body).backgroundColor !== before", arg=before)


@pytest.mark.long
def test_a_selection_lives_in_the_address_and_a_table_is_saved(page: Page, exported: Path) -> None:
    open_file(page, exported, page="ops", run=FP32)
    page.get_by_test_id("ops-table").get_by_role("row").nth(2).click()
    detail = page.get_by_test_id("op-detail")
    expect(detail).to_be_visible()
    chosen = re.search(r"p\.tb_dlprof\.op=([^&]+)", page.url)
    assert chosen, page.url
    text = detail.inner_text()
    page.reload()
    expect(detail).to_have_text(re.compile(re.escape(text.splitlines()[0])))
    with page.expect_download() as saved:
        page.get_by_test_id("csv-download").first.click()
    rows = Path(saved.value.path()).read_text("utf-8-sig").splitlines()
    assert len(rows) > 10


def test_a_pair_is_compared_down_to_an_op(page: Page, exported: Path, server: Server) -> None:
    open_file(page, exported, page="compare", **{"a.run": FP32, "b.run": AMP})
    served = served_page(server, "compare", {"a.run": FP32, "b.run": AMP})
    expect(page.get_by_test_id("headline")).to_have_text(served["headline"])
    assert served["speedup"] is not None
    open_file(page, exported, page="compare", **{"a.run": FP32, "b.run": AMP, "pair": served["ops"][0]["id"]})
    expect(page.get_by_test_id("compare-op")).to_contain_text("Kernel")


def test_the_pair_that_is_shown_is_saved_as_such_a_file(
    browser: Browser, server: Server, page: Page, tmp_path: Path
) -> None:
    served = browser.new_page()
    served.goto(f"{server.page_alone}#tb_dlprof")
    # The address names nothing: the pair of full precision and AMP is shown.
    expect(served.get_by_test_id("compare-waterfall")).to_be_visible()
    headline = served.get_by_test_id("headline").inner_text()
    served.get_by_test_id("export").click()
    with served.expect_download() as saved:
        served.get_by_test_id("save-page-file").click()
    saved.value.save_as(tmp_path / "pair.html")
    served.close()
    open_file(page, tmp_path / "pair.html", page="compare", **{"a.run": FP32, "b.run": AMP})
    expect(page.get_by_test_id("headline")).to_have_text(headline)


@pytest.mark.long
def test_the_search_finds_what_the_servers_finds(page: Page, exported: Path, server: Server) -> None:
    open_file(page, exported, run=FP32)
    expect(page.locator("main .headline").first).not_to_be_empty()
    for text in ("conv bprop", "kernel"):
        page.keyboard.press("/")
        page.get_by_test_id("search-input").fill(text)
        served = served_page(server, "search", {"run": FP32, "text": text})["hits"]
        for kind in ("op", "module", "kernel", "rule", "report"):
            # The box shows the best of each kind.
            labels = [hit["label"] for hit in served if hit["kind"] == kind][:6]
            expect(page.get_by_test_id(f"hit-{kind}").locator(".search-label")).to_have_text(labels)
        page.keyboard.press("Escape")
        expect(page.get_by_test_id("search-input")).to_have_count(0)
    assert labels


def test_what_takes_a_server_is_said_not_failed(page: Page, exported: Path) -> None:
    open_file(page, exported, page="kernels", run=FP32, first="1", last="2")
    expect(page.get_by_test_id("not-in-file")).to_contain_text("This file holds pages about the whole recording")
    page.get_by_test_id("whole-recording").click()
    expect(page.get_by_test_id("not-in-file")).to_have_count(0)
    expect(page.get_by_test_id("range-first")).to_be_disabled()
    expect(page.get_by_test_id("refresh")).to_have_count(0)
    open_file(page, exported, page="overview", run="elsewhere")
    expect(page.get_by_test_id("not-in-file")).to_contain_text("The run elsewhere is not in this file")


def test_answers_are_those_that_tensorboard_serves(exported: Path, server: Server) -> None:
    text = exported.read_text("utf-8")
    contents = json.loads(re.search(r'id="dlprof-contents">(.*)</script>', text)[1])
    compared = 0
    for place, block in enumerate(contents["blocks"]):
        if block["route"] == "runs":
            continue
        packed = re.search(rf'id="dlprof-block-{place}">"(.*)"</script>', text)[1]
        answers = json.loads(gzip.decompress(b64decode(packed)))
        # Details of ops are hundreds that come from the same function.
        for one in answers[:: 1 if len(answers) < 20 else len(answers) // 10]:
            assert one["answer"] == served_page(server, block["route"], one["query"]), (block, one["query"])
            compared += 1
    assert compared > 80
    assert len(text) < 1_500_000


def served_page(server: Server, route: str, query: dict[str, str]) -> Any:
    """The answer of a route, once it has read all runs."""
    while True:
        answer = server.get(f"{route}?{urlencode(query)}")
        assert isinstance(answer, dict)
        if answer.get("done", 0) == answer.get("total", 0):
            return answer
