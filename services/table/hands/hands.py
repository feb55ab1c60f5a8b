"""The flow of a hand: from the deck to the settlement, with everything it wants on the way.

`Hand` says what it wants; the services answer within the command that brought it there. Where one
is away, what happened is committed all the same, the clock stands still, and a later tick asks
again: an accepted action is never lost, and nobody is folded because of our fault.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from doorcard.table.v1 import table_pb2
from prometheus_client import Counter, Histogram

from services.game.button import drawn_button, moved_button
from services.game.cards import parse_card
from services.game.events import Event, EventKind
from services.game.hand import (
    Act,
    ActionKind,
    Deal,
    Hand,
    Rake,
    Refused,
    Showdown,
    Want,
)
from services.game.rulebook import TimeOut
from services.runtime import failpoints
from services.runtime.errors import DoorcardError, FailedPrecondition
from services.runtime.ids import uuid7
from services.runtime.logs import logger
from services.runtime.metrics import REGISTRY
from services.table.draft import clock, money
from services.table.draft.draft import Draft
from services.table.hands import (
    club_games,
    options,
    seats,
    set_back,
    shown,
    standing,
    topups,
    wants,
)
from services.table.hands.options import Wish
from services.table.state import due, statistics
from services.table.state.state import (
    RunningHand,
    Seat,
    SeatFlag,
    SeatStatus,
    Table,
    TableStatus,
    digest,
)

GO_ON_WITHIN_MS: Final = 1000
"""Another replica takes a hand further when the one that dealt it died between two commits."""

HANDS: Final = Counter(
    "doorcard_hands", "Hands that ended, by how.", ["outcome"], registry=REGISTRY
)
POTS: Final = Histogram(
    "doorcard_hand_pot_small_bets",
    "Whole pot of a hand before rake, in small bets of its table.",
    buckets=(1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96),
    registry=REGISTRY,
)
RAKE_TAKEN: Final = Counter(
    "doorcard_rake_minor_units", "Rake taken.", ["currency"], registry=REGISTRY
)

TIMEOUTS: Final = Counter(
    "doorcard_timeouts",
    "Players out of time, by what came of it: protected, checked, folded, brought_in.",
    ["outcome"],
    registry=REGISTRY,
)

_OUT_OF_TIME: Final = {
    EventKind.PROTECTED: "protected",
    EventKind.CHECKED: "checked",
    EventKind.FOLDED: "folded",
    EventKind.BROUGHT_IN: "brought_in",
}
for _how in ("settled", "void"):
    HANDS.labels(_how)
for _how in _OUT_OF_TIME.values():
    TIMEOUTS.labels(_how)

_SERVICES: Final[dict[type[Want], str]] = {
    Deal: "shuffler",
    Rake: "wallet",
    Showdown: "showdown",
}
_WAGERS: Final = (ActionKind.BET, ActionKind.COMPLETE, ActionKind.RAISE)


class Order(NamedTuple):
    """What a player wants to do, and what he saw when he wanted it."""

    player_id: str
    request_id: str
    hand_id: str
    turn: int
    kind: ActionKind
    amount: int

    @property
    def request(self) -> bytes:
        """What the seat remembers of it."""
        return digest(self.request_id, (self.hand_id, self.turn, int(self.kind), self.amount))


# What happens to a hand


async def act(draft: Draft, order: Order) -> int:
    """A player's action. Returns the version that took it, now or when it was first sent.

    Raises FailedPrecondition: NOT_SEATED, TABLE_PAUSED, STALE_TURN, NOT_YOUR_TURN, ILLEGAL_AMOUNT,
    ILLEGAL_ACTION.
    """
    table = draft.table
    number = seats.number_of(table, order.player_id)
    seat = table.blob.seats[number]
    request = order.request
    known = seat.taken_at(request, table.version)
    if known:
        return known
    hand = _check_turn(table, order, number)
    before = hand.want
    try:
        with draft.watch.stage("rules"):
            events = hand.act(number, order.kind, order.amount)
    except Refused as refused:
        raise _illegal(refused, order, before) from None
    draft.tell_hand(events)
    seat.remember(request, draft.version)
    seats.shows_up(draft, number)
    await _go_on(draft, before, ticking=False)
    return draft.version


async def set_options(draft: Draft, wish: Wish) -> int:
    """Set what a seat does by itself (`options.set_options`); a player whose turn it is, and who
    chose an action, acts by the same commit.
    """
    before = draft.table.hand.want if draft.table.hand is not None else None
    version = await options.set_options(draft, wish)
    if draft.changed and isinstance(before, Act):
        await _go_on(draft, before, ticking=False)
    return version


async def tick(draft: Draft, *, may_deal: bool, protect: bool = True) -> None:
    """Whatever is due: seats and offers that lapse, the next hand, a time-out, or what the hand
    still waits for.

    may_deal: a new hand may begin, since the ledger keeps up. protect: a player out of time has
    something left of his daily allowance of `all_in_if_invested`.
    """
    table, blob = draft.table, draft.table.blob
    if blob.status is not TableStatus.OPEN:
        return
    set_back.bring_back(draft)
    seats.pass_time(draft)
    if club_games.pass_time(draft):
        standing.hand_is_over(draft)
        return
    if not blob.due_ms:
        return
    want = table.hand.want if table.hand is not None else None
    if table.hand is not None and isinstance(want, Act):
        if clock.is_out(draft, want):
            await _time_out(draft, table.hand, want, protect=protect)
    elif draft.now_ms < due.hand_ms(table):
        return
    elif table.hand is not None:
        await go_on(draft)
    elif may_deal:
        await _start(draft)


async def go_on(draft: Draft) -> None:
    """Ask again for what the hand waits for."""
    hand = draft.table.hand
    if hand is not None and not isinstance(hand.want, Act):
        await _go_on(draft, hand.want, ticking=True)


async def leave(draft: Draft, player_id: str) -> bool:
    """A player leaves, whenever he wants. True: he is out; False: he is when the hand is over, or
    the club game, which goes on with his chips until he is back.
    """
    table, blob = draft.table, draft.table.blob
    number = table.seat_of(player_id)
    if number is None:
        return True
    if blob.game is not None:
        await _be_away(draft, number)
        return False
    if not table.in_hand(number):
        seats.remove(draft, number)
        seats.schedule(draft)
        return True
    if blob.seats[number].status is not SeatStatus.LEAVING:
        seats.set_status(draft, number, SeatStatus.LEAVING)
        if blob.status is TableStatus.OPEN:
            await _quit(draft, number, ticking=False)
    return table.seat_of(player_id) is None


async def sit_out(draft: Draft, player_id: str) -> int:
    """Deal him no further hands; in a club game, where he is dealt in, act for him at once. Returns
    the version at which it holds.
    """
    if draft.table.blob.game is None:
        return await seats.sit_out(draft, player_id)
    await _be_away(draft, seats.number_of(draft.table, player_id))
    return draft.version_after


async def _be_away(draft: Draft, number: int) -> None:
    hand, blob = draft.table.hand, draft.table.blob
    if blob.seats[number].status is not SeatStatus.PLAYING:
        return
    seats.set_status(draft, number, SeatStatus.SITTING_OUT)
    if hand is not None and isinstance(hand.want, Act) and blob.status is TableStatus.OPEN:
        await _go_on(draft, hand.want, ticking=False)


async def resume(draft: Draft) -> int:
    """Go on after a pause, with a full clock, or after maintenance. Returns the version at which
    it holds.
    """
    blob = draft.table.blob
    standing.check_not_closed(draft.table)
    rests = blob.after_hand is TableStatus.MAINTENANCE
    if rests:
        blob.after_hand = None
    if rests or blob.status is TableStatus.PAUSED:
        standing.set_status(draft, TableStatus.OPEN, "")
        await _take_up(draft)
    return draft.version_after


async def void(draft: Draft, reason: str) -> int:
    """Give every stake of the running hand back. Returns the version at which it holds."""
    hand = draft.table.hand
    if hand is not None:
        table_id = draft.table.table_id
        draft.once_committed.append(
            lambda: logger.warning("hand_voided", table=table_id, reason=reason)
        )
        draft.tell_hand(hand.void())
        _settle(draft, None)
    return draft.version_after


# The beginning


async def _start(draft: Draft) -> None:
    table, blob = draft.table, draft.table.blob
    dealt_in = table.ready()
    if len(dealt_in) < 2:
        seats.too_few_are_in(draft)
        return
    hand_id = uuid7()
    try:
        button = await _next_button(draft, dealt_in)
        deck, leaves = await wants.new_deck(draft, hand_id)
    except DoorcardError as error:
        if not error.retriable:
            raise
        _wait_for(draft, "shuffler", error)
        return
    clock.go_on(draft)
    running = RunningHand(
        hand_id=hand_id,
        started_ms=draft.now_ms,
        button=button,
        seats=dealt_in,
        stacks=[blob.seats[number].stack for number in dealt_in],
        decks=[deck],
    )
    hand = Hand(table.setup(running))
    events = hand.start()
    draft.once_committed.append(
        lambda: logger.info(
            "hand_started", table=table.table_id, hand=hand_id, players=len(dealt_in)
        )
    )
    club_games.begin(draft)
    blob.hand, table.hand, table.played = running, hand, []
    blob.hidden = None
    blob.button = button
    blob.hands += 1
    draft.trim_below = blob.hand_version
    blob.hand_version = draft.version
    draft.lobby = True
    draft.tell(
        hand_started=table_pb2.TableEvent.HandStarted(
            hand_id=hand_id, button=button, seats=hand.seats, deck_root=deck.root
        )
    )
    draft.tell(hand=money.committed_deck(deck, leaves))
    draft.tell_hand(events)
    clock.count_hand(draft, running)
    seats.hand_begins(draft, dealt_in)
    draft.go_on = True
    _settle(draft, None)


async def _next_button(draft: Draft, dealt_in: list[int]) -> int:
    """The first is drawn, of a deck that is not used for the hand."""
    last = draft.table.blob.button
    if last >= 0:
        return moved_button(last, dealt_in)
    draw_id = uuid7()
    deck, _ = await wants.new_deck(draft, draw_id)
    drawn = await wants.draw(draft, deck, draw_id, range(len(dealt_in)))
    return drawn_button(dealt_in, [parse_card(each.card) for each in drawn])


# Time


async def _time_out(draft: Draft, hand: Hand, want: Act, *, protect: bool) -> None:
    with draft.watch.stage("rules"):
        events = hand.time_out(protect)
    draft.tell_hand(events)
    draft.once_committed.append(TIMEOUTS.labels(_outcome(events)).inc)
    seat = draft.table.blob.seats[want.seat]
    protects = hand.setup.rulebook.time_out is TimeOut.ALL_IN_IF_INVESTED
    away = protects or not seat.connection or _again(draft, seat)
    if seat.status is SeatStatus.PLAYING and away:
        seats.set_status(draft, want.seat, SeatStatus.SITTING_OUT)
    await _go_on(draft, want, ticking=False)


def _again(draft: Draft, seat: Seat) -> bool:
    """Whether a player who is connected was out of time before and has done nothing since: he would
    be waited for in every hand (docs/rules.md, 5).
    """
    running = draft.table.blob.hand
    if running is None or running.renewed in clock.OURS:
        return False
    before, seat.flags = seat.flags, seat.flags | SeatFlag.TIMED_OUT
    return bool(before & SeatFlag.TIMED_OUT)


def _outcome(events: Sequence[Event]) -> str:
    """What running out of time came to."""
    return next(_OUT_OF_TIME[each[0]] for each in events if each[0] in _OUT_OF_TIME)


def _wait_for(draft: Draft, service: str, error: Exception) -> None:
    if not clock.wait_for(draft, service, error):
        standing.set_status(draft, TableStatus.PAUSED, f"{service} did not come back")


async def _take_up(draft: Draft) -> None:
    """After a pause: who left meanwhile leaves the hand, and the clock begins anew."""
    table, blob = draft.table, draft.table.blob
    if table.hand is None:
        clock.go_on(draft)
        seats.take_up(draft)
        return
    for number, seat in list(blob.seats.items()):
        gone = seat.status is SeatStatus.LEAVING and table.hand is not None
        if gone and table.hand is not None and number not in table.hand.left:
            await _quit(draft, number, ticking=False)
    if table.hand is not None and not blob.due_ms:
        blob.waits_since_ms = draft.now_ms
        if isinstance(table.hand.want, Act):
            clock.begin(draft, clock.RESUMED)
        else:
            blob.due_ms = draft.now_ms


# What the hand wants


async def _quit(draft: Draft, number: int, *, ticking: bool) -> None:
    hand = draft.table.hand
    if hand is None:
        return
    before = hand.want
    draft.tell_hand(hand.leave(number))
    await _go_on(draft, before, ticking=ticking)


async def _go_on(draft: Draft, before: Want | None, *, ticking: bool) -> None:
    """Answer what the hand wants as far as the services can, then see where it stands.

    before: what it wanted at first. ticking: a fault of ours ends the tick; otherwise something
    was accepted that must not be lost, and the hand waits.
    """
    hand = draft.table.hand
    if hand is None:
        return
    clock.decided(draft, before)
    while not (hand.over or draft.go_on or hand.want is None):
        if isinstance(hand.want, Act):
            acted = options.act_beforehand(draft, hand) or club_games.act_for_absent(draft, hand)
            if not acted:
                break
            clock.decided(draft, before)
            continue
        service = _SERVICES[type(hand.want)]
        try:
            await wants.answer(draft, hand, hand.want)
        except (DoorcardError, ValueError) as error:
            away = isinstance(error, DoorcardError) and error.retriable
            if ticking and not away:
                raise
            if not away:
                logger.error("want_failed", table=draft.table.table_id, exc_info=error)
            _wait_for(draft, service, error)
            return
    _settle(draft, before)


# Where it stands


def _settle(draft: Draft, before: Want | None) -> None:
    """After a step: the hand is over, or somebody is to act, or a second commit follows at once."""
    hand, blob = draft.table.hand, draft.table.blob
    if hand is None or blob.hand is None:
        return
    if hand.over:
        clock.go_on(draft)
        _finish(draft, hand)
    elif draft.go_on:
        blob.due_ms = draft.now_ms + GO_ON_WITHIN_MS
    elif isinstance(hand.want, Act):
        options.drop_void(draft, hand)
        clock.follow(draft, before, hand, blob.hand)


def _finish(draft: Draft, hand: Hand) -> None:
    """The hand is over: new stacks, one entry with its money and record, and who leaves leaves."""
    table, blob = draft.table, draft.table.blob
    running = blob.hand
    if running is None or hand.result is None:
        raise ValueError("no hand has ended")
    entry, nets = money.settlement_of(table, draft.now_ms)
    draft.outbox.append(entry)
    for number, net in nets.items():
        blob.seats[number].stack += net
        blob.seats[number].brought += net
    _measure(draft, hand)
    statistics.count(table, running, draft.now_ms)
    draft.lobby = True
    shown.keep(draft, running, hand)
    blob.hand, table.hand, table.played = None, None, []
    blob.due_ms = 0
    draft.tell(hand_ended=running.hand_id)
    for number in running.seats:
        seat = blob.seats[number]
        if seat.status is SeatStatus.LEAVING or seat.moves_to:
            seats.remove(draft, number)
        else:
            topups.come_in(draft, number)
            seats.hand_over(draft, number)
    club_games.hand_is_over(draft, running)
    seats.schedule(draft)
    standing.hand_is_over(draft)
    failpoints.reach("hand.over")


def _measure(draft: Draft, hand: Hand) -> None:
    result, table = hand.result, draft.table
    if result is None:
        return
    pot, small_bet = sum(pot.amount for pot in result.pots), table.stake.small_bet
    currency = table.blob.config.currency
    hand_id = table.blob.hand.hand_id if table.blob.hand is not None else ""

    def count() -> None:
        failpoints.reach("hand.settled")
        HANDS.labels("void" if result.voided else "settled").inc()
        POTS.observe(pot / small_bet)
        RAKE_TAKEN.labels(currency).inc(sum(result.rake))
        ended = "void" if result.voided else "settled"
        logger.info("hand_ended", table=table.table_id, hand=hand_id, outcome=ended, pot=pot)

    draft.once_committed.append(count)


def _check_turn(table: Table, order: Order, number: int) -> Hand:
    """The running hand, if the order is for its present decision and this player's."""
    running, hand = table.blob.hand, table.hand
    if table.blob.status is not TableStatus.OPEN:
        raise FailedPrecondition(
            "TABLE_PAUSED", "the table is paused; its clocks stand still", retry_after_ms=1000
        )
    stale = running is None or order.hand_id != running.hand_id
    if stale or hand is None or order.turn != hand.turn or not isinstance(hand.want, Act):
        raise FailedPrecondition(
            "STALE_TURN",
            "the hand has gone on since the player saw it",
            metadata=_whose_turn(table),
        )
    if hand.want.seat != number:
        raise FailedPrecondition(
            "NOT_YOUR_TURN", "another player is to act", metadata=_whose_turn(table)
        )
    return hand


def _whose_turn(table: Table) -> dict[str, str]:
    running, hand = table.blob.hand, table.hand
    now = {"hand_id": "", "turn": "0", "seat": "-1"}
    if running is not None and hand is not None:
        now |= {"hand_id": running.hand_id, "turn": str(hand.turn)}
        if isinstance(hand.want, Act):
            now["seat"] = str(hand.want.seat)
    return now


def _illegal(refused: Refused, order: Order, want: Want | None) -> FailedPrecondition:
    metadata = {"rule": refused.rule, "why": refused.reason}
    if isinstance(want, Act):
        metadata["call"] = str(want.legal.call)
        metadata["wagers"] = ",".join(str(each) for each in want.legal.wagers)
    amount = refused.reason == "AMOUNT_NOT_TAKEN" or (
        order.kind in _WAGERS and refused.reason != "WRONG_WAGER"
    )
    return FailedPrecondition(
        "ILLEGAL_AMOUNT" if amount else "ILLEGAL_ACTION", str(refused), metadata=metadata
    )
