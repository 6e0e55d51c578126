"""The routes that lead through the page, over both loaders."""

from __future__ import annotations

from tb_dlprof_plugin.profile_view import ProfileView


def test_search_and_what_belongs_to_a_hit(server, profiles) -> None:
    status, page = server.page("search", run="fp32", text="conv1")
    assert status == 200
    op = next(hit for hit in page["hits"] if hit["kind"] == "op")
    assert op["id"] in ProfileView(profiles["fp32"]).groups.ids
    status, found = server.page("related", run="fp32", kind="op", id=op["id"])
    assert (status, found["ops"]) == (200, [op["id"]])


def test_what_cannot_be_searched_says_so_in_a_sentence(server) -> None:
    assert server.page("related", run="fp32", kind="op", id="gone") == (404, {"error": "Run 'fp32' has no op 'gone'."})
    status, page = server.page("related", run="fp32", kind="thing", id="x")
    assert (status, page["error"]) == (400, "The parameter 'kind' must be op, op_type, kernel or module, not 'thing'.")
    assert server.page("search", run="gone", text="x")[0] == 404
    assert server.page("search", run="fp32", text="x" * 5_000)[0] == 400
