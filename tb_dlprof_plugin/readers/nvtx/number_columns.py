"""Finds the numbers in PyTorch's texts as columns: "aten::mm, seq = 5, op_id = 7, sizes = [...], input_op_ids = [...]".

It works on the bytes of all texts together. What has another form is left to the expressions of `emit_nvtx`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_dlprof_plugin.model.profile import Bools
from tb_dlprof_plugin.model.timeline import Ints

_SEQ, _OP_ID, _INPUTS = b", seq = ", b", op_id = ", b", input_op_ids = "
_NEWLINE, _COMMA, _SPACE, _MINUS, _ZERO = b"\n, -0"
_MOST_DIGITS = 18
_PADDING = 32

_Bytes = npt.NDArray[np.uint8]


class CutTexts(NamedTuple):
    """Sequence number and op_id of each text, -1 for none. The texts ``cut`` have the one or the other: without their
    numbers and what follows their sizes they are text[:name_stop] + text[rest_start:rest_stop], a row for each of
    ``cut``. ``unusual`` texts may have numbers in another form."""

    sequence_number: Ints
    op_id: Ints
    name_stop: Ints
    rest_start: Ints
    rest_stop: Ints
    cut: Ints
    unusual: Ints


def cut_numbers(joined: str, count: int) -> CutTexts:
    """The numbers in ``count`` texts of ASCII, joined by newlines."""
    data = np.frombuffer(joined.encode("ascii") + b"\n" * _PADDING, dtype=np.uint8)
    stop = np.flatnonzero(data == _NEWLINE)[:count]
    start = np.concatenate(([0], stop[:-1] + 1)) if count else stop
    commas = np.flatnonzero(data == _COMMA)
    comma = _first_from(commas, start, stop)
    has_seq = _is_at(data, comma, _SEQ)
    sequence, after = _number(data, comma + len(_SEQ), has_seq)
    place = np.where(has_seq, after, comma)
    has_op = _is_at(data, place, _OP_ID)
    op_id, after = _number(data, place + len(_OP_ID), has_op, signed=False)
    place = np.where(has_op, after, place)
    bad = (has_seq & (sequence == _BAD)) | (has_op & (op_id == _BAD))
    usual = (has_seq | has_op) & ~bad & (comma > start) & ((data[place] == _COMMA) | (place == stop))
    inputs = commas[data[commas + 2] == _INPUTS[2]] if len(commas) else commas
    inputs = inputs[_is_at(data, inputs, _INPUTS)]
    rest_stop = _first_from(inputs, place, stop)
    cut = np.flatnonzero(usual)
    # Of another form: "name, seq=5", or a number with too many digits.
    unusual = ~usual & (comma < stop) & ((data[comma + 1] == ord("s")) | (data[comma + 2] == ord("s")) | bad | has_op)
    return CutTexts(
        np.where(usual & has_seq, sequence, -1),
        np.where(usual & has_op, op_id, -1),
        (comma - start)[cut],
        (place - start)[cut],
        (rest_stop - start)[cut],
        cut,
        np.flatnonzero(unusual),
    )


_BAD = -(2**62)


def _first_from(places: Ints, start: Ints, stop: Ints) -> Ints:
    """The first of the sorted places from ``start`` on, ``stop`` where it is beyond."""
    if not len(places):
        return stop.copy()
    at = np.searchsorted(places, start)
    found = places[np.minimum(at, len(places) - 1)]
    return np.where((at < len(places)) & (found < stop), found, stop)


def _is_at(data: _Bytes, place: Ints, word: bytes) -> Bools:
    result = np.ones(len(place), dtype=np.bool_)
    for offset, byte in enumerate(word):
        result &= data[np.minimum(place + offset, len(data) - 1)] == byte
    return result


def _number(data: _Bytes, place: Ints, wanted: Bools, signed: bool = True) -> tuple[Ints, Ints]:
    """The number at each place and where it ends; `_BAD` for none, or more digits than an int64 holds."""
    place = np.minimum(place, len(data) - _PADDING // 2)
    negative = (data[place] == _MINUS) & signed
    place = place + negative
    value = np.zeros(len(place), dtype=np.int64)
    active, digits = wanted.copy(), 0
    none = np.ones(len(place), dtype=np.bool_)
    while active.any() and digits <= _MOST_DIGITS:
        byte = data[np.minimum(place, len(data) - 1)]
        active &= (byte >= _ZERO) & (byte <= _ZERO + 9)
        value = np.where(active & (digits < _MOST_DIGITS), value * 10 + byte - _ZERO, value)
        value = np.where(active & (digits == _MOST_DIGITS), _BAD, value)
        none &= ~active
        place = place + active
        digits += 1
    value = np.where(none, _BAD, np.where(negative & (value != _BAD), -value, value))
    return value, place
