"""The Memory page of a recording with memory events: the view's figures, the other device, one iteration."""

from __future__ import annotations

from collections.abc import Callable

from e2e.conftest import MEMORY_TRACE
from playwright.sync_api import expect
from support.tensorboard import Server, Watched, holding

from tb_dlprof_plugin.analysis import analyze_trace
from tb_dlprof_plugin.pages.memory import memory_page
from tb_dlprof_plugin.pages.sentences import text_of
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.run_ref import RunRef

_PAGE_MS = 30_000


def test_the_memory_page_shows_what_its_view_holds(
    shared: Callable[[str, str], Server], load_fast: str, watched: Watched
) -> None:
    profile = analyze_trace(MEMORY_TRACE)
    expected = memory_page(ProfileView(profile), RunRef("resnet18", "", 0, 0), ProfileView(profile).selection())
    assert expected.figures is not None
    frame = watched.page
    frame.goto(f"{shared('many', load_fast).page_alone}#tb_dlprof&p.tb_dlprof.page=memory&p.tb_dlprof.run=resnet18")

    expect(frame.get_by_test_id("headline")).to_have_text(expected.headline, timeout=_PAGE_MS)
    peak = str(expected.figures.peak_allocated_bytes)
    expect(frame.get_by_test_id("memory-peak")).to_have_attribute("data-value", peak)
    expect(frame.get_by_test_id("memory-curve").locator("canvas")).to_be_visible(timeout=_PAGE_MS)
    expect(frame.get_by_test_id("memory-modules").locator("tbody tr").nth(1)).to_contain_text(expected.modules[1].name)
    words = frame.get_by_test_id("memory-peak-words")
    expect(words).to_have_text(text_of(expected.peak_parts))
    assert [part.text for part in expected.peak_parts if part.kind] == words.get_by_role("button").all_inner_texts()
    # The exact bytes of a moment stand in the tooltip.
    frame.get_by_test_id("memory-curve").locator("canvas").hover()
    expect(frame.get_by_test_id("memory-curve")).to_contain_text("Allocated")
    expect(frame.get_by_test_id("memory-curve")).to_contain_text(" bytes")

    frame.get_by_test_id("memory-iterations").locator("tbody button").nth(1).click()
    expect(frame.get_by_test_id("headline")).to_contain_text("in iteration 4")
    frame.get_by_test_id("memory-device-picker").select_option("cpu")
    expect(frame.get_by_test_id("headline")).to_contain_text("CPU holds at most")
    expect(watched.page).to_have_url(holding("p.tb_dlprof.device=cpu"))
    assert (watched.errors, watched.foreign) == ([], [])
