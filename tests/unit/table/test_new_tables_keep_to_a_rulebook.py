"""A table is created under a rulebook and a stake that hold, or refused with every fault named."""

from typing import Any

import pytest
from doorcard.game.v1 import game_pb2
from doorcard.table.v1 import table_pb2

from services.game.rulebook import shipped, shipped_names
from services.runtime.errors import InvalidArgument
from services.table.state.creation import new_table
from services.table.state.packed_rulebooks import unpack_rulebook
from tests.unit.game.test_hostile_rulebooks import HOSTILE
from tests.unit.game.test_rulebooks import CONTRADICTIONS, toml


def request(**fields: Any) -> table_pb2.CreateTableRequest:
    settings = {"request_id": "create-1", "name": "Nine", "seats": 8, "currency": "EUR"}
    return table_pb2.CreateTableRequest(**{**settings, **fields})


def fields_at_fault(asked: table_pb2.CreateTableRequest) -> set[str]:
    with pytest.raises(InvalidArgument) as refused:
        new_table(asked)
    assert all(reason for _, reason in refused.value.violations)
    return {field for field, _ in refused.value.violations}


@pytest.mark.parametrize("name", shipped_names())
def test_every_shipped_rulebook_makes_a_table_at_each_of_its_stakes(name: str) -> None:
    for stake in shipped(name).stakes:
        table = new_table(request(rulebook=name, stake_name=stake.name))
        assert unpack_rulebook(table.config.rulebook) == shipped(name)


@pytest.mark.parametrize(("house", "old", "new", "field"), CONTRADICTIONS)
def test_a_rulebook_that_contradicts_itself_makes_no_table(
    house: str, old: str, new: str, field: str
) -> None:
    text = toml(house, (old, new))
    asked = request(rulebook_toml=text, stake_name=shipped(house).stakes[0].name)
    assert f"rulebook_toml.{field}" in fields_at_fault(asked)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_rulebook_is_refused_as_the_callers_fault(name: str) -> None:
    hostile = HOSTILE[name]
    fields = fields_at_fault(request(rulebook_toml=hostile.text, stake_name="1/2"))
    within = "" if hostile.field == "file" else f".{hostile.field}"
    assert f"rulebook_toml{within}" in fields


def test_every_fault_of_rulebook_and_request_is_named_at_once() -> None:
    text = toml("modern", ("raise_cap = 3", "raise_cap = 3.5"), ("ante = 20\n", "ante = 100\n"))
    asked = request(rulebook_toml=text, stake_name="1/2", seats=9)
    assert fields_at_fault(asked) == {
        "rulebook_toml.raise_cap",
        "rulebook_toml.stakes[0].ante",
        "seats",
    }


@pytest.mark.parametrize(
    ("house", "change", "field"),
    [
        ("modern", {"bring_in": 101}, "stake.bring_in"),
        ("modern", {"bring_in": 0}, "stake.bring_in"),
        ("modern", {"big_bet": 150}, "stake.big_bet"),
        ("modern", {"ante": 100}, "stake.ante"),
        ("modern", {"ante": 0}, "stake.ante"),
        ("modern", {"ante": -1}, "stake.ante"),
        ("modern", {"buy_in_min": 1999}, "stake.buy_in_min"),
        ("interpoker", {"buy_in_min": 999}, "stake.buy_in_min"),
        ("club", {"buy_in_max": 3000}, "stake.buy_in_max"),
        ("club/private-round", {}, "stake.bring_in"),
    ],
)
def test_a_stake_of_the_operators_own_keeps_to_the_rulebook(
    house: str, change: dict[str, int], field: str
) -> None:
    amounts: dict[str, Any] = {"ante": 20, "bring_in": 50, "small_bet": 100, "big_bet": 200}
    amounts |= {"buy_in_min": 2000, "buy_in_max": 2000, **change}
    stake = game_pb2.Stake(**amounts)
    assert field in fields_at_fault(request(rulebook=house, stake=stake))
