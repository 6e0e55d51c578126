"""The table of routes: each can be loaded, its parts fit together, and starting TensorBoard loads none of them."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from typing import get_type_hints

import msgspec
import pytest

from tb_dlprof_plugin.web.queries import RangeQuery
from tb_dlprof_plugin.web.routes import ROUTES, Route

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("route", ROUTES.values(), ids=lambda route: route.name)
def test_the_query_is_what_the_handler_takes_and_the_page_what_it_answers(route: Route) -> None:
    query = route.load_query()
    answers = []
    if route.handler:
        hints = get_type_hints(route.load_handler())
        answers.append(hints.pop("return"))
        assert issubclass(query, hints["query"]), "the handler takes another query"
    if route.page:
        page = route.load_page()
        answers.append(get_type_hints(page)["return"])
        assert issubclass(query, RangeQuery)
        required = [one for one in inspect.signature(page).parameters.values() if one.default is one.empty]
        assert len(required) == 3, "a page is made of a view, a reference and a selection"
    assert len(set(answers)) == 1
    assert issubclass(answers[0], msgspec.Struct | bytes)


LOADED = """
import sys
from tensorboard.plugins import base_plugin
import tb_dlprof_plugin.loader
context = base_plugin.TBContext(data_provider=None, logdir="")
plugin = tb_dlprof_plugin.loader.Loader().load(context)
assert "/overview" in plugin.get_plugin_apps()
print(*sorted(name for name in sys.modules if name.startswith("tb_dlprof_plugin") or name == "msgspec"))
"""


def test_the_plugin_starts_without_pages_queries_or_profiles() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [
        "tb_dlprof_plugin",
        "tb_dlprof_plugin.loader",
        "tb_dlprof_plugin.plugin",
        "tb_dlprof_plugin.store",
        "tb_dlprof_plugin.store.tags",
        "tb_dlprof_plugin.version",
        "tb_dlprof_plugin.web",
        "tb_dlprof_plugin.web.bundle",
        "tb_dlprof_plugin.web.routes",
    ]
