"""Links and headings of Markdown pages."""

from __future__ import annotations

import re

_LINK_OR_CODE = re.compile(r"```.*?```|`[^`\n]*`|\[(?:`[^`\n]*`|[^\]`])*\]\(([^)\s]+)\)", re.DOTALL)
_HEADING = re.compile(r"^#+ (.+?) *$", re.MULTILINE)


def links(text: str) -> set[str]:
    """Targets of a page's links within the repository, with their anchors; code has none."""
    return {target for target in _LINK_OR_CODE.findall(text) if target and not re.match(r"[a-z]+:", target)}


def anchors(text: str) -> set[str]:
    """Anchors of a page's headings, as GitHub and the site make them."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    titles = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title) for title in _HEADING.findall(text)]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
