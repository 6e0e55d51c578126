"""Values that are kept: each is made once for all who ask, and all together weigh no more than they may."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tb_dlprof_plugin.store.last_used import LastUsed


class TestMaking:
    def test_threads_that_ask_together_get_one_value(self) -> None:
        values: LastUsed[object] = LastUsed(10)
        made, asked = [], threading.Barrier(8)

        def make() -> object:
            # The others ask meanwhile.
            asked.wait(timeout=10)
            made.append(object())
            return made[-1]

        def ask(_: int) -> object:
            if _:
                asked.wait(timeout=10)
            return values.get("key", make)

        with ThreadPoolExecutor(8) as pool:
            found = set(pool.map(ask, range(8)))
        assert found == set(made)
        assert len(made) == 1

    def test_an_error_is_everybodys_and_is_not_kept(self) -> None:
        values: LastUsed[int] = LastUsed(10)

        def fail() -> int:
            raise ValueError("no")

        for _ in range(2):
            with pytest.raises(ValueError, match="no"):
                values.get("key", fail)
        assert values.get("key", lambda: 3) == 3

    def test_what_is_not_to_be_kept_is_made_again(self) -> None:
        values: LastUsed[int] = LastUsed(10)
        made = iter(range(5))
        assert [values.get("key", lambda: next(made), lambda value: value == 1) for _ in range(4)] == [0, 1, 1, 1]


class TestWeight:
    def test_those_used_longest_ago_make_room(self) -> None:
        values: LastUsed[str] = LastUsed(10, len)
        values.keep("a", "xxxx")
        values.keep("b", "xxxx")
        assert values.known("a") == "xxxx"
        values.keep("c", "xxxx")
        assert [values.known(key) for key in "abc"] == ["xxxx", None, "xxxx"]

    def test_a_value_in_the_place_of_another_weighs_alone(self) -> None:
        values: LastUsed[str] = LastUsed(10, len)
        for _ in range(20):
            values.keep("a", "x" * 9)
        values.keep("b", "x")
        assert (values.known("a"), values.known("b")) == ("x" * 9, "x")

    def test_one_that_weighs_too_much_is_not_kept_and_takes_none_with_it_for_good(self) -> None:
        values: LastUsed[str] = LastUsed(10, len)
        assert values.get("large", lambda: "x" * 11) == "x" * 11
        assert values.known("large") is None
        values.keep("a", "x" * 10)
        assert values.known("a") == "x" * 10
