"""From the click on a place of the header until the place is painted, each place having been shown before."""

from __future__ import annotations

from playwright.sync_api import Browser

PLACES = ("explore", "timeline", "memory", "compare", "summary")
_CHANGE = """
async (place) => {
  const button = document.querySelector(`[data-testid=place-${place}]`);
  const before = document.querySelector("main h1");
  const there = () => {
    const now = document.querySelector("main h1");
    return now !== null && now !== before && document.querySelector("main [aria-busy=true], main .skeleton") === null;
  };
  const started = performance.now();
  button.click();
  while (!there()) await new Promise((next) => requestAnimationFrame(next));
  await new Promise((painted) => requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = painted;
    channel.port2.postMessage(null);
  }));
  return performance.now() - started;
}
"""


def place_changes(browser: Browser, address: str, run: str, repeats: int) -> dict[str, list[float]]:
    """Milliseconds of ``repeats`` changes to each place, in their order; the first round is left out."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(f"{address}#tb_dlprof&p.tb_dlprof.run={run}")
    page.get_by_test_id("overview-account").wait_for(timeout=60_000)
    times: dict[str, list[float]] = {place: [] for place in PLACES}
    for round_ in range(repeats + 1):
        for place in PLACES:
            milliseconds = page.evaluate(_CHANGE, place)
            # What a place draws after its first picture must not burden the next change.
            page.wait_for_timeout(500 if round_ else 1_500)
            if round_:
                times[place].append(milliseconds)
    page.close()
    return times
