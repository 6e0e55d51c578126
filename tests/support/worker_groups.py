"""Which tests run in the same worker: those of a file, and those of several files that share what takes long to make.

xdist's own ``--dist loadgroup`` appends a group to the id of each test. Pytest 9.2 no longer reads what xdist 3.8 sets:
each test was a group by itself, and both workers made every fixture of a module.
"""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

SHARED = {
    "planted trainings": ("tests/lab/test_planted.py", "tests/docs/test_rule_pages.py"),
    "browser tests of many runs": (
        "tests/e2e/test_moving.py", "tests/e2e/test_timeline.py", "tests/e2e/test_user_tasks.py",
    ),
    "browser tests of few runs": (
        "tests/e2e/test_download.py", "tests/e2e/test_history.py", "tests/e2e/test_key_node.py",
        "tests/e2e/test_look.py", "tests/e2e/test_recorded_pages.py",
    ),
    "routes of a small logdir": (
        "tests/web/test_key_node.py", "tests/web/test_plan.py", "tests/web/test_plugin.py",
        "tests/web/test_refusals.py", "tests/web/test_runs.py",
    ),
}  # fmt: skip
BEGIN_FIRST = {
    "browser tests of few runs",
    "tests/e2e/test_notebook.py", "tests/e2e/test_pytorch_tab.py", "tests/e2e/test_colab.py", "tests/e2e/test_live.py",
    "tests/packaging/test_wheel.py", "tests/demo/test_scripts.py",
}  # fmt: skip
"""Files of few tests that take as long as many others, and long groups: if one of these came last, the other workers
would wait for it."""
_GROUP_OF = {path: group for group, paths in SHARED.items() for path in paths}
_OF_RECORDINGS = "tests/invariants/"


def group_of(test: str) -> str:
    """The group of a test by its id; tests of one recording are one group in all files of ``tests/invariants``."""
    path, _, rest = test.partition("::")
    recording = rest.partition("[")[2].removesuffix("]")
    if path.startswith(_OF_RECORDINGS) and recording:
        return f"recording {recording}"
    return _GROUP_OF.get(path, path)


class GroupScheduling(LoadScopeScheduling):
    """Hands out groups in the order of the collection: ``--dist loadscope --no-loadscope-reorder``."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)
