"""Runs in, what the routes answer about them out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from recorded_answers.product import Routes

Query = dict[str, str]
Asked = tuple[str, str, int, Any]
"""Route, query as text, HTTP status, decoded JSON."""

OF_ALL = ("runs", "many_runs", "by_model", "sweep")
OF_PAIRS = ("compare", "compare_op")
OF_PARTS = ("op", "related", "report", "forecast", "timeline_events", "timeline_event", "timeline_matches", "search")
NOT_ASKED = ("trace", "page_file")
"""A piece of a trace as it lies on the disk."""
HEAVY = ("overview", "advice", "tensor_cores")
"""Pages that need the advice, which takes seconds for a large run and another selection."""
REPORTS = (
    "summary", "detail", "iteration", "kernel", "tensor", "op_type", "group_node", "expert_systems", "averages", "api",
    "copies", "kernel_groups",
)  # fmt: skip
MEASURES = (
    "step_time", "samples_per_second", "gpu_utilization", "tensor_core_utilization", "tensor_core_share", "flops",
    "flops_rate", "memory", "launches",
)  # fmt: skip
FACTS = ("model", "precision", "batch_size", "gpu", "torch", "no such fact")
NARROW = {"first": "1", "last": "2"}
_EXAMPLES = 3


class Pages:
    """Asks the routes about the runs of one directory."""

    def __init__(self, routes: Routes, runs: Sequence[str], deep: bool) -> None:
        self._routes, self._runs, self._deep = routes, runs, deep
        self._plain = [n for n in routes.names if n not in (*OF_ALL, *OF_PAIRS, *OF_PARTS, *NOT_ASKED)]

    def _ask(self, route: str, query: Query) -> Asked:
        return (route, urlencode(sorted(query.items())), *self._routes.get(route, query))

    def about_all(self) -> Iterator[Asked]:
        """The list of runs, their table and figures over all of them."""
        queries: list[tuple[str, Query]] = [("runs", {}), ("many_runs", {}), ("by_model", {}), ("sweep", {})]
        if self._deep:
            queries += [("many_runs", {"base": self._runs[0]})]
            queries += [("sweep", {"measure": name}) for name in MEASURES]
            queries += [("sweep", {"over": name}) for name in FACTS]
            for direction in ("", "forward", "backward"):
                queries += [("sweep", {"measure": "share", "op": "conv2d", "direction": direction})]
            queries += [("sweep", {"measure": "share", "kernel_group": "copy"})]
        for route, query in queries:
            yield (route, urlencode(sorted(query.items())), *self._routes.settled(route, query))

    def about_run(self, run: str) -> Iterator[Asked]:
        """The pages of a run; those of its other ranks, sessions and cycles; its parts."""
        asked = {}
        for route in self._plain:
            one = self._ask(route, {"run": run})
            asked[route] = one[3] if one[2] == 200 else {}
            yield one
            yield from self._rest(route, {"run": run}, one[3])
        for route in self._plain:
            if self._deep or route not in HEAVY:
                yield self._ask(route, {"run": run, **NARROW})
        for name in REPORTS:
            one = self._ask("report", {"run": run, "name": name})
            yield one
            if self._deep:
                yield from self._rest("report", {"run": run, "name": name}, one[3])
                yield self._ask("report", {"run": run, "name": name, **NARROW})
        yield from self._other_profiles(run)
        yield from self._parts(run, asked)

    def about_pairs(self, pairs: Iterable[tuple[str, str]]) -> Iterator[Asked]:
        """The comparison of each pair, and of the first ops of it."""
        for base, candidate in pairs:
            sides = {"a.run": base, "b.run": candidate}
            one = self._ask("compare", sides)
            yield one
            for op in _rows(one[3], "ops")[:_EXAMPLES]:
                yield self._ask("compare_op", {**sides, "id": op["id"]})
            if self._deep:
                narrow = {f"{side}.{name}": value for side in "ab" for name, value in NARROW.items()}
                yield self._ask("compare", {**sides, **narrow})

    def _rest(self, route: str, query: Query, page: Any) -> Iterator[Asked]:
        """What follows the first part of a long table."""
        for table in ("rows", "ops", "runs"):
            shown = len(_rows(page, table))
            if shown and isinstance(total := page.get("total_rows"), int) and shown < total:
                yield self._ask(route, {**query, "offset": str(shown)})
                return

    def _other_profiles(self, run: str) -> Iterator[Asked]:
        entries = [entry for entry in _rows(self._routes.get("runs", {})[1], "runs") if entry.get("run") == run]
        for entry in entries:
            own = {"run": run, "session": str(entry["session"]), "rank": str(entry["rank"])}
            for cycle in entry["cycles"] if len(entries) > 1 or len(entry["cycles"]) > 1 else ():
                for route in self._plain:
                    if self._deep or route not in HEAVY or entry["rank"]:
                        yield self._ask(route, {**own, "cycle": str(cycle)})

    def _parts(self, run: str, pages: Mapping[str, Any]) -> Iterator[Asked]:
        one = {"run": run}
        ops, kernels = _rows(pages.get("ops"), "rows"), _rows(pages.get("kernels"), "rows")
        chosen = ops[:_EXAMPLES] if self._deep else ops[:1]
        for direction in ("forward", "backward"):
            chosen += [op for op in ops if op.get("direction") == direction][:1]
        ids = list(dict.fromkeys(op["id"] for op in chosen))
        yield from (self._ask("op", {**one, "id": op}) for op in [*ids, "no such op"])
        yield from (self._ask("op", {**one, "id": op, **NARROW}) for op in ids[:1])
        names = [kernel["id"] for kernel in kernels[: len(chosen)]]
        paths = [row.get("path") or "." for row in _rows(pages.get("modules"), "rows")[:_EXAMPLES]]
        for kind, subjects in (("op", ids), ("kernel", names), ("module", paths)):
            yield from (self._ask("related", {**one, "kind": kind, "id": subject}) for subject in subjects)
        yield from (self._ask("search", {**one, "text": text}) for text in ("conv", "add"))
        yield from (self._ask("memory", {**one, "device": device}) for device in ("cpu", "7"))
        yield from self._timeline(one, pages.get("timeline"), ids, names)
        for precision in ("tf32", "fp16", "bf16") if self._deep else ("bf16",):
            yield self._ask("forecast", {**one, "precision": precision})
        if self._deep:
            yield self._ask("forecast", {**one, "precision": "bf16", "batch_size": "64"})
            yield self._ask("forecast", {**one, "precision": "fp16", "gpu": "NVIDIA A100-SXM4-80GB"})
            for row in [node for node in _rows(pages.get("key_nodes"), "rows") if "key_node" in node][:1]:
                for route in ("ops", "launches", "timeline"):
                    yield self._ask(route, {**one, "key_node": row["key_node"]})
        yield self._ask("overview", {**one, "key_node": "no such op"})
        yield self._ask("ops", {**one, "first": "5000"})

    def _timeline(self, one: Query, page: Any, ops: Sequence[str], kernels: Sequence[str]) -> Iterator[Asked]:
        yield self._ask("timeline", {**one, "iteration": "1"})
        yield self._ask("timeline_events", {**one, "iteration": "1"})
        for table in ("longest_gaps", "longest_gpu", "longest_ops"):
            for row in _rows(page, table)[: _EXAMPLES if self._deep else 1]:
                index = str(page["iteration"]["index"])
                yield self._ask("timeline_event", {**one, "iteration": index, "id": row["spot"]["id"]})
        yield self._ask("timeline_matches", {**one, "iteration": "1", "text": "conv"})
        yield from (self._ask("timeline_matches", {**one, "iteration": "1", "op": op}) for op in ops[:1])
        yield from (self._ask("timeline_matches", {**one, "iteration": "1", "kernel": name}) for name in kernels[:1])


def _rows(page: Any, table: str) -> list[Any]:
    rows = page.get(table) if isinstance(page, dict) else None
    return rows if isinstance(rows, list) else []
