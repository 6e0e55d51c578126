"""The string table gives each text one index."""

from __future__ import annotations

from tb_dlprof_plugin.model.string_table import StringTable


def test_index_0_is_empty_and_a_text_keeps_its_index() -> None:
    table = StringTable()
    assert [table.add(text) for text in ("", "a", "b", "a")] == [0, 1, 2, 1]
    assert table.values == ["", "a", "b"]


def test_a_table_over_a_list_goes_on_filling_it_and_the_first_of_equal_texts_counts() -> None:
    values = ["", "a", "b", "a"]
    table = StringTable.over(values)
    assert [table.add(text) for text in ("a", "c")] == [1, 4]
    assert values == ["", "a", "b", "a", "c"]
