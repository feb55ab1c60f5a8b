"""Recorded hands played through the services: a room of its own, whose shuffler deals by script.

The room is as any other but for the shuffler, which is not part of what images install, and rake
schedules made for the recorded rakes. It plays for play money, lives in a temporary folder, and is
gone when the hands are played.
"""

import asyncio
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from services.game.cards import card_names
from services.game.phh import RakeTerms
from services.game.replay import Replayed
from services.game.staging import Staging
from services.local.access import open_access
from services.local.bots import Access
from services.local.recorded_table import AgainError, DiffersError, play_at_table
from services.local.room import Room
from services.runtime.errors import DoorcardError
from services.runtime.ids import uuid5_of
from services.runtime.roles import Role

SCRIPTED: Final = "scripted_shuffler"
TABLES_AT_ONCE: Final = 4
TRIES: Final = 3
TOKEN_TTL_S: Final = 3600.0


class NotInstalledError(Exception):
    """The scripted shuffler is not there."""


async def play_through_services(
    stagings: Sequence[Staging],
    on_stage: Callable[[str], None] = lambda _stage: None,
    on_played: Callable[[], None] = lambda: None,
) -> list[Replayed]:
    """What came out of each hand, in order; `error` names the first difference. on_stage: told
    what is going on. on_played: called after each hand.

    Raises NotInstalledError, or what a room that does not start raises.
    """
    if find_spec(SCRIPTED) is None:
        raise NotInstalledError("the scripted shuffler is not installed (extras/scripted-shuffler)")
    with tempfile.TemporaryDirectory(prefix="doorcard-replay-", ignore_cleanup_errors=True) as home:
        script, schedules = write_room(Path(home), stagings)
        room = Room(
            Path(home),
            free_ports=True,
            on_change=lambda change: on_stage(f"{change.name} is {change.state}"),
            shuffler=(SCRIPTED, str(script)),
            extra_env={"WALLET_SCHEDULES_FOLDER": str(schedules)},
        )
        async with room, open_access(room, "replay", "adjudicator") as access:
            free = asyncio.Semaphore(TABLES_AT_ONCE)

            async def played(index: int, staging: Staging) -> Replayed:
                async with free:
                    found = await _play(room, access, index, staging)
                on_played()
                return found

            on_stage("playing")
            return await asyncio.gather(*(played(*each) for each in enumerate(stagings)))


async def _play(room: Room, access: Access, index: int, staging: Staging) -> Replayed:
    error = ""
    for attempt in range(TRIES):
        try:
            found = await play_at_table(
                staging,
                access,
                lambda player: room.signer.mint(player, [Role.PLAYER], TOKEN_TTL_S),
                table=_request_id(index, attempt),
                rake_schedule=_schedule_id(index) if staging.rake else "",
            )
            return replace(found, error=_difference(staging.expected, found))
        except AgainError as again:
            error = str(again)
        except (DiffersError, DoorcardError) as differs:
            return Replayed(f"through the services: {differs}", 0)
        except TimeoutError:
            return Replayed("through the services: the table did not go on", 0)
    return Replayed(f"through the services: {error}", 0)


def _difference(expected: Replayed, found: Replayed) -> str:
    for what in ("finishing_stacks", "pots", "rake", "payouts"):
        wanted, got = getattr(expected, what), getattr(found, what)
        if wanted != got:
            return f"through the services: {what} {got}, by the rules {wanted}"
    return ""


# What the room is given


def _request_id(index: int, attempt: int) -> str:
    return f"hand-{index}.{attempt}"


def _schedule_id(index: int) -> str:
    return f"rake-{index}"


def write_room(home: Path, stagings: Sequence[Staging]) -> tuple[Path, Path]:
    """The shuffler's script and the folder of rake schedules."""
    script, schedules = home / "script.json", home / "schedules"
    decks = {
        uuid5_of("table", _request_id(index, attempt)): _decks(staging)
        for index, staging in enumerate(stagings)
        for attempt in range(TRIES)
    }
    script.write_text(json.dumps(decks), encoding="utf-8")
    schedules.mkdir()
    for index, staging in enumerate(stagings):
        if staging.rake:
            file = schedules / f"{_schedule_id(index)}.toml"
            file.write_text(schedule_toml(staging.rake), encoding="utf-8")
    return script, schedules


def _decks(staging: Staging) -> list[Mapping[str, str]]:
    """The draw for the button, then the hand; again for a beginning that a table takes back."""
    hand = {"cards": card_names(staging.deck), "reshuffled": card_names(staging.reshuffled)}
    return [{"cards": card_names(staging.draw)}, hand] * TRIES


def schedule_toml(terms: RakeTerms) -> str:
    """The file of a rake schedule with these terms, for every number of players."""
    lines = ["[[versions]]", "version = 1", f"minimum_pot = {terms.minimum_pot}"]
    if terms.per_full:
        lines += [f"per_full = {terms.per_full}", f"units = {terms.units}"]
    else:
        lines += [f"basis_points = {int(terms.percent * 100)}"]
    if terms.half_even:
        lines.append('rounding = "half_even"')
    if terms.no_rake_on_third:
        lines.append("no_rake_on_third = true")
    if terms.cap is not None:
        lines.append(f"caps = [{{ players_from = 2, cap = {terms.cap} }}]")
    return "\n".join(lines) + "\n"
