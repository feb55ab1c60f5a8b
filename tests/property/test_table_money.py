"""Whatever players, clocks, replicas and services do, every unit is where ledger and table say.

A shadow ledger applies the outbox as the wallet does. After every step, at every version, the
escrow of each sitting is what the table holds for it, and what players brought is what they have.
"""

import random
from collections import Counter, defaultdict
from typing import Any, cast

import grpc
import pytest
from doorcard.wallet.v1 import wallet_pb2
from structlog.testing import capture_logs

from services.game.hand import Act
from services.runtime.clock import monotonic_s
from services.runtime.errors import DoorcardError
from services.table.hands.hands import Order
from services.table.hands.options import Wish
from services.table.state import buy_ins
from services.table.state.state import Table, TableStatus
from services.table.state.times import STANDARD, SeatTimes
from services.table.store.store import Store
from services.table.tables.moves import Moves
from tests.unit.table.rooms import FakeRoom, any_action

PLAYERS = ("anna", "ben", "carla", "dan", "eva", "fritz", "gisela")
STEPS = 150


class ShadowLedger:
    """Players' money and escrow, as the entries of the outbox make it."""

    def __init__(self, room: FakeRoom) -> None:
        self.room = room
        self.escrow: dict[str, int] = defaultdict(int)
        self.paid_back: dict[str, int] = defaultdict(int)
        self.brought: dict[str, int] = defaultdict(int)
        self.rake = 0
        self.applied = 0

    def catch_up(self) -> None:
        """Apply what is new in the outbox."""
        for entry in self.room.store.outbox[self.applied :]:
            self.apply(entry.ledger)
        self.applied = len(self.room.store.outbox)

    def apply(self, entry: wallet_pb2.LedgerEntry) -> None:
        """One entry, or an assertion that it can be applied."""
        kind = entry.WhichOneof("entry")
        pending = wallet_pb2.RESERVATION_STATE_PENDING
        if kind == "commit":
            reservation = self.room.wallet.reservations[entry.commit.reservation_id]
            assert reservation.state == pending
            reservation.state = wallet_pb2.RESERVATION_STATE_COMMITTED
            self.escrow[reservation.sitting_id] += reservation.amount
            self.brought[reservation.player_id] += reservation.amount
        elif kind == "release":
            reservation = self.room.wallet.reservations[entry.release.reservation_id]
            if reservation.state == pending:
                reservation.state = wallet_pb2.RESERVATION_STATE_RELEASED
        elif kind == "hand":
            assert sum(net.amount for net in entry.hand.nets) + entry.hand.rake == 0
            self.rake += entry.hand.rake
            for net in entry.hand.nets:
                self.escrow[net.sitting_id] += net.amount
                assert self.escrow[net.sitting_id] >= 0
        else:
            assert self.escrow.pop(entry.cash_out.sitting_id, 0) == entry.cash_out.amount
            self.paid_back[entry.cash_out.player_id] += entry.cash_out.amount

    def check(self) -> None:
        """Tables and ledger agree to the unit, sitting by sitting."""
        self.catch_up()
        held: dict[str, int] = {}
        for table_id, stored in self.room.store.tables.items():
            table = Table.load(table_id, stored)
            own = {sitting: amount for sitting, _, amount in table.money()}
            if table.hand is None:
                assert own == {s: amount for s, amount in self.escrow.items() if s in own}
            for reservation, sitting, amount in table.held():
                waits = self.room.wallet.reservations[reservation]
                assert (waits.sitting_id, waits.amount) == (sitting, amount)
                assert waits.state == wallet_pb2.RESERVATION_STATE_PENDING
            held |= own
        assert sum(held.values()) == sum(self.escrow.values())
        assert set(held) >= {s for s, amount in self.escrow.items() if amount}
        total = sum(self.escrow.values()) + sum(self.paid_back.values()) + self.rake
        assert total == sum(self.brought.values())
        ids = [entry.ledger.entry_id for entry in self.room.store.outbox]
        assert len(ids) == len(set(ids))


class Chaos:
    """Steps at random; a refusal is fine, a wrong unit is not."""

    def __init__(self, seed: int, times: SeatTimes = STANDARD) -> None:
        self.rng = random.Random(seed)
        self.room = FakeRoom(seed=seed, times=times)
        self.replicas = [self.room.tables, self.room.replica("replica-2")]
        self.moves = [Moves(cast(Store, self.room.store), each) for each in self.replicas]
        self.requests: list[tuple[str, str]] = []
        self.top_ups: list[tuple[str, str]] = []
        self.tables: list[str] = []
        self.more: list[str] = []
        """What else may happen, at tables where stacks may be added to."""

    async def step(self) -> None:
        """One thing that happens."""
        self.room.tables = self.rng.choice(self.replicas)
        self.room.table_id = self.rng.choice(self.tables)
        names = ["act"] * 10 + ["tick"] * 6 + self.more
        names += ["take", "take again", "leave", "sit_out", "sit_back", "service", "resolve"]
        names += ["late", "meddle", "pause", "void"] if self.rng.random() < 0.3 else []
        try:
            await getattr(self, "do_" + self.rng.choice(names).replace(" ", "_"))()
        except DoorcardError as error:
            if error.reason == "TABLE_FAULT":
                raise

    async def do_act(self) -> None:
        table = self.room.table
        if table.hand is None or table.blob.hand is None or not isinstance(table.hand.want, Act):
            await self.do_tick()
            return
        want = table.hand.want
        kind, amount = any_action(want, self.rng)
        order = Order(
            table.blob.seats[want.seat].player_id,
            self.room.request_id(),
            table.blob.hand.hand_id,
            want.turn,
            kind,
            amount,
        )
        for _ in range(self.rng.choice((1, 1, 1, 2))):
            await self.room.tables.act(self.room.table_id, order, monotonic_s())

    async def do_tick(self) -> None:
        if self.room.table_id in self.room.store.deadlines:
            self.room.pass_time()
        await self.room.tables.tick(self.room.table_id)

    async def do_late(self) -> None:
        if self.room.table_id in self.room.store.deadlines:
            self.room.pass_time(beyond_ms=self.rng.choice((0, 100, 3000)))
        await self.room.tables.tick(self.room.table_id)

    async def do_take(self) -> None:
        player, request_id = self.rng.choice(PLAYERS), self.room.request_id()
        self.requests.append((player, request_id))
        seats, buy_in = range(self.room.table.blob.config.seats), self.buy_in(player)
        number = self.rng.choice((None, *seats))
        await self.room.take_seat(player, request_id, number=number, buy_in=buy_in)

    async def do_take_again(self) -> None:
        if self.requests:
            player, request_id = self.rng.choice(self.requests)
            await self.room.take_seat(player, request_id, buy_in=self.buy_in(player))

    async def do_top_up(self) -> None:
        player, request_id = self.rng.choice(PLAYERS), self.room.request_id()
        self.top_ups.append((player, request_id))
        least = self.room.table.stake.buy_in_min
        await self.room.top_up(player, self.rng.choice((1, 700, least)), request_id)

    async def do_top_up_again(self) -> None:
        if self.top_ups:
            await self.room.top_up(self.rng.choice(PLAYERS), 700, self.rng.choice(self.top_ups)[1])

    async def do_join(self) -> None:
        player = self.rng.choice(PLAYERS)
        await self.room.seating().join_waiting_list(self.room.table_id, player, player)

    async def do_decline(self) -> None:
        player = self.rng.choice(PLAYERS)
        await self.room.seating().leave_waiting_list(self.room.table_id, player)

    async def do_move(self) -> None:
        to = self.rng.choice(["", *(each for each in self.tables if each != self.room.table_id)])
        await self.rng.choice(self.moves).change_table(
            self.room.table_id, self.rng.choice(PLAYERS), to
        )

    async def do_break_up(self) -> None:
        await self.rng.choice(self.moves).break_up(self.room.table_id)

    async def do_options(self) -> None:
        wish = Wish(
            player_id=self.rng.choice(PLAYERS),
            request_id=self.room.request_id(),
            auto_ante=self.rng.random() < 0.7,
            show_beaten=False,
            sit_out_next=self.rng.random() < 0.2,
            confirm_ante=self.rng.random() < 0.5,
        )
        await self.room.tables.set_options(self.room.table_id, wish, monotonic_s())

    def buy_in(self, player: str) -> int:
        """What he may bring."""
        return buy_ins.bounds(self.room.table, player, self.room.store.ms).least

    async def do_leave(self) -> None:
        await self.room.tables.leave(self.room.table_id, self.rng.choice(PLAYERS))

    async def do_sit_out(self) -> None:
        await self.room.tables.sit_out(self.room.table_id, self.rng.choice(PLAYERS))

    async def do_sit_back(self) -> None:
        await self.room.tables.sit_back(self.room.table_id, self.rng.choice(PLAYERS))

    async def do_service(self) -> None:
        services = (self.room.shuffler, self.room.showdown, self.room.wallet)
        for service in services:
            service.failing = None
        if self.rng.random() < 0.4:
            codes = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL)
            self.rng.choice(services).failing = self.rng.choice(codes)

    async def do_resolve(self) -> None:
        pending = [
            each
            for each in self.room.wallet.reservations.values()
            if each.state == wallet_pb2.RESERVATION_STATE_PENDING
        ]
        if pending:
            each = self.rng.choice(pending)
            await self.room.tables.resolve_reservation(
                self.room.table_id, each.reservation_id, each.sitting_id
            )

    async def do_meddle(self) -> None:
        """Another replica is quicker with the next commit."""
        others: list[Any] = [each for each in self.replicas if each is not self.room.tables]
        player = self.rng.choice(PLAYERS)
        await others[0].sit_out(self.room.table_id, player)

    async def do_pause(self) -> None:
        if self.room.table.blob.status is TableStatus.OPEN:
            await self.room.pause("chaos")
        else:
            await self.room.resume()

    async def do_void(self) -> None:
        await self.room.void("chaos")


@pytest.mark.parametrize("seed", range(12))
async def test_every_unit_is_where_ledger_and_table_say(seed: int) -> None:
    print(f"seed {seed}")
    chaos = Chaos(seed)
    with capture_logs():
        chaos.tables = [await chaos.room.create(rake_schedule_id="standard")]
        await everything_adds_up(chaos, STEPS)


@pytest.mark.parametrize("seed", range(100, 112))
async def test_so_it_is_with_top_ups_waiting_lists_and_changes_between_tables(seed: int) -> None:
    print(f"seed {seed}")
    # Half of the time nobody loses his seat for sitting out: more happens with him.
    chaos = Chaos(seed, SeatTimes(away_ms=0, broke_ms=0) if seed % 2 else STANDARD)
    chaos.more = ["act"] * 10 + ["take"] * 12 + ["top_up"] * 8 + ["sit_back"] * 4 + ["join"] * 2
    chaos.more += ["top_up_again", "decline", "move", "move", "options"] + ["break_up"] * (
        seed % 3 == 0
    )
    with capture_logs():
        chaos.tables = [
            await chaos.room.create(
                request_id=f"create-{n}",
                rulebook="triopoker",
                stake_name="5/10",
                seats=3 + seed // 2 % 2,
            )
            for n in range(2)
        ]
        await everything_adds_up(chaos, 2 * STEPS)


async def everything_adds_up(chaos: Chaos, steps: int) -> None:
    """Let things happen, then send everybody home."""
    ledger = ShadowLedger(chaos.room)
    for _ in range(steps):
        await chaos.step()
        ledger.check()
    for service in (chaos.room.shuffler, chaos.room.showdown, chaos.room.wallet):
        service.failing = None
    for table_id in chaos.tables:
        chaos.room.table_id = table_id
        await chaos.room.resume()
        for player in PLAYERS:
            await chaos.room.tables.leave(table_id, player)
        for _ in range(100):
            if not chaos.room.table.blob.seats:
                break
            await chaos.do_tick()
        assert not chaos.room.table.blob.seats
        ledger.check()
        for each in list(chaos.room.wallet.reservations.values()):
            if each.table_id == table_id and each.state == wallet_pb2.RESERVATION_STATE_PENDING:
                await chaos.room.tables.resolve_reservation(
                    table_id, each.reservation_id, each.sitting_id
                )
    ledger.check()
    assert not any(ledger.escrow.values())
    assert sum(ledger.paid_back.values()) + ledger.rake == sum(ledger.brought.values())
    pending = wallet_pb2.RESERVATION_STATE_PENDING
    assert not [each for each in chaos.room.wallet.reservations.values() if each.state == pending]
    kinds = Counter(entry.ledger.WhichOneof("entry") for entry in chaos.room.store.outbox)
    print(f"{dict(kinds)}, {len(chaos.room.store.commits)} commits")
