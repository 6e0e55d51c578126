"""The Advice page over a recorded run: prices, findings set aside in the address, evidence that leads to its op."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from support.recorded_runs import recorded_view
from support.tensorboard import RECORDED, Server, Watched

from tb_dlprof_plugin.advice.finding import FindingItem
from tb_dlprof_plugin.pages.advice import AdvicePage, advice_page
from tb_dlprof_plugin.store.run_ref import RunRef

FP32, AMP = "vgg16/fp32", "vgg16/amp-fp16"
_PAGE_MS = 30_000


@pytest.fixture(scope="module")
def server(shared: Callable[[str, str], Server], load_fast: str) -> Server:
    return shared("few", load_fast)


def analysed(*set_aside: str) -> AdvicePage:
    frame = recorded_view(RECORDED / FP32)
    return advice_page(frame, RunRef(FP32, "", 0, 0), frame.selection(), set_aside)


def tab(watched: Watched, address: str) -> Page:
    watched.page.goto(address)
    expect(watched.page.get_by_test_id("headline")).to_be_visible(timeout=_PAGE_MS)
    return watched.page


def advice_tab(server: Server, watched: Watched) -> Page:
    return tab(watched, f"{server.page_alone}#tb_dlprof&p.tb_dlprof.page=advice&p.tb_dlprof.run={FP32}")


def shown(frame: Page) -> list[str]:
    """Ids of the elements of all cards, in their order."""
    ids: list[str] = frame.locator("article.finding").evaluate_all("cards => cards.map(card => card.dataset.testid)")
    return [name.removeprefix("finding-") for name in ids]


def with_op(page: AdvicePage) -> FindingItem:
    return next(one for one in page.findings if one.saving and one.evidence and one.evidence[0].page == "ops")


def test_the_page_shows_what_the_analysis_finds_by_its_price(server: Server, watched: Watched) -> None:
    expected = analysed()
    frame = advice_tab(server, watched)
    expect(frame.get_by_test_id("headline")).to_have_text(expected.headline)
    assert shown(frame) == [finding.rule for finding in expected.findings]
    assert expected.combined is not None
    together = frame.get_by_test_id("together-saving")
    expect(together).to_have_attribute("data-value", str(expected.combined.expected_ns))
    expect(together).to_contain_text(expected.combined_text)
    for finding in expected.findings:
        if finding.saving is not None:
            price = frame.get_by_test_id(f"finding-{finding.rule}").locator("strong.price-amount")
            expect(price).to_have_attribute("title", f"{finding.saving.expected_ns:,} ns")
    assert (watched.errors, watched.foreign) == ([], [])


def test_a_dismissed_finding_stays_dismissed_for_whoever_gets_the_address(server: Server, watched: Watched) -> None:
    first = analysed().findings[0]
    expected = analysed(first.rule)
    frame = advice_tab(server, watched)
    frame.get_by_test_id(f"finding-{first.rule}").get_by_test_id("finding-dismiss").click()
    notice = frame.get_by_test_id("finding-notice")
    expect(notice).to_contain_text(first.title)
    expect(notice.get_by_role("button", name="Undo")).to_be_focused()
    expect(frame.get_by_test_id("headline")).to_have_text(expected.headline, timeout=_PAGE_MS)
    address = watched.page.url
    assert f"p.tb_dlprof.dismissed={first.rule}" in address

    # WHEN another browser opens the address THEN it has the same page
    browser = watched.page.context.browser
    assert browser is not None
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    other = Watched(context.new_page())
    there = tab(other, address)
    expect(there.get_by_test_id("headline")).to_have_text(expected.headline)
    assert shown(there) == [finding.rule for finding in expected.findings if finding.rule != first.rule]
    expect(there.get_by_test_id("finding-notice")).to_have_count(0)

    # WHEN it is taken back there THEN all is as before
    dismissed = there.get_by_test_id("dismissed-findings")
    expect(dismissed.locator("summary")).to_have_text("1 dismissed")
    dismissed.locator("summary").click()
    there.get_by_test_id(f"dismissed-{first.rule}").get_by_role("button").click()
    expect(there.get_by_test_id(f"finding-{first.rule}")).to_be_focused()
    expect(there.get_by_test_id("headline")).to_have_text(analysed().headline, timeout=_PAGE_MS)
    assert "dismissed" not in other.page.url
    context.close()
    assert (watched.errors, watched.foreign) == ([], [])


def test_evidence_leads_to_its_op_by_keyboard(server: Server, watched: Watched) -> None:
    finding = with_op(analysed())
    frame = advice_tab(server, watched)
    card = frame.get_by_test_id(f"finding-{finding.rule}")
    details = card.get_by_test_id("finding-details")
    if details.get_attribute("aria-expanded") == "false":
        details.focus()
        watched.page.keyboard.press("Enter")
    expect(details).to_have_attribute("aria-expanded", "true")
    expect(card).to_contain_text(finding.saving.derivation if finding.saving else "")
    link = card.locator(".evidence").get_by_role("button").first
    expect(link).to_have_text(finding.evidence[0].label)
    link.focus()
    watched.page.keyboard.press("Enter")
    expect(frame.get_by_test_id("op-detail")).to_be_visible(timeout=_PAGE_MS)
    assert f"p.tb_dlprof.op={finding.evidence[0].id}" in watched.page.url
    assert (watched.errors, watched.foreign) == ([], [])


def test_a_finding_leads_to_what_became_of_its_saving(server: Server, watched: Watched) -> None:
    frame = advice_tab(server, watched)
    card = frame.get_by_test_id("finding-amp_not_used")
    details = card.get_by_test_id("finding-details")
    if details.get_attribute("aria-expanded") == "false":
        details.click()
    card.get_by_test_id("other-runs").get_by_role("button", name=AMP).click()
    expect(frame.get_by_test_id("promised-amp_not_used")).to_contain_text("Predicted: ", timeout=_PAGE_MS)
    assert (watched.errors, watched.foreign) == ([], [])
