"""Ten questions of a user are answered within three clicks from Summary, and by keyboard alone.

What is then on the screen is readable for everybody. Summary itself has few words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from browser import agent_tasks
from browser.user_tasks import USER_TASKS, UserTask, open_summary, perform
from playwright.sync_api import Browser, BrowserContext, Page
from support.axe import add_axe, violations
from support.marks import long, short_of
from support.tensorboard import PAGE_MS, Server

MOST_CLICKS = 3
MOST_WORDS = 120
RUN_OF = {"memory": "gpt", "plan": "gpt", "energy": "gpt", "distributed": "two_ranks"}
"""Runs that have what a page shows."""
_WORDS = r"""() => {
  const found = [];
  const texts = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    if (text.parentElement.closest(".hidden, .chart") || !text.parentElement.checkVisibility()) continue;
    const range = document.createRange();
    for (const { 0: word, index } of text.data.matchAll(/\S+/g)) {
      range.setStart(text, index);
      range.setEnd(text, index + word.length);
      const { top, width } = range.getBoundingClientRect();
      if (/^[^\d]*\p{L}/u.test(word) && !/^(\/s|[nµm]?s|[KMG]?i?B|m?J|W)$/.test(word) && width > 0 && top < innerHeight)
        found.push(word);
    }
  }
  return found;
}"""
"""The words below the header that begin in the window; figures with their units are none, and neither is what
a chart has at its axes and lines."""


@pytest.fixture(scope="module")
def server(shared: Callable[[str], Server]) -> Server:
    """All recorded runs."""
    return shared("many")


@pytest.fixture(scope="module")
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A window as large as what TensorBoard's bar leaves of 1440 by 900, into which axe can be put."""
    opened = browser.new_context(
        viewport={"width": 1440, "height": 836}, color_scheme="light", reduced_motion="reduce", bypass_csp=True
    )
    yield opened
    opened.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    opened = context.new_page()
    yield opened
    opened.close()


def test_agents_have_the_same_tasks() -> None:
    assert [task.name for task in USER_TASKS] == list(agent_tasks.TASKS)


@pytest.mark.parametrize(
    "task",
    short_of(USER_TASKS, {"amp_worth_it"}, lambda task: task.name),
    ids=lambda task: task.name,
)
def test_a_question_is_answered_within_three_clicks(server: Server, page: Page, task: UserTask) -> None:
    open_summary(page, server.page_alone, task.run)
    assert perform(page, task, task.clicks) <= MOST_CLICKS
    add_axe(page)
    assert violations(page) == []


@pytest.mark.parametrize("task", short_of(USER_TASKS, {"fastest"}, lambda task: task.name), ids=lambda task: task.name)
def test_a_question_is_answered_by_keyboard_alone(server: Server, page: Page, task: UserTask) -> None:
    open_summary(page, server.page_alone, task.run)
    perform(page, task, task.keys)


@pytest.mark.parametrize("run", ["resnet50/fp32", *map(long, ("lenet/fp32", "alexnet/amp-fp16", "mlp/amp-fp16"))])
def test_the_first_screen_of_summary_has_few_words(server: Server, page: Page, run: str) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    open_summary(page, server.page_alone, run)
    words = page.evaluate(_WORDS)
    assert 40 < len(words) <= MOST_WORDS, " ".join(words)


@pytest.mark.parametrize(
    "address",
    short_of(
        [
            "advice",
            "reports",
            "tensor_cores",
            "modules",
            "ops",
            "op_types",
            "kernels",
            "launches",
            "roofline",
            "timeline",
            "compare",
            "memory",
            "plan",
            "energy",
            "distributed",
        ],
        {"advice", "compare", "memory", "distributed"},
    ),
)
def test_the_first_screen_of_a_page_has_few_words(server: Server, page: Page, address: str) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    pair = "p.tb_dlprof.a.run=resnet50/fp32&p.tb_dlprof.b.run=resnet50/amp-fp16"
    run = RUN_OF.get(address, "resnet50/fp32")
    page.goto(f"{server.page_alone}#tb_dlprof&p.tb_dlprof.page={address}&p.tb_dlprof.run={run}&{pair}")
    page.locator("main h1").wait_for(state="attached", timeout=PAGE_MS)
    page.wait_for_function("() => document.querySelector('[aria-busy=\"true\"], .skeleton') === null", timeout=PAGE_MS)
    words = page.evaluate(_WORDS)
    assert 20 < len(words) <= MOST_WORDS, " ".join(words)
    if address == "compare":
        assert page.evaluate("document.documentElement.scrollHeight") <= 2 * 900
