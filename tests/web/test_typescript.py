"""The structs of the pages as TypeScript."""

from __future__ import annotations

import msgspec
import pytest

from tb_dlprof_plugin.web import typescript


def test_every_page_becomes_an_interface_with_its_docstring() -> None:
    text = typescript.render()
    for page in typescript.answers().values():
        assert f"export interface {page.__name__} {{" in text
    assert "`bars_note` explains `iterations` if each covers\n * several.\n */\nexport interface WorkDetail {" in text


def test_none_becomes_null_and_named_literals_keep_their_name() -> None:
    text = typescript.render()
    assert "  gpu_ns: number | null;" in text
    assert "  category_ns: (number | null)[];" in text
    assert 'export type Verdict = "yes" | "no" | "unknown";' in text
    assert "  using_tc: Verdict;" in text


def test_a_type_that_json_cannot_carry_is_refused() -> None:
    class Odd(msgspec.Struct):
        value: set[bytes]

    with pytest.raises(TypeError, match="no TypeScript type"):
        typescript._interface(Odd, {})
