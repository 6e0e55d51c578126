"""Behind a proxy as strict as Colab's the page shows and works: in TensorBoard's frame, and alone in a cell."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Frame, FrameLocator, Page, expect
from support.colab_proxy import ColabProxy, start_colab_proxy, tensorboard_cell
from support.recorded_runs import demo_run
from support.tensorboard import PAGE_MS, RECORDED, start_tensorboard

from tb_dlprof_plugin.notebook import colab_script, page_path
from tb_dlprof_plugin.pages.overview import overview

FP32, AMP, LATER = "lenet/fp32", "lenet/amp-fp16", "mlp/fp32"
_STORAGE = "() => { try { return String(window.localStorage) } catch (error) { return error.name } }"
_AROUND = "() => { try { return window.parent.location.href } catch (error) { return error.name } }"


@pytest.fixture(scope="module")
def logdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs; a test adds another."""
    root = tmp_path_factory.mktemp("colab")
    for run in (FP32, AMP):
        shutil.copytree(RECORDED / run, root / run)
    return root


@pytest.fixture(scope="module")
def tensorboard(logdir: Path) -> Iterator[str]:
    """One of the two loaders: what the proxy does to answers has nothing to do with them."""
    server = start_tensorboard(logdir, "false", 2)
    yield server.url
    server.process.terminate()
    server.process.wait(timeout=20)


@pytest.fixture
def proxy(tensorboard: str) -> Iterator[ColabProxy]:
    """A proxy with an empty cache."""
    running = start_colab_proxy(tensorboard)
    yield running
    running.close()


def is_fault_of_ours(message: ConsoleMessage) -> bool:
    """TensorBoard asks for its fonts at the root, which is not its own under a prefix."""
    return message.type == "error" and "/font-roboto/" not in message.location["url"]


def watch(page: Page) -> list[str]:
    """What goes wrong on a page, from now on."""
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if is_fault_of_ours(message) else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    return errors


def nothing_was_lost(proxy: ColabProxy) -> None:
    """Every answer came whole, and nothing was asked for that such a proxy does not pass."""
    assert proxy.cut == []
    assert [path for path in proxy.refused if "/font-roboto/" not in path] == []


def headline_of(run: str) -> str:
    recorded = demo_run(run)
    return overview(recorded.view, recorded.ref, recorded.selection).headline


def plugin_frame(page: Page) -> Frame:
    return next(frame for frame in page.frames if "/data/plugin_entry.html" in frame.url)


def walk(frame: FrameLocator) -> None:
    """Through a run: its Overview, its ops, one of them, the advice with code to copy, and to Compare."""
    frame.get_by_test_id("run-picker").select_option(FP32)
    expect(frame.get_by_test_id("headline")).to_have_text(headline_of(FP32), timeout=PAGE_MS)
    frame.get_by_test_id("place-explore").click()
    frame.get_by_test_id("ops-table").get_by_text("conv2/conv2d", exact=False).first.click()
    expect(frame.get_by_test_id("op-detail")).to_contain_text("conv2", timeout=PAGE_MS)
    frame.get_by_test_id("place-summary").click()
    frame.get_by_test_id("nav-advice").click()
    frame.get_by_test_id("finding-details").first.click()
    frame.get_by_role("button", name="Copy", exact=True).first.click()
    expect(frame.get_by_text("Copied", exact=True)).to_be_visible()
    frame.get_by_test_id("place-compare").click()
    expect(frame.get_by_test_id("waterfall")).to_be_visible(timeout=PAGE_MS)


def test_tensorboards_cell_shows_the_page(storing: BrowserContext, proxy: ColabProxy) -> None:
    # TensorBoard's own page does not start where storage is denied; Chrome allows it unless it is set otherwise.
    page = storing.new_page()
    errors = watch(page)
    proxy.cell = tensorboard_cell()
    page.goto(proxy.notebook)
    frame = page.frame_locator("iframe").frame_locator("iframe")
    # TensorBoard's cell names no run: the pair of precisions is open.
    expect(frame.get_by_test_id("waterfall")).to_be_visible(timeout=PAGE_MS)
    frame.get_by_test_id("place-summary").click()
    walk(frame)
    assert errors == []
    nothing_was_lost(proxy)


@pytest.mark.long
def test_the_page_alone_works_without_storage_and_among_strangers(
    browser: Browser, proxy: ColabProxy, logdir: Path
) -> None:
    page = browser.new_context(viewport={"width": 1440, "height": 1000}).new_page()
    errors = watch(page)
    proxy.cell = colab_script(6006, page_path(AMP, None), 900)
    page.goto(proxy.notebook)
    frame = page.frame_locator("iframe")
    expect(frame.get_by_test_id("headline")).to_have_text(headline_of(AMP), timeout=PAGE_MS)
    expect(frame.locator("html")).to_have_attribute("data-theme", "dark")  # the notebook's
    assert plugin_frame(page).evaluate(_STORAGE) == "SecurityError"
    assert plugin_frame(page).evaluate(_AROUND) == "SecurityError"
    walk(frame)

    # The state is in the frame's own address, which opens again where it was.
    assert "p.tb_dlprof.page=compare" in plugin_frame(page).url
    plugin_frame(page).evaluate("() => window.location.reload()")
    expect(frame.get_by_test_id("waterfall")).to_be_visible(timeout=PAGE_MS)
    assert any("/assets/mount-" in path for path in proxy.from_cache)
    assert [path for path in proxy.cache if "/assets/" not in path] == []

    # What TensorBoard answers is never kept: a run that comes later shows.
    shutil.copytree(RECORDED / LATER, logdir / LATER)
    frame.get_by_test_id("place-summary").click()
    picker = frame.get_by_test_id("run-picker")
    for _ in range(PAGE_MS // 500):
        frame.get_by_test_id("refresh").click()
        page.wait_for_timeout(500)
        if picker.locator("option", has_text=LATER).count():
            break
    picker.select_option(LATER)
    expect(frame.get_by_test_id("headline")).to_have_text(headline_of(LATER), timeout=PAGE_MS)
    assert errors == []
    nothing_was_lost(proxy)
    page.context.close()
