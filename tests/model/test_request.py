"""A request is declared once: keywords of Python, options of commands and queries of routes follow from it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, get_args

import pytest
import typer
from typer.testing import CliRunner

from tb_dlprof_plugin.cli.request_options import takes_requests
from tb_dlprof_plugin.model.plan_request import OptimizerName, PlanRequest
from tb_dlprof_plugin.model.request import (
    InvalidOption,
    Option,
    Request,
    arguments_of,
    byte_count,
    counts_by_name,
    keywords_of,
    names,
    request_fields,
)
from tb_dlprof_plugin.planning.memory.rewrite_optimizer import OPTIMIZER_WORK, OPTIMIZERS
from tb_dlprof_plugin.web.queries import RangeQuery, query_of, read_query


@dataclass(frozen=True, kw_only=True)
class Cake(Request):
    """Another cake."""

    layers: Annotated[int, Option("How many.")] = 1
    cream: Annotated[Literal["light", "dark"] | None, Option("Which.")] = None
    glazed: Annotated[bool | None, Option("Whether.")] = None
    fruits: Annotated[Sequence[str], Option("Which.", read=names)] = ()
    candles: Annotated[Mapping[str, int], Option("How many.", read=counts_by_name, repeats=True)] = field(
        default_factory=dict
    )
    box_bytes: Annotated[int | None, Option("Its size.", read=byte_count, flag="box")] = None


ANY = Cake(layers=3, cream="dark", glazed=False, fruits=("fig", "plum"), candles={"a": 1, "b": 2}, box_bytes=2**30)
OPTIONS = "--layers 3 --cream dark --no-glazed --fruits fig,plum --candles a=1 --candles b=2 --box 1GiB"


def from_command(*arguments: str) -> tuple[Cake | None, str]:
    """What the command is called with, and what it prints."""
    made: list[Cake] = []
    app = typer.Typer()

    @takes_requests
    def bake(request: Cake) -> None:
        """Bake."""
        made.append(request)

    app.command()(bake)
    done = CliRunner().invoke(app, list(arguments))
    return (made[0] if made else None), done.output


def test_a_command_has_an_option_for_each_field() -> None:
    assert from_command(*OPTIONS.split())[0] == ANY
    assert from_command()[0] == Cake()
    text = from_command("--help")[1]
    assert all(f"--{item.flag}" in text for item in request_fields(Cake))


def test_a_query_has_a_parameter_for_each_field() -> None:
    def bake(view: object, request: Cake, oven: Annotated[int, Option("Which.")] = 1) -> tuple[Cake, int]:
        return request, oven

    query = query_of("bake", bake, RangeQuery)
    texts = {"layers": "3", "cream": "dark", "glazed": "false", "fruits": "fig,plum", "candles": "a=1,b=2"}
    read = read_query(query, {"run": "r", **texts, "box_bytes": "1GiB", "oven": "2"})
    assert bake(None, **arguments_of(bake, read)) == (ANY, 2)
    assert bake(None, **arguments_of(bake, read_query(query, {"run": "r"}))) == (Cake(), 1)


def test_a_method_has_a_documented_keyword_for_each_field() -> None:
    class Oven:
        @keywords_of(Cake)
        def bake(self, request: Cake) -> Cake:
            """Bakes.

            Raises:
                ValueError: it burns.
            """
            return request

    assert Oven().bake(layers=2, fruits=["fig"]) == Cake(layers=2, fruits=("fig",))
    assert [*inspect.signature(Oven.bake).parameters] == ["self", *(item.name for item in request_fields(Cake))]
    assert "    glazed: Whether.\n" in (Oven.bake.__doc__ or "")
    assert (Oven.bake.__doc__ or "").endswith("it burns.")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--candles", "a"), "--candles takes NAME=N, not 'a'."),
        (("--box", "12"), "--box takes a size with its unit, such as 24GiB or 80GB, not '12'."),
    ],
)
def test_a_text_of_another_form_is_one_sentence_with_the_name_of_the_option(
    arguments: tuple[str, ...], sentence: str
) -> None:
    made, text = from_command(*arguments)
    assert made is None
    assert sentence in text
    with pytest.raises(InvalidOption, match="box_bytes takes a size"):
        Cake(box_bytes="12")  # type: ignore[arg-type]


def test_the_planner_has_all_optimizers_that_can_be_asked_for() -> None:
    assert set(get_args(OptimizerName)) == set(OPTIMIZERS) == set(OPTIMIZER_WORK)


def test_every_option_of_the_plan_has_a_sentence() -> None:
    assert all(item.option.help.endswith(".") for item in request_fields(PlanRequest))
