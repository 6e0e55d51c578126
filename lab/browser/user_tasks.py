"""Ten questions of a user, each with what is clicked or pressed from Summary until the answer is on the screen.

An action is one click, one key or one typed word. By keyboard alone, Tab moves to what Enter then opens; `perform`
counts every Tab.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from playwright.sync_api import Locator, Page, expect

_WAIT_MS = 60_000
_MOST_TABS = 80


@dataclass(frozen=True)
class Click:
    """A click on the first element that a CSS selector finds."""

    on: str


@dataclass(frozen=True)
class Press:
    """One key, once what a CSS selector finds is there."""

    key: str
    once: str = "main h1"


@dataclass(frozen=True)
class Type:
    """A word, once the first element that a CSS selector finds has the focus."""

    word: str
    into: str


@dataclass(frozen=True)
class TabTo:
    """The Tab key, backwards with Shift, until the first element that a CSS selector finds has the focus."""

    to: str
    back: bool = False


Action = Click | Press | Type | TabTo


@dataclass(frozen=True)
class Shown:
    """The answer: the first element that a CSS selector finds holds a text that a regular expression finds."""

    at: str
    text: str


@dataclass(frozen=True)
class UserTask:
    """A question about ``run``, one of ``demo/recorded``. ``file`` is what a downloaded file must hold in addition."""

    name: str
    question: str
    run: str
    clicks: tuple[Action, ...]
    keys: tuple[Action, ...]
    answer: tuple[Shown, ...]
    file: str = ""


def _at(test_id: str) -> str:
    return f"[data-testid={test_id}]"


_CARD = _at("overview-findings")
_OPENS = Press("Enter")
_AMP_CANDIDATE = "resnet50/amp-fp16"

USER_TASKS = (
    UserTask(
        "backward_layer",
        "Which layer costs most in backward?",
        "resnet50/fp32",
        (Click(_at("place-explore")),),
        (Press("2"),),
        (Shown(f"{_at('ops-table')} tbody tr:has-text('backward')", r"layer2\.0\.conv1/conv2d.*backward.* ms"),),
    ),
    UserTask(
        "idle_gpu",
        "Why is the GPU idle?",
        "lenet/fp32",
        (Click(_at("place-explore")), Click(_at("nav-launches"))),
        (Press("g"), Press("l")),
        (
            Shown(_at("headline"), "The CPU sets the pace; .* mostly while the CPU launches work"),
            Shown(_at("launches-causes"), r"CPU launching work.*[\d.]+ %.*Python between ops.*[\d.]+ %"),
        ),
    ),
    UserTask(
        "amp_worth_it",
        "Is AMP worth it here, and what stops it?",
        "lenet/fp32",
        (Click(_at("finding-line-amp_will_not_pay")),),
        (Press("j"), Press("j"), _OPENS),
        (
            Shown(_CARD, r"Mixed precision would not pay: [\d.]+ ms a step instead of [\d.]+"),
            Shown(f"{_CARD} p:has-text('autocast')", "the CPU sets the pace"),
        ),
    ),
    UserTask(
        "slow_kernel",
        "Which kernel of this op is slow, and is it on Tensor Cores?",
        "resnet50/fp32",
        (Click(_at("place-explore")), Click(f"{_at('ops-table')} tbody button")),
        (Press("2"), Press("j", once=f"{_at('ops-table')} tbody button"), _OPENS),
        (
            Shown(f"{_at('op-detail')} p:has-text('Longest')", r"wgrad_alg0_engine, [\d.]+ ms"),
            Shown(f"{_at('op-detail')} div:has(> dt:has-text('Using TC'))", r"Using TC\s+no"),
            Shown(f"{_at('op-detail')} blockquote, {_at('op-detail')} :text('Time off them')", "TF32 is switched off"),
        ),
    ),
    UserTask(
        "changed",
        "What changed between these two runs?",
        "resnet50/fp32",
        (
            Click(_at("place-compare")),
            Click(_at("compare-candidate-run-picker")),
            Click(f"[data-testid=compare-candidate-run-picker-option][title^='{_AMP_CANDIDATE} ']"),
        ),
        (
            Press("5"),
            TabTo(_at("compare-candidate-run-picker"), back=True),
            _OPENS,
            Type(_AMP_CANDIDATE, _at("compare-candidate-run-picker-search")),
            _OPENS,
        ),
        (
            Shown(_at("compare-candidate-run-picker"), _AMP_CANDIDATE),
            Shown(_at("headline"), r"The candidate is [\d.]+ times as fast"),
            Shown(_at("bucket-other_compute"), r"Other kernels.*−[\d.]+ ms"),
        ),
    ),
    UserTask(
        "trust",
        "Can I trust this?",
        "lenet/fp32",
        (Click(f"{_at('trust')} summary"),),
        (TabTo(f"{_at('trust')} summary"), _OPENS),
        (
            Shown(f"{_at('trust')} summary", "Recording: poor"),
            Shown(f"{_at('trust')} ul", "it varies. Record more steps"),
        ),
    ),
    UserTask(
        "gain",
        "What would I gain, and how do I do it?",
        "resnet50/fp32",
        (Click("[data-testid^=finding-line-]"),),
        (Press("j"), _OPENS),
        (
            Shown(f"{_CARD} .finding", r"[\d.]+ ms a step \([\d.]+ %\).*between [\d.]+ ms and [\d.]+ ms"),
            Shown(f"{_CARD} pre", r"with torch\.autocast\("),
        ),
    ),
    UserTask(
        "op_type",
        "Which op type takes most, and where does it run on the timeline?",
        "resnet50/fp32",
        (
            Click(_at("place-explore")),
            Click(f"{_at('headline')} button"),
            Click(f"{_at('op-type-detail')} {_at('related-timeline')}"),
        ),
        (
            Press("g"),
            Press("x"),
            Press("j", once=f"{_at('op-types-table')} tbody button"),
            _OPENS,
            Press("g", once=_at("op-type-detail")),
            Press("t"),
        ),
        (
            Shown(_at("timeline-found"), r"conv2d: [\d,]+ events, [\d,]+ on the GPU taking \d+ ms"),
            Shown(f"{_at('timeline-figure')}[data-loaded=true]", ".*"),
        ),
    ),
    UserTask(
        "csv",
        "The table of ops as a CSV file",
        "resnet50/fp32",
        (Click(_at("place-explore")), Click(_at("csv-download"))),
        (Press("2"), TabTo(_at("csv-download")), _OPENS),
        (Shown(_at("ops-table"), r"layer2\.0\.conv1/conv2d"),),
        file="layer2.0.conv1/conv2d",
    ),
    UserTask(
        "fastest",
        "Which of my runs is fastest, for each model?",
        "resnet50/fp32",
        (Click(_at("place-compare")), Click(_at("nav-runs-models"))),
        (Press("g"), Press("u"), TabTo(_at("nav-runs-models"), back=True), _OPENS),
        (
            Shown("[data-testid='by-model-next'] div:has-text('ResNet50')", r"Keep AMP \w+, the fastest recorded"),
            Shown("[data-testid='by-model-next'] div:has-text('LeNet5')", r"Stay with \w+"),
        ),
    ),
)


def open_summary(page: Page, address: str, run: str) -> None:
    """Summary of a run, all of it there; ``address`` is that of the plugin's own page."""
    page.goto("about:blank")
    page.goto(f"{address}#tb_dlprof&p.tb_dlprof.run={run}")
    expect(page.get_by_test_id("overview-account")).to_be_visible(timeout=_WAIT_MS)
    expect(page.locator(f"{_CARD} li").first).to_be_visible()
    expect(page.locator("[aria-busy=true], .skeleton")).to_have_count(0, timeout=_WAIT_MS)


def perform(page: Page, task: UserTask, actions: Iterable[Action]) -> int:
    """Performs the actions and waits for the answer; returns how many clicks, keys and words it took.

    Raises:
        AssertionError: the answer is not in the window.
    """
    count = 0
    *before, last = actions
    for action in before:
        count += _do(page, action)
    if task.file:
        with page.expect_download(timeout=_WAIT_MS) as download:
            count += _do(page, last)
        saved = download.value.path().read_text()
        assert task.file in saved, f"{download.value.suggested_filename} holds no {task.file}"
    else:
        count += _do(page, last)
    for shown in task.answer:
        element = page.locator(shown.at).first
        expect(element).to_have_text(re.compile(shown.text, re.DOTALL), timeout=_WAIT_MS, use_inner_text=True)
        expect(element).to_be_in_viewport()
    return count


def _do(page: Page, action: Action) -> int:
    if isinstance(action, Click):
        page.locator(action.on).first.click(timeout=_WAIT_MS)
    elif isinstance(action, Press):
        page.locator(action.once).first.wait_for(state="attached", timeout=_WAIT_MS)
        page.keyboard.press(action.key)
    elif isinstance(action, Type):
        expect(page.locator(action.into).first).to_be_focused(timeout=_WAIT_MS)
        page.keyboard.type(action.word)
    else:
        return _tab_to(page, page.locator(action.to).first, "Shift+Tab" if action.back else "Tab")
    return 1


def _tab_to(page: Page, wanted: Locator, key: str) -> int:
    # The heading takes the focus when another page is there.
    page.locator("main h1").wait_for(state="attached", timeout=_WAIT_MS)
    wanted.wait_for(timeout=_WAIT_MS)
    for count in range(_MOST_TABS):
        if wanted.evaluate("element => element === document.activeElement"):
            return count
        page.keyboard.press(key)
    raise AssertionError(f"{_MOST_TABS} times {key} do not reach {wanted}")
