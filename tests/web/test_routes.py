"""The table of routes: each can be loaded, its parts fit together, and starting TensorBoard loads none of them."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from string import Formatter
from typing import get_type_hints

import msgspec
import pytest

from tb_dlprof_plugin.model.request import request_fields
from tb_dlprof_plugin.web.routes import PAGES, ROUTES, Route

OPENED = {
    "AnyQuery": {"runs", "recorded", "failed", "total"},
    "ProfileQuery": {"runs", "view", "ref", "job", "facts", "numbers"},
    "RangeQuery": {"view", "ref", "selection"},
    "CompareQuery": {"a", "b"},
}
"""What `OpenRuns.given` opens."""
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("route", ROUTES.values(), ids=lambda route: route.name)
def test_what_a_page_takes_is_opened_or_an_option_of_its_query(route: Route) -> None:
    query, page = route.load_query(), route.load_page()
    taken = {one.name for one in inspect.signature(page).parameters.values() if one.default is one.empty}
    if route in PAGES.values():
        assert taken == {"view", "ref", "selection"}
    assert taken - {"request", *(item.name for item in request_fields(query))} <= OPENED[route.query]
    assert issubclass(get_type_hints(page)["return"], msgspec.Struct | bytes)


def test_the_sentence_about_what_is_lacking_names_parameters_of_the_query() -> None:
    for route in ROUTES.values():
        names = {name.partition(".")[0] for _, name, *_ in Formatter().parse(route.lacks) if name}
        assert names - {"0"} <= {item.name for item in request_fields(route.load_query())}, route.name


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
        "tb_dlprof_plugin.model",
        "tb_dlprof_plugin.model.lazy_imports",
        "tb_dlprof_plugin.plugin",
        "tb_dlprof_plugin.store",
        "tb_dlprof_plugin.store.tags",
        "tb_dlprof_plugin.version",
        "tb_dlprof_plugin.web",
        "tb_dlprof_plugin.web.apps",
        "tb_dlprof_plugin.web.bundle",
        "tb_dlprof_plugin.web.routes",
    ]
