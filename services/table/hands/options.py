"""What a seat does by itself: posting antes, showing beaten hands, actions chosen beforehand."""

from dataclasses import dataclass
from typing import Final

from doorcard.table.v1 import table_pb2

from services.game.hand import Act, ActionKind, Hand, Legal
from services.table.draft.draft import Draft
from services.table.hands import antes, seats
from services.table.state.state import SeatFlag, Table, TableStatus, digest

CHECK_OR_FOLD: Final = int(table_pb2.PreAction.KIND_CHECK_OR_FOLD)
CHECK: Final = int(table_pb2.PreAction.KIND_CHECK)
CALL_ANY: Final = int(table_pb2.PreAction.KIND_CALL_ANY)


@dataclass(frozen=True, slots=True)
class Wish:
    """The options of a seat as its player wants them to be."""

    player_id: str
    request_id: str
    auto_ante: bool | None
    """None leaves it as it is."""
    show_beaten: bool
    sit_out_next: bool
    confirm_ante: bool
    """He is in for the next hand."""
    kind: int = 0
    """`PreAction.Kind` of what he does at his next decision; 0 for nothing."""
    hand_id: str = ""
    """The hand that it is for."""
    street: int = 0
    """The street that it is for."""

    @property
    def request(self) -> bytes:
        """What the seat remembers of it."""
        asked = (self.auto_ante, self.show_beaten, self.sit_out_next, self.confirm_ante)
        return digest(self.request_id, (*asked, self.kind, self.hand_id, self.street))


async def set_options(draft: Draft, wish: Wish) -> int:
    """Set them. Returns the version at which they hold, now or when they were first set.

    An action for another hand or street is void and is not kept. One that is kept is taken once,
    however often its request comes. Raises FailedPrecondition (NOT_SEATED), AlreadyExists
    (ID_REUSED).
    """
    table = draft.table
    number = seats.number_of(table, wish.player_id)
    seat = table.blob.seats[number]
    known = seat.taken_at(wish.request, table.version)
    if known:
        return known
    if wish.kind or wish.confirm_ante or wish.sit_out_next:
        seats.shows_up(draft, number)
    auto = not seat.flags & SeatFlag.ASKED_ANTE if wish.auto_ante is None else wish.auto_ante
    antes.check(table, auto=auto)
    changed = _choose(table, number, wish)
    if changed and wish.kind:
        seat.remember(wish.request, draft.version)
    shows = SeatFlag.SHOWS_BEATEN if wish.show_beaten else 0
    asked = 0 if auto else SeatFlag.ASKED_ANTE
    flags = seat.flags & ~(SeatFlag.SHOWS_BEATEN | SeatFlag.ASKED_ANTE) | shows | asked
    if changed or flags != seat.flags:
        seat.flags = flags
        draft.tell_options(number)
    seats.sit_out_next(draft, number, on=wish.sit_out_next)
    if wish.confirm_ante:
        antes.confirm(draft, number)
    seats.schedule(draft)
    return draft.version_after


def act_beforehand(draft: Draft, hand: Hand) -> bool:
    """The player to act does what he chose beforehand; False where he did not, or it is void."""
    running, want = draft.table.blob.hand, hand.want
    if running is None or not isinstance(want, Act) or want.seat not in running.chosen:
        return False
    if draft.table.blob.status is not TableStatus.OPEN:
        return False
    kind, street = running.chosen.pop(want.seat)
    draft.tell_options(want.seat)
    action = _action(kind, want.legal) if street == hand.street else None
    if action is None:
        return False
    draft.tell_hand(hand.act(want.seat, action))
    return True


def drop_void(draft: Draft, hand: Hand) -> None:
    """The hand has gone on: what was chosen for an earlier street is void."""
    running = draft.table.blob.hand
    if running is None:
        return
    for number, (_, street) in list(running.chosen.items()):
        if street != hand.street or number in hand.folded:
            del running.chosen[number]
            draft.tell_options(number)


def _choose(table: Table, number: int, wish: Wish) -> bool:
    """Keep the action that he chose, in place of an earlier one; whether it is another now."""
    running, hand = table.blob.hand, table.hand
    if running is None or hand is None:
        return False
    fits = (
        bool(wish.kind)
        and wish.hand_id == running.hand_id
        and wish.street == hand.street
        and table.blob.status is TableStatus.OPEN
        and number in running.seats
        and number not in hand.folded
    )
    before = running.chosen.pop(number, None)
    if fits:
        running.chosen[number] = (wish.kind, wish.street)
    return running.chosen.get(number) != before


def _action(kind: int, legal: Legal) -> ActionKind | None:
    """What the choice means at this decision; None where he has his turn as usual."""
    if legal.check:
        return ActionKind.CHECK
    if kind == CHECK_OR_FOLD and legal.fold:
        return ActionKind.FOLD
    if kind == CALL_ANY and legal.call:
        return ActionKind.CALL
    return None
