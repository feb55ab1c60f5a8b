"""Recorded hands as tables of fields, changed and written again as text."""

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

HANDS: Final = Path(__file__).parents[1] / "hands"
Fields = dict[str, Any]

_PER_PLAYER: Final = ("starting_stacks", "finishing_stacks", "_payouts", "_uncalled")
_MONEY: Final = (*_PER_PLAYER, "antes", "bring_in", "small_bet", "big_bet", "_rake")


def fields_of(file: Path) -> Fields:
    """What a file says."""
    return tomllib.loads(file.read_text())


def text_of(fields: Mapping[str, Any]) -> str:
    """The text of a file that says this."""
    return "".join(f"{name} = {_value(value)}\n" for name, value in fields.items())


def with_actions(fields: Fields, change: Callable[[int, str], str]) -> Fields:
    """The same with every action changed; `change` gets its index, too."""
    actions = [change(index, action) for index, action in enumerate(fields["actions"])]
    return {**fields, "actions": actions}


def rotated(fields: Fields, by: int) -> Fields:
    """Every player sits so many seats further, p1 in the seat of p2."""
    count = len(fields["starting_stacks"])

    def moved(found: re.Match[str]) -> str:
        return f"p{(int(found[1]) - 1 + by) % count + 1}"

    changed = with_actions(fields, lambda _, action: re.sub(r"\bp(\d)", moved, action))
    for name in _PER_PLAYER:
        if name in fields:
            changed[name] = [fields[name][(seat - by) % count] for seat in range(count)]
    return changed


def scaled(fields: Fields, by: int) -> Fields:
    """All money so many times as much."""

    def more(_: int, action: str) -> str:
        return re.sub(r"(?<=cbr )\d+", lambda found: str(int(found[0]) * by), action)

    changed = with_actions(fields, more)
    for name in _MONEY:
        if name in fields:
            value = fields[name]
            changed[name] = [x * by for x in value] if isinstance(value, list) else value * by
    for name in ("_legal", "_illegal"):
        if name in fields:
            changed[name] = [[at, more(0, action)] for at, action in fields[name]]
    if "_pots" in fields:
        changed["_pots"] = [[amount * by, players] for amount, players in fields["_pots"]]
    return changed


def hidden(fields: Fields) -> Fields:
    """As somebody wrote it down who saw no down card but those that were shown."""
    shown = {a.split()[0] for a in fields["actions"] if re.fullmatch(r"p\d sm \w+", a)}
    dealt: dict[str, int] = {}

    def unseen(_: int, action: str) -> str:
        words = action.split()
        if words[:2] != ["d", "dh"] or words[2] in shown:
            return action
        before = dealt.get(words[2], 0)
        cards = re.findall("..", words[3])
        dealt[words[2]] = before + len(cards)
        places = range(before, before + len(cards))
        known = [c if 2 <= p < 6 else "??" for p, c in zip(places, cards, strict=True)]
        return " ".join([*words[:3], "".join(known)])

    return with_actions(fields, unseen)


def losers_shown(fields: Fields, as_muck: bool) -> Fields:
    """Who won nothing mucks instead of showing, or (else) nothing is said of him at the end."""
    actions: list[str] = []
    for action in fields["actions"]:
        found = re.fullmatch(r"(p(\d) sm)( .+)?", action)
        if found is None or fields["_payouts"][int(found[2]) - 1]:
            actions.append(action)
        elif as_muck:
            actions.append(found[1])
    return {**fields, "actions": actions}


def dealt_backwards(fields: Fields) -> Fields:
    """The deals of each street in the opposite order."""
    actions: list[str] = []
    street: list[str] = []
    for action in [*fields["actions"], ""]:
        words = action.split()
        if words[:2] == ["d", "dh"] and words[2] not in {each.split()[2] for each in street}:
            street.insert(0, action)
            continue
        actions += street
        street = [action] if words[:2] == ["d", "dh"] else []
        actions += [] if street or not action else [action]
    return {**fields, "actions": actions}


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_value(each) for each in value)}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {_value(each)}" for name, each in value.items()) + "}"
    return json.dumps(value)
