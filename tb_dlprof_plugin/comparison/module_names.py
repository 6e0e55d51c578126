"""Under which name a module of one run is compared with one of the other, where two frameworks name them.

PyTorch's hook says ``encoder.layers.0.attention``, XLA ``jit_train_step.layer_0.attention``. Paths are compared by
their words, without the compiled program or what else begins every path, the plural of numbered words and the case:
first whole, then by an ending that is the only such one in either run, then by the one numbered word that counts as
far in both. What has no counterpart counts to the nearest module around it that has one, because one framework names
what another does not.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

Words = tuple[str, ...]

_PROGRAMS = ("jit_", "pjit_", "pmap_")
_NUMBERED = re.compile(r"(.*?)_?(\d+)")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def shared_modules(a: Iterable[str], b: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    """The names under which the paths of each run are compared: the base's path where both have the module.

    Args:
        a: all module paths of the base.
        b: those of the candidate.
    """
    left, right = _without_roots(sorted(set(a) - {""}), sorted(set(b) - {""}))
    names_a, names_b = ({words: path for path, words in reversed(side)} for side in (left, right))
    partner = _partners(set(names_a) - {()}, set(names_b) - {()})
    shared_a = {words: _without_program(names_a[words]) for words in partner}
    shared_b = {other: shared_a[words] for words, other in partner.items()}
    return {path: _name(path, words, shared_a) for path, words in left}, {
        path: _name(path, words, shared_b) for path, words in right
    }


def words_of(path: str) -> Words:
    """The words of a path in which frameworks agree: ("layer", "0", "mlp") of "layers.0.mlp" and of "Layer_0.mlp"."""
    words: list[str] = []
    for part in path.split("."):
        found = _NUMBERED.fullmatch(part)
        words += [_HUMP.sub("_", one).lower() for one in (found.groups() if found else (part,)) if one]
    return tuple(
        word[:-1] if number.isdigit() and word.endswith("s") and len(word) > 1 else word
        for word, number in zip(words, [*words[1:], ""], strict=False)
    )


_Paths = list[tuple[str, Words]]


def _without_roots(a: list[str], b: list[str]) -> tuple[_Paths, _Paths]:
    """The words of all paths, without what begins every path of a run where more are the same then."""
    choices = [(left, right) for left in _roots(a) for right in _roots(b)]
    return max(choices, key=lambda pair: len({words for _, words in pair[0]} & {words for _, words in pair[1]}))


def _roots(paths: list[str]) -> list[_Paths]:
    """The paths without their program; and without their first part, too, where that is the same in all of them."""
    plain = [(path, _without_program(path)) for path in paths]
    firsts = {rest.partition(".")[0] for _, rest in plain}
    found = [[(path, words_of(rest)) for path, rest in plain]]
    if len(firsts) == 1:
        found.append([(path, words_of(rest.partition(".")[2])) for path, rest in plain])
    return found


def _without_program(path: str) -> str:
    """A module's path in the model: XLA's begin with the compiled program, such as "jit_train_step"."""
    first, _, rest = path.partition(".")
    return rest if first.startswith(_PROGRAMS) else path


def _partners(a: set[Words], b: set[Words]) -> dict[Words, Words]:
    """Modules of the base with those of the candidate."""
    partner = {words: words for words in a & b}
    partner |= _same_endings(a - partner.keys(), b - set(partner.values()))
    moved = _numbered_words(a, b, partner)
    if moved is not None:
        old, new = moved
        for words in a - partner.keys():
            other = new + words[len(old) :]
            if words[: len(old)] == old and other in b - set(partner.values()):
                partner[words] = other
    return partner


def _same_endings(a: set[Words], b: set[Words]) -> dict[Words, Words]:
    """Modules of which one ends with the other, where no other module of either run does."""
    found: list[tuple[Words, Words]] = []
    for short, long, turned in ((a, b, False), (b, a, True)):
        ends: dict[Words, list[Words]] = defaultdict(list)
        for words in long:
            for begin in range(1, len(words)):
                ends[words[begin:]].append(words)
        for words in short:
            others = ends.get(words, [])
            if len(others) == 1 and not words[0].isdigit():
                found.append((others[0], words) if turned else (words, others[0]))
    once = [Counter(pair[side] for pair in found) for side in (0, 1)]
    return {x: y for x, y in found if once[0][x] == 1 and once[1][y] == 1}


def _numbered_words(a: set[Words], b: set[Words], partner: Mapping[Words, Words]) -> tuple[Words, Words] | None:
    """What stands before the numbers of the layers in each run, where one word alone of each counts as far and none
    of these layers has a counterpart yet."""
    by_size: list[dict[int, list[Words]]] = []
    for side, done in ((a, set(partner)), (b, set(partner.values()))):
        numbers: dict[Words, set[str]] = defaultdict(set)
        for words in side:
            for at, word in enumerate(words):
                if word.isdigit():
                    numbers[words[:at]].add(word)
        matched = {words[:at] for words in done for at, word in enumerate(words) if word.isdigit()}
        sizes: dict[int, list[Words]] = defaultdict(list)
        for begin in numbers.keys() - matched:
            sizes[len(numbers[begin])].append(begin)
        by_size.append(sizes)
    for size in sorted(by_size[0], reverse=True):
        left, right = by_size[0][size], by_size[1].get(size, [])
        if size > 1 and len(left) == len(right) == 1:
            return left[0], right[0]
    return None


def _name(path: str, words: Words, shared: Mapping[Words, str]) -> str:
    """What the module, or the nearest one around it that both runs have, is called; its own path where there is
    none."""
    for length in range(len(words), 0, -1):
        if words[:length] in shared:
            return shared[words[:length]]
    return _without_program(path)
