"""Says which options of a command stand behind the script that it starts, and so belong to the script."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tb_dlprof_plugin.cli.dlprof_aliases import FormerSpellings
from tb_dlprof_plugin.cli.terminal import tell

_SCRIPTS = (".py", ".pyz")


class StartsAnother(FormerSpellings):
    """A command whose arguments from the first one on belong to a script, and that says so of options of its own."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        rest = super().parse_args(ctx, args)
        words = ctx.params.get("command")
        if words and not ctx.resilient_parsing:
            spelled = ctx.token_normalize_func or (lambda name: name)
            for sentence in sentences(words, _options(self.get_params(ctx)), spelled):
                tell(f"tb-dlprof: {sentence}")
        return rest


def sentences(
    words: Sequence[str], options: Mapping[str, bool], spelled: Callable[[str], str] = lambda name: name
) -> list[str]:
    """A sentence for each script, or command, that stands before options of ours; it may have such options itself.

    Args:
        words: the script or command with its arguments.
        options: our options by their long names, and whether each takes a value.
        spelled: our name of an option, without dashes, for the one that was typed.
    """
    found: dict[str, list[str]] = {}
    script, behind = words[0], words[1:]
    for word, following in itertools.zip_longest(behind, behind[1:], fillvalue=""):
        if word == "--":
            break
        if word.endswith(_SCRIPTS) and not word.startswith("-"):
            script = word
        typed = word.partition("=")[0]
        name = f"--{spelled(typed[2:])}" if typed.startswith("--") else ""
        if name in options:
            value = f" {following}" if typed == word and options[name] and following[:1] not in ("", "-") else ""
            found.setdefault(script, []).append(word + value)
    return [_sentence(script, given) for script, given in found.items()]


def _sentence(script: str, given: list[str]) -> str:
    what = " and ".join(given)
    if len(given) == 1:
        what += f" goes to {script}, because it stands behind it; put it before the script to give it"
    else:
        what += f" go to {script}, because they stand behind it; put them before the script to give them"
    return f"{what} to tb-dlprof."


def _options(parameters: Sequence[Any]) -> dict[str, bool]:
    """Those that do more than print something and end."""
    return {
        name: not (one.is_flag or one.count)
        for one in parameters
        if one.param_type_name == "option" and not one.is_eager
        for name in (*one.opts, *one.secondary_opts)
        if name.startswith("--")
    }
