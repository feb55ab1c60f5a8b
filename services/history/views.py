"""Who may see what of a finished hand. The only place in the archive that decides it.

docs/rules.md, section 6, history on request: a player sees his own cards, those that were shown,
and those of everyone who stayed to the showdown, mucked or not; never the cards of players who
folded, nor of an uncontested winner. A view is built up from what its reader may see, not by
taking away.
"""

from collections.abc import Collection
from typing import Final

from doorcard.game.v1.game_pb2 import HandEvent
from doorcard.history.v1.history_pb2 import HandPlayer, HandRecord

COMMUNITY: Final = -1

_FACTS: Final = (
    "hand_id", "table_id", "table_name", "currency", "game", "rulebook", "rulebook_sha256",
    "rake_schedule_id", "rake_schedule_version", "button", "engine_version", "deck_root", "rake",
    "community", "void",
)  # fmt: skip
"""Fields of a record that are everybody's. Inputs and the sealed deck are not among them."""


def for_player(record: HandRecord, player_id: str) -> HandRecord:
    """The hand as one of its players may see it. Who was not dealt in gets the public view."""
    own = {player.seat for player in record.players if player.player_id == player_id}
    return _view(record, own, own | _stayed(record)) if own else public(record)


def public(record: HandRecord) -> HandRecord:
    """The hand as everybody at the rail saw it: up cards, and hands that were turned up."""
    return _view(record, own=(), seen={player.seat for player in record.players if player.shown})


def whole(record: HandRecord) -> HandRecord:
    """The hand for staff who judge it: every card and input, but not the sealed deck."""
    view = HandRecord()
    view.CopyFrom(record)
    view.ClearField("sealed_deck")
    return view


def dealt_in(record: HandRecord, player_id: str) -> bool:
    """Whether the player was dealt into the hand."""
    return any(player.player_id == player_id for player in record.players)


def _stayed(record: HandRecord) -> set[int]:
    """Seats whose cards every player of the hand may see."""
    shown = {player.seat for player in record.players if player.shown}
    contenders = {player.seat for player in record.players if not player.folded}
    if record.void or len(contenders) < 2:
        # Nobody came to a showdown: a void hand's cards and an uncontested winner's stay hidden.
        return shown
    return shown | {player.seat for player in record.players if player.at_showdown} & contenders


def _view(record: HandRecord, own: Collection[int], seen: Collection[int]) -> HandRecord:
    view = HandRecord(**{name: getattr(record, name) for name in _FACTS})
    view.stake.CopyFrom(record.stake)
    view.started.CopyFrom(record.started)
    view.ended.CopyFrom(record.ended)
    view.pots.extend(record.pots)
    for award in record.awards:
        view.awards.add().CopyFrom(award)
        if award.seat not in seen:
            view.awards[-1].ClearField("hand_name")
    view.events.extend(_event(event, own, seen) for event in record.events)
    view.players.extend(_player(player, record, own, seen) for player in record.players)
    return view


def _player(
    player: HandPlayer, record: HandRecord, own: Collection[int], seen: Collection[int]
) -> HandPlayer:
    view = HandPlayer(
        seat=player.seat,
        player_id=player.player_id,
        name=player.name,
        starting_stack=player.starting_stack,
        finishing_stack=player.finishing_stack,
        folded=player.folded,
        at_showdown=player.at_showdown,
        shown=player.shown,
    )
    if player.seat in own:
        view.sitting_id = player.sitting_id
    if player.seat in seen:
        view.cards.extend(player.cards)
    else:
        dealt = (event.dealt for event in record.events if event.WhichOneof("event") == "dealt")
        view.cards.extend(
            card.card if card.up else "" for card in dealt if card.seat == player.seat
        )
    return view


def _event(event: HandEvent, own: Collection[int], seen: Collection[int]) -> HandEvent:
    view = HandEvent()
    view.CopyFrom(event)
    match event.WhichOneof("event"):
        case "dealt":
            open_to_all = event.dealt.up or event.dealt.seat == COMMUNITY
            if not (open_to_all or event.dealt.seat in seen):
                view.dealt.ClearField("card")
            if not (open_to_all or event.dealt.seat in own):
                # Proof of where a card lay is its owner's alone.
                view.dealt.ClearField("salt")
                view.dealt.ClearField("path")
        case "awarded" if event.awarded.seat not in seen:
            view.awarded.ClearField("hand_name")
    return view
