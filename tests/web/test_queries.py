"""Parameters of a request: typed, or refused in one sentence."""

from __future__ import annotations

import pytest

from tb_dlprof_plugin.web import queries as q
from tb_dlprof_plugin.web.errors import RequestError
from tb_dlprof_plugin.web.queries import read_query
from tb_dlprof_plugin.web.routes import ROUTES

SWEEP, ENERGY, WORK_DETAIL, COMPARE_OP, SEARCH = (
    ROUTES[name].load_query() for name in ("sweep", "energy", "work_detail", "compare_op", "search")
)


@pytest.mark.parametrize(
    ("query", "args", "expected"),
    [
        (q.RangeQuery, {"run": "a", "first": "0", "last": "007"}, q.RangeQuery(run="a", first=0, last=7)),
        (
            q.RangeQuery,
            {"run": "", "first": "", "key_node": "", "else": "x", "offset": "3"},
            q.RangeQuery(run="", offset=3),
        ),
        (q.ProfileQuery, {"run": "a", "first": "x", "key_node": "y" * 9_000}, q.ProfileQuery(run="a")),
        (SWEEP, {"measure": "", "over": "gpu"}, SWEEP(over="gpu")),
        (
            COMPARE_OP,
            {"a.run": "x", "b.run": "y", "b.cycle": "2", "id": "op", "run": "z"},
            COMPARE_OP(a=q.RangeQuery(run="x"), b=q.RangeQuery(run="y", cycle=2), id="op"),
        ),
        (ENERGY, {"run": "a", "price_per_kwh": "0.25"}, ENERGY(run="a", price_per_kwh=0.25)),
        (WORK_DETAIL, {"run": "a", "kind": "op", "id": ""}, WORK_DETAIL(run="a", kind="op", id="")),
    ],
)
def test_parameters_are_converted_and_unknown_ones_passed_over(query, args, expected) -> None:
    assert read_query(query, args) == expected


@pytest.mark.parametrize(
    ("query", "args", "sentence"),
    [
        (q.RangeQuery, {}, "The request lacks the parameter 'run'."),
        (q.CompareQuery, {"a.run": "x", "run": "y"}, "The request lacks the parameter 'run'."),
        (q.CompareQuery, {"a.run": "x", "b.run": "y", "b.last": "-1"}, "'last' must be a whole number, not '-1'."),
        (WORK_DETAIL, {"run": "a", "kind": "op"}, "The request lacks the parameter 'id'."),
        (SEARCH, {"run": "a", "text": "x" * 4001}, "'text' has 4001 characters; 4000 are the most."),
        (
            WORK_DETAIL,
            {"run": "a", "kind": "x", "id": "y"},
            "'kind' must be op, op_type, kernel or module, not 'x'.",
        ),
        *(
            (ENERGY, {"run": "a", "co2_per_kwh": text}, f"must be a number such as 0.25, not {text!r}.")
            for text in ("x", "-1", "1e3", "nan", "1.", "0,25", "٣.5", "9" * 19)
        ),
        *(
            (q.AnyQuery, {"offset": text}, f"The parameter 'offset' must be a whole number, not {text!r}.")
            for text in ("1.0", "1e3", "null", " 1", "+1", "٣", "9" * 19)
        ),
    ],
)
def test_what_cannot_be_read_is_one_sentence(query, args, sentence: str) -> None:
    with pytest.raises(RequestError) as found:
        read_query(query, args)
    assert found.value.status == 400
    assert str(found.value).endswith(sentence)
