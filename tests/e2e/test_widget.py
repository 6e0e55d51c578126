"""The widget of a run: what anywidget sends to a notebook shows the pages there, as a notebook's page calls it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from support.tensorboard import PAGE_MS, RECORDED

from tb_dlprof_plugin import read_profiles

pytest.importorskip("anywidget")
_NOTEBOOK = """<!doctype html><div id="cell"></div><script type="module">
const state = STATE;
const source = new Blob([SOURCE], { type: "text/javascript" });
const module = await import(URL.createObjectURL(source));
const listeners = {};
const model = { get: (name) => state[name], on: (event, call) => { listeners[event] = call; } };
module.default.render({ model, el: document.getElementById("cell") });
window.resize = (height) => { state.height = height; listeners["change:height"](); };
</script>"""


def test_the_widget_shows_the_pages_and_follows_its_height(browser: Browser, tmp_path: Path) -> None:
    widget = read_profiles(RECORDED / "lenet/fp32")[0].widget(height=700)
    state = widget.get_state()
    shown = {name: state[name] for name in ("html", "height")}
    text = _NOTEBOOK.replace("SOURCE", _script(state["_esm"])).replace("STATE", _script(shown))
    (tmp_path / "notebook.html").write_text(text)
    page = browser.new_page(viewport={"width": 1440, "height": 1000})
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto((tmp_path / "notebook.html").as_uri())
    frame = page.frame_locator("iframe")
    expect(frame.get_by_test_id("headline")).to_be_visible(timeout=PAGE_MS)
    frame.get_by_test_id("place-explore").click()
    expect(frame.get_by_test_id("ops-table").get_by_role("row").nth(2)).to_be_visible()
    assert page.locator("iframe").get_attribute("sandbox") == "allow-scripts"
    page.evaluate("resize(500)")
    expect(page.locator("iframe")).to_have_css("height", "500px")
    assert errors == []
    page.close()


def _script(value: object) -> str:
    """A literal in a script of a page."""
    return json.dumps(value).replace("<", "\\u003c")


def test_without_anywidget_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anywidget", None)
    monkeypatch.delitem(sys.modules, "tb_dlprof_plugin.run_widget", raising=False)
    with pytest.raises(ModuleNotFoundError, match="pip install anywidget"):
        read_profiles(RECORDED / "lenet/fp32")[0].widget()
