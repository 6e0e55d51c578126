"""From the navigation to a tab until its headline figures are painted, with an empty browser cache."""

from __future__ import annotations

from playwright.sync_api import Browser

from .serving import OURS, PEER

_SHOWN = {
    # Step time and GPU utilization; theirs has the latter in its overview, too.
    OURS: "document.querySelector('[data-testid=overview-gpu-utilization]')?.textContent",
    PEER: "document.body?.textContent.includes('GPU Utilization')",
}
_WATCH = """
sessionStorage.start ??= performance.timeOrigin;
new MutationObserver((_, observer) => {
  if (!(SHOWN)) return;
  observer.disconnect();
  requestAnimationFrame(() => {
    const painted = new MessageChannel();
    painted.port1.onmessage = () => (sessionStorage.shown = performance.timeOrigin + performance.now());
    painted.port2.postMessage(null);
  });
}).observe(document, { childList: true, subtree: true, characterData: true });
"""
CHARTS = "https://www.gstatic.com/charts/loader.js"
_NO_CHARTS = """
(() => {
  const nothing = () => new Proxy(function () {}, {
    get: (_, key) => (key === Symbol.toPrimitive ? () => 0 : nothing()), apply: nothing, construct: nothing,
  });
  window.google = { charts: { load() {}, setOnLoadCallback: (done) => setTimeout(done) }, visualization: nothing() };
})();
"""
"""Stands for the chart library that torch-tb-profiler loads from the web, without which it asks for no data: loads at
once and draws nothing, so that its figures below are without the time of its charts."""


def first_paint(browser: Browser, address: str, plugin: str, *, alone: bool) -> float:
    """Seconds until the figures of a tab are painted, in a browser that has seen nothing yet.

    Args:
        browser: a running Chromium.
        address: of TensorBoard.
        plugin: whose tab.
        alone: the plugin's own page; else within TensorBoard, which loads itself first.
    """
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    try:
        page = context.new_page()
        page.add_init_script(_WATCH.replace("SHOWN", _SHOWN[plugin]))
        page.route(CHARTS, lambda route: route.fulfill(status=200, content_type="text/javascript", body=_NO_CHARTS))
        page.goto(f"{address}/data/plugin_entry.html?name={plugin}" if alone else f"{address}/#{plugin}")
        page.wait_for_function("sessionStorage.shown", timeout=60_000)
        milliseconds: float = page.evaluate("sessionStorage.shown - sessionStorage.start")
        return milliseconds / 1000
    finally:
        context.close()
