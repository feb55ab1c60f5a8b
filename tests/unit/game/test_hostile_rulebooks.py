"""A rulebook that was written to cost time or to break something is refused, soon and by its field.

No test here measures time: what a bound keeps from the parser is refused by that bound's reason.
"""

from typing import NamedTuple

import pytest

from services.game.bounded_toml import (
    DEPTH_MAX,
    KEYS_MAX,
    LINE_MAX,
    LINES_MAX,
    TEXT_BYTES_MAX,
    TomlRefusedError,
    load_toml,
)
from services.game.rulebook import (
    STAKES_MAX,
    VARIANTS_MAX,
    RulebookError,
    parse_page,
    shipped_names,
    shipped_page,
)
from services.game.settings_read import SHOWN_MAX
from tests.unit.game.test_rulebooks import toml


class Hostile(NamedTuple):
    """A text, the field that must be named, and words of the reason."""

    text: str
    field: str
    reason: str


def changed(old: str, new: str) -> str:
    return toml("modern", (old, new))


HOSTILE = {
    "an endless number": Hostile("raise_cap = " + "9" * 5000, "file", "a line of more than"),
    "a huge number": Hostile(
        changed("raise_cap = 3", "raise_cap = " + "9" * 3900), "raise_cap", "must be from 0 to 99"
    ),
    "a huge hexadecimal number": Hostile(
        changed("ante = 20\n", f"ante = 0x{'f' * 3900}\n"), "stakes[0].ante", "must be from 0"
    ),
    "a number for a name": Hostile(
        f"name = 0x{'f' * 3900}\n[variants.razz]\ngame = 'razz'\n", "name", "short text"
    ),
    "a key of thousands of parts": Hostile("a." * 30_000 + "a = 1", "file", "a line of more than"),
    "a key of hundreds of parts": Hostile("a." * 900 + "a = 1", "file", "too deep"),
    "quoted parts": Hostile('"".' * 900 + "a = 1", "file", "too deep"),
    "literal parts": Hostile("''." * 900 + "a = 1", "file", "too deep"),
    "parts with escapes": Hostile('"\\""\t. ' * 400 + "a = 1", "file", "too deep"),
    "a deep heading": Hostile(f"[{'a.' * 900}a]\nb = 1", "file", "too deep"),
    "a deep list": Hostile("a = " + "[" * 3900, "file", "nested too deep"),
    "a deep table": Hostile("a = " + "{a = " * 700, "file", "nested too deep"),
    "a deep list for stakes": Hostile(
        f"stakes = [{'[' * 400}{']' * 400}]", "stakes[0]", "must be a table"
    ),
    "a deep list for variants": Hostile(
        f"variants = [{'[' * 400}{']' * 400}]", "variants", "must be tables"
    ),
    "thousands of stakes": Hostile("[[stakes]]\n" * 3000, "stakes", f"at most {STAKES_MAX}"),
    "thousands of variants": Hostile(
        "".join(f"[variants.v{each}]\n" for each in range(3000)),
        "variants",
        f"at most {VARIANTS_MAX}",
    ),
    "too many keys": Hostile(
        "".join(f"k{each} = 1\n" for each in range(KEYS_MAX + 1)), "file", "keys"
    ),
    "too many lines": Hostile("\n" * LINES_MAX, "file", "lines"),
    "too long a line": Hostile("#" * (LINE_MAX + 1), "file", "a line of more than"),
    "too long a text": Hostile("# ö\n" * (TEXT_BYTES_MAX // 5 + 1), "file", "bytes"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_hostile_is_refused_by_field_and_reason(name: str) -> None:
    hostile = HOSTILE[name]
    with pytest.raises(RulebookError) as refused:
        parse_page(hostile.text, "theirs.toml")
    reasons = [each.reason for each in refused.value.faults if each.field == hostile.field]
    assert any(hostile.reason in reason for reason in reasons)
    assert all(len(each.value) <= SHOWN_MAX for each in refused.value.faults)
    assert all(len(each.field) <= 4 * SHOWN_MAX for each in refused.value.faults)


def test_a_long_name_that_is_no_settings_is_cut_too() -> None:
    with pytest.raises(RulebookError) as refused:
        parse_page("k" * 3000 + " = 1\n", "theirs.toml")
    assert max(len(each.field) for each in refused.value.faults) <= SHOWN_MAX


def test_numbers_too_long_for_python_are_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    def loads(_text: str) -> None:
        raise ValueError("Exceeds the limit (4300 digits) for integer string conversion")

    monkeypatch.setattr("tomllib.loads", loads)
    with pytest.raises(TomlRefusedError, match="too large"):
        load_toml("a = 1")


def test_keys_as_deep_as_allowed_are_read() -> None:
    parts = ["part"] * DEPTH_MAX
    assert load_toml(".".join(parts) + " = 1")


def test_a_house_with_many_stakes_and_variants_has_room() -> None:
    stakes = "".join(
        f'[[stakes]]\nname = "{each}"\nante = 20\nbring_in = 50\nsmall_bet = 100\n'
        "big_bet = 200\nbuy_in_min = 2000\nbuy_in_max = 8000\n"
        for each in range(STAKES_MAX)
    )
    text = toml("modern")
    first, rest = text.index("[[stakes]]"), text.index("[sources]")
    page = parse_page(text[:first] + stakes + text[rest:])
    assert len(page.rulebook.stakes) == STAKES_MAX


def test_every_shipped_house_is_far_from_the_bounds() -> None:
    for name in {each.partition("/")[0] for each in shipped_names()}:
        assert len(shipped_page(name).rulebook.stakes) <= STAKES_MAX // 4
        assert len(toml(name)) <= TEXT_BYTES_MAX // 8
