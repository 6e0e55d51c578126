"""Every page, in both themes and at every width: axe finds nothing, nothing sticks out, every measure has a meaning."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeoutError
from support.axe import add_axe, violations
from support.marks import short_of
from support.tensorboard import PAGE_MS, ROOT, Server

from tb_dlprof_plugin.pages.quantities import STEP

_PEERS = ROOT / "docs" / "peers.md"
_LIST = (ROOT / "frontend" / "src" / "state" / "pages.ts").read_text()
PAGES = re.findall(r'"(\w+)"', _LIST[: _LIST.index("] as const")])
"""As the navigation has them, so that a new page is looked at, too."""
MORE = ["runs&p.tb_dlprof.runs=models", "runs&p.tb_dlprof.runs=sweep", "reports&p.tb_dlprof.report=summary"]
RUN_OF = {"memory": "memory", "modules": "memory", "tried": "cpu"}
"""Runs that have what a page shows."""
PAIR = "p.tb_dlprof.a.run=lenet/fp32&p.tb_dlprof.b.run=lenet/amp-fp16"
_LABELS = (
    "main .table-box th, main .facts dt, main .figures dt, main .legend-label, main .readings tbody td:first-child"
)
_FACTS = ".finding, [data-testid=overview-system], [data-testid=by-model-next], [data-testid^=promised]"
"""What the system is and what a rule read are facts that their names say."""
_UNDEFINED = f"""() => [...document.querySelectorAll('{_LABELS}')]
    .filter((label) => label.textContent.trim() && !label.closest('[data-tip], {_FACTS}'))
    .filter((label) => !label.querySelector('[data-tip]'))
    .map((label) => label.textContent)"""
"""Labels of numbers without a definition."""
_SETTLED = """() => document.querySelector('main h1, .start h1') !== null
    && document.querySelector('[aria-busy="true"], .skeleton') === null"""

_WIDTH = "Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)"
_TWO_FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
"""Observers of sizes have received a new one by then."""
_RESIZE_MS = 10_000


@pytest.fixture(scope="module")
def server(shared: Callable[[str], Server]) -> Server:
    """A pair of runs, one with memory and module names, one on the CPU, one on two GPUs."""
    return shared("few")


@pytest.fixture(scope="module")
def light(browser: Browser) -> Iterator[BrowserContext]:
    """Light pages of 1440 by 900 into which axe can be put."""
    context = browser.new_context(
        viewport={"width": 1440, "height": 900}, color_scheme="light", reduced_motion="reduce", bypass_csp=True
    )
    yield context
    context.close()


@pytest.fixture
def page(light: BrowserContext) -> Iterator[Page]:
    opened = light.new_page()
    yield opened
    opened.close()


def _open(page: Page, server: Server, address: str) -> None:
    """A page of ours without TensorBoard around it."""
    page.goto("about:blank")
    page.goto(f"{server.page_alone}#tb_dlprof&p.tb_dlprof.page={address}")
    page.wait_for_function(_SETTLED, timeout=PAGE_MS)
    add_axe(page)


def _too_wide(page: Page) -> list[str]:
    """Widths at which the page scrolls sideways, once charts had the time to follow the window."""
    found = []
    for width in (360, 2560):
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate(_TWO_FRAMES)
        try:
            page.wait_for_function(f"{_WIDTH} <= {width}", timeout=_RESIZE_MS)
        except PlaywrightTimeoutError:
            found.append(f"{page.evaluate(_WIDTH)} px at {width} px")
    page.set_viewport_size({"width": 1440, "height": 900})
    return found


@pytest.mark.parametrize("address", short_of([*PAGES, *MORE], {"overview", "timeline"}))
def test_a_page_is_readable_for_everybody(server: Server, page: Page, address: str) -> None:
    run = PAIR if address == "compare" else f"p.tb_dlprof.run={RUN_OF.get(address, 'lenet/fp32')}"
    _open(page, server, f"{address}&{run}")
    assert violations(page) == []
    assert page.evaluate(_UNDEFINED) == []
    assert _too_wide(page) == []
    # This recording has neither energy nor memory: no figure then.
    says = r"\.$" if address in ("energy", "plan") else r"\d.*\.$"
    assert re.search(says, page.get_by_test_id("headline").inner_text())


@pytest.mark.parametrize(
    "address",
    short_of(
        ["overview", "memory", "modules", "launches", "tensor_cores", "roofline", "compare"],
        {"memory"},
    ),
)
def test_a_run_without_a_gpu_and_without_a_partner_is_readable(server: Server, page: Page, address: str) -> None:
    run = "p.tb_dlprof.a.run=cpu&p.tb_dlprof.b.run=cpu" if address == "compare" else "p.tb_dlprof.run=cpu"
    _open(page, server, f"{address}&{run}")
    assert violations(page) == []
    assert _too_wide(page) == []


@pytest.mark.long
def test_what_the_peers_show_stands_where_the_docs_say(server: Server, page: Page) -> None:
    lines = [line for line in _PEERS.read_text().splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]
    wanted: dict[str, list[str]] = {}
    for row in rows:
        wanted.setdefault(row[-2], []).append(row[-1])
    assert len(rows) > 30
    missing = []
    # Tables far below the window are not laid out and have no text then: this window holds whole pages.
    page.set_viewport_size({"width": 1440, "height": 8000})
    for here, texts in wanted.items():
        name, _, part = here.partition("/")
        assert name in PAGES
        run = {"memory": "memory", "modules": "memory", "overview/gpus": "gpus"}.get(here, "lenet/fp32")
        _open(
            page,
            server,
            f"{name}&p.tb_dlprof.run={run}&p.tb_dlprof.columns=all&{PAIR}"
            + (f"&p.tb_dlprof.report={part}" if name == "reports" else ""),
        )
        if part == "op":
            page.locator("[data-testid=ops-table] tbody .link").first.click()
            page.get_by_test_id("op-detail").get_by_role("heading", name="Kernels").wait_for(timeout=PAGE_MS)
        if name in ("overview", "compare"):
            page.get_by_test_id(f"{name}-more").locator("> summary").click()
            page.get_by_test_id(f"{name}-more").locator("table").first.wait_for(timeout=PAGE_MS)
        if name == "overview":
            page.get_by_test_id("trace-links").wait_for(timeout=PAGE_MS)
        shown = page.locator("body").inner_text()
        missing += [f"{here}: {text}" for text in texts if text not in shown]
    assert missing == []


def test_a_definition_shows_on_focus_and_on_a_tap(server: Server, browser: Browser) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True)
    page = context.new_page()
    page.goto(f"{server.page_alone}#tb_dlprof&p.tb_dlprof.run=lenet/fp32")
    term = page.get_by_test_id("overview-account").locator(".term", has_text="Step").first
    tooltip = page.locator("[role=tooltip]")
    term.tap(timeout=PAGE_MS)
    expect(tooltip).to_have_text(STEP.text)
    page.get_by_test_id("headline").tap()
    expect(tooltip).to_be_hidden()
    term.focus()
    expect(tooltip).to_have_text(STEP.text)
    context.close()


@pytest.mark.long
def test_a_logdir_without_a_run_shows_how_to_start(page: Page, shared: Callable[[str], Server]) -> None:
    _open(page, shared("none"), "overview")
    expect(page.get_by_test_id("empty-state")).to_contain_text("tb_dlprof_plugin.profile")
    assert violations(page) == []
    assert _too_wide(page) == []
