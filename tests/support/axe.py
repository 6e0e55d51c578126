"""axe-core, the npm package, in a page: rules of WCAG 2.2 and best practices. Even a minor finding fails."""

from __future__ import annotations

from playwright.sync_api import Page
from support.tensorboard import ROOT

AXE = ROOT / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
_THEME_MS = 30_000


def add_axe(page: Page) -> None:
    """Puts axe into a page, whose context bypasses the security policy, where it is not there yet."""
    assert AXE.is_file(), "axe-core is missing: run npm ci in frontend"
    if page.evaluate("window.axe === undefined"):
        page.add_script_tag(path=AXE)


def violations(page: Page) -> list[str]:
    """What axe finds in both themes, as "rule: element: message"; the dark one differs in its colours only."""
    found: list[str] = []
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        page.wait_for_selector(f"html[data-theme={theme}]", state="attached", timeout=_THEME_MS)
        rules = (
            "{runOnly: ['color-contrast'], resultTypes: ['violations']}"
            if theme == "dark"
            else "{resultTypes: ['violations']}"
        )
        # The rows of a table are alike.
        result = page.evaluate(f"axe.run({{exclude: ['tbody tr:nth-child(n + 4)']}}, {rules})")
        for violation in result["violations"]:
            for node in violation["nodes"]:
                rule = f"{theme}: {violation['id']} ({violation['impact']})"
                found.append(f"{rule}: {node['html'][:160]}: {node['failureSummary']}")
    page.emulate_media(color_scheme="light")
    return found
