"""Cards of a hand that is over: who kept his hidden may show them until the next hand begins.

That is the winner whom nobody called, and who mucked a beaten hand (docs/rules.md, 6). Folded hands
stay hidden. The record of the hand is with the ledger already, and says nothing of it.
"""

import uuid

from doorcard.table.v1 import table_pb2

from services.game.cards import card_name
from services.game.hand import Hand
from services.runtime.errors import FailedPrecondition
from services.table.draft.draft import Draft
from services.table.hands import seats
from services.table.state.state import LastHand, RunningHand, digest


def keep(draft: Draft, running: RunningHand, hand: Hand) -> None:
    """The hand is over: keep what may yet be shown of it."""
    taken, result = draft.table.blob.seats, hand.result
    draft.table.blob.hidden = None
    if result is None or result.voided:
        return
    standing = [number for number in running.seats if number not in hand.folded]
    may_show = standing if len(standing) == 1 else result.mucked
    cards = {
        number: (taken[number].sitting, bytes(hand.cards(number)))
        for number in may_show
        if hand.cards(number)
    }
    if cards:
        draft.table.blob.hidden = LastHand(uuid.UUID(running.hand_id).bytes, cards)


async def show(draft: Draft, player_id: str, request_id: str, hand_id: str) -> int:
    """Show one's cards of the last hand. Returns the version at which they were shown.

    Raises FailedPrecondition: NOT_SEATED, HAND_GONE, NOTHING_TO_SHOW; AlreadyExists (ID_REUSED).
    """
    table = draft.table
    number = seats.number_of(table, player_id)
    seat, request = table.blob.seats[number], digest(request_id, ("show", hand_id))
    known = seat.taken_at(request, table.version)
    if known:
        return known
    last = table.blob.hidden
    if table.blob.hand is not None or last is None or str(uuid.UUID(bytes=last.hand_id)) != hand_id:
        raise FailedPrecondition("HAND_GONE", "only cards of the last hand can be shown")
    # The seat may be another player's by now, or his own in another sitting.
    sitting, cards = last.cards.get(number, (b"", b""))
    if sitting != seat.sitting:
        raise FailedPrecondition("NOTHING_TO_SHOW", "he keeps no cards of that hand hidden")
    del last.cards[number]
    seat.remember(request, draft.version)
    draft.tell(
        cards_shown=table_pb2.TableEvent.CardsShown(
            hand_id=hand_id, seat=number, cards=[card_name(card) for card in cards]
        )
    )
    return draft.version
