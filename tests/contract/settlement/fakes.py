# ruff: noqa: N802 (the contract's names)
"""Table, wallet and history as settlement sees them: small servers that keep the contract's word.

They check what the contract forbids (gaps, broken links, trimmed entries that are still needed), so
a test that ends without complaint has shown more than its last line.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from doorcard.history.v1 import history_pb2, history_pb2_grpc
from doorcard.table.v1 import internal_pb2, internal_pb2_grpc
from doorcard.wallet.v1 import wallet_pb2, wallet_pb2_grpc

from services.runtime.clock import now_ms, timestamp
from services.runtime.errors import DoorcardError, FailedPrecondition, NotFound, Unavailable
from services.runtime.ids import check_uuid, uuid7
from tests import hand_records

EPOCH = 1
TABLES = ("0190a000-0000-7000-8000-00000000000a", "0190a000-0000-7000-8000-00000000000b")


class Away:
    """Which services do not answer just now."""

    def __init__(self) -> None:
        self.services: set[str] = set()

    def check(self, service: str) -> None:
        if service in self.services:
            raise Unavailable("DATABASE_AWAY", "away")


@dataclass
class FakeTables(internal_pb2_grpc.TableInternalServiceServicer):
    """Outboxes in memory."""

    away: Away
    entries: dict[int, list[internal_pb2.OutboxEntry]] = field(
        default_factory=lambda: defaultdict(list)
    )
    last_seq: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    last_id: dict[int, str] = field(default_factory=lambda: defaultdict(str))
    told: dict[int, tuple[int, int]] = field(default_factory=dict)
    """shard -> the highest applied and archived seq that TrimOutbox said."""
    paused: list[tuple[str, str]] = field(default_factory=list)
    """(table, request id) of every pause that was asked for."""
    money: dict[str, dict[str, int]] = field(default_factory=dict)
    held: dict[str, list[internal_pb2.HeldTopUp]] = field(default_factory=dict)
    """table -> top-ups that wait on its seats."""
    asked: list[str] = field(default_factory=list)
    """Tables that were asked to resolve something."""
    resolved: list[str] = field(default_factory=list)
    seated: set[str] = field(default_factory=set)
    closed: set[int] = field(default_factory=set)
    before_read: Callable[[int, str], None] = lambda _shard, _peer: None
    """Called with the shard and gRPC's name of who reads its outbox."""
    lock: Any = field(default_factory=threading.RLock)

    def write(
        self, shard: int, table_id: str = TABLES[0], **entry: Any
    ) -> internal_pb2.OutboxEntry:
        """Append an entry as a table's commit does; without `entry` a finished hand."""
        with self.lock:
            seq = self.last_seq[shard] + 1
            written = internal_pb2.OutboxEntry(
                at=timestamp(now_ms()),
                ledger=wallet_pb2.LedgerEntry(
                    seq=seq,
                    entry_id=uuid7(),
                    previous_entry_id=self.last_id[shard],
                    table_id=table_id,
                    currency="XTS",
                    **entry,
                ),
            )
            if not entry:
                hand = hand_records.showdown(table_id=table_id)
                written.hand.CopyFrom(hand)
                written.ledger.hand.hand_id = hand.hand_id
                written.ledger.hand.rake = hand.rake
            self.entries[shard].append(written)
            self.last_seq[shard] = seq
            self.last_id[shard] = written.ledger.entry_id
            return written

    def ReadOutbox(self, request: Any, context: Any) -> internal_pb2.ReadOutboxResponse:
        self.before_read(request.shard, context.peer())
        self.away.check("tables")
        with self.lock:
            held = self.entries[request.shard]
            ids = {entry.ledger.entry_id for entry in held}
            assert request.epoch == EPOCH
            late = request.after_seq < self.told.get(request.shard, (0, 0))[0]
            assert late or request.applied_id in {"", *ids}, "what the ledger applied is gone"
            return internal_pb2.ReadOutboxResponse(
                epoch=EPOCH,
                state=internal_pb2.SHARD_STATE_CLOSED
                if request.shard in self.closed
                else internal_pb2.SHARD_STATE_OPEN,
                last_seq=self.last_seq[request.shard],
                entries=[e for e in held if e.ledger.seq > request.after_seq][: request.limit],
            )

    def TrimOutbox(self, request: Any, _context: Any) -> internal_pb2.TrimOutboxResponse:
        self.away.check("tables")
        with self.lock:
            assert request.applied_seq <= self.last_seq[request.shard]
            low = min(request.applied_seq, request.archived_seq)
            kept = [e for e in self.entries[request.shard] if e.ledger.seq >= low]
            self.entries[request.shard] = kept
            told = self.told.get(request.shard, (0, 0))
            self.told[request.shard] = (
                max(told[0], request.applied_seq),
                max(told[1], request.archived_seq),
            )
            return internal_pb2.TrimOutboxResponse(length=len(kept))

    def PauseTable(self, request: Any, _context: Any) -> internal_pb2.PauseTableResponse:
        self.away.check("pauses")
        self.paused.append((request.table_id, request.request_id))
        return internal_pb2.PauseTableResponse(version=1)

    def ResolveReservation(
        self, request: Any, _context: Any
    ) -> internal_pb2.ResolveReservationResponse:
        self.asked.append(request.table_id)
        if request.table_id in self.away.services:
            raise Unavailable("SHARD_CLOSED", "closed")
        self.resolved.append(request.reservation_id)
        return internal_pb2.ResolveReservationResponse(seated=request.reservation_id in self.seated)

    def InspectMoney(self, request: Any, _context: Any) -> internal_pb2.InspectMoneyResponse:
        with self.lock:
            return internal_pb2.InspectMoneyResponse(
                epoch=EPOCH,
                last_seq=self.last_seq[request.shard],
                entries=[entry.ledger for entry in self.entries[request.shard]],
                tables=[
                    internal_pb2.TableMoney(
                        table_id=table_id,
                        currency="XTS",
                        sittings=[
                            internal_pb2.SittingMoney(sitting_id=sitting, amount=amount)
                            for sitting, amount in sittings.items()
                        ],
                        held=self.held.get(table_id, []),
                    )
                    for table_id, sittings in self.money.items()
                ],
            )


@dataclass
class FakeWallet(wallet_pb2_grpc.WalletServiceServicer):
    """A ledger that applies entries once, in order, and parks those of `poisoned`."""

    away: Away
    shards: int = 2
    applied: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    """shard -> ids of entries, in the order applied or parked."""
    poisoned: set[str] = field(default_factory=set)
    parked: dict[int, list[wallet_pb2.ParkedEntry]] = field(
        default_factory=lambda: defaultdict(list)
    )
    escrow: list[wallet_pb2.SittingEscrow] = field(default_factory=list)
    reservations: dict[str, wallet_pb2.Reservation] = field(default_factory=dict)
    totals: dict[str, wallet_pb2.GetTotalsResponse] = field(default_factory=dict)
    """By currency."""
    before_inspection: Callable[[], None] = lambda: None
    lock: Any = field(default_factory=threading.RLock)

    def progress(self, shard: int) -> wallet_pb2.Progress:
        applied = self.applied[shard]
        return wallet_pb2.Progress(
            shard=shard,
            epoch=EPOCH if shard < self.shards else 0,
            applied_seq=len(applied),
            applied_id=applied[-1] if applied else "",
        )

    def GetProgress(self, request: Any, _context: Any) -> wallet_pb2.GetProgressResponse:
        self.away.check("wallet")
        with self.lock:
            return wallet_pb2.GetProgressResponse(progress=self.progress(request.shard))

    def ApplyEntries(self, request: Any, _context: Any) -> wallet_pb2.ApplyEntriesResponse:
        self.away.check("wallet")
        with self.lock:
            assert request.epoch == EPOCH
            parked = []
            applied = self.applied[request.shard]
            for entry in request.entries:
                if entry.seq <= len(applied):
                    continue
                if entry.seq != len(applied) + 1:
                    raise FailedPrecondition("OUT_OF_ORDER", "a gap")
                assert entry.previous_entry_id == (applied[-1] if applied else "")
                applied.append(entry.entry_id)
                behind = {each.table_id for each in self.parked[request.shard]}
                if entry.entry_id in self.poisoned or entry.table_id in behind:
                    each = wallet_pb2.ParkedEntry(
                        seq=entry.seq,
                        entry_id=entry.entry_id,
                        table_id=entry.table_id,
                        reason="SUM_NOT_ZERO",
                        content=entry,
                    )
                    self.parked[request.shard].append(each)
                    parked.append(each)
            return wallet_pb2.ApplyEntriesResponse(
                progress=self.progress(request.shard), parked=parked
            )

    def InspectEscrow(self, request: Any, _context: Any) -> wallet_pb2.InspectEscrowResponse:
        self.before_inspection()
        with self.lock:
            return wallet_pb2.InspectEscrowResponse(
                progress=self.progress(request.shard),
                escrow=self.escrow,
                parked=self.parked[request.shard],
                pending=[
                    each
                    for each in self.reservations.values()
                    if each.state == wallet_pb2.RESERVATION_STATE_PENDING
                ],
            )

    def GetReservation(self, request: Any, _context: Any) -> wallet_pb2.GetReservationResponse:
        check_uuid(request.reservation_id, "reservation_id")
        found = self.reservations.get(request.reservation_id)
        if found is None:
            raise NotFound("RESERVATION_NOT_FOUND", "none")
        return wallet_pb2.GetReservationResponse(reservation=found)

    def ListReservations(self, request: Any, _context: Any) -> wallet_pb2.ListReservationsResponse:
        pending = [
            each
            for each in self.reservations.values()
            if each.created.ToNanoseconds() < time.time_ns() - request.older_than.ToNanoseconds()
        ]
        start = int(request.page_token or 0)
        page = pending[start : start + 2]
        more = str(start + 2) if start + 2 < len(pending) else ""
        return wallet_pb2.ListReservationsResponse(reservations=page, next_page_token=more)

    def GetTotals(self, request: Any, _context: Any) -> wallet_pb2.GetTotalsResponse:
        return self.totals[request.currency]

    def ListCurrencies(self, _request: Any, _context: Any) -> wallet_pb2.ListCurrenciesResponse:
        return wallet_pb2.ListCurrenciesResponse(currencies=sorted(self.totals))

    def GetRoomSettings(self, _request: Any, _context: Any) -> wallet_pb2.GetRoomSettingsResponse:
        self.away.check("wallet")
        return wallet_pb2.GetRoomSettingsResponse(shards=self.shards)


@dataclass
class FakeHistory(history_pb2_grpc.HistoryServiceServicer):
    """An archive that refuses gaps, and e-mail requests that wait in a list."""

    away: Away
    archived_seq: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    hands: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    due: list[history_pb2.EmailRequest] = field(default_factory=list)
    completed: list[history_pb2.CompleteEmailRequestRequest] = field(default_factory=list)
    lock: Any = field(default_factory=threading.RLock)

    def GetArchiveProgress(
        self, request: Any, _context: Any
    ) -> history_pb2.GetArchiveProgressResponse:
        self.away.check("history")
        seq = self.archived_seq[request.shard]
        return history_pb2.GetArchiveProgressResponse(epoch=EPOCH if seq else 0, archived_seq=seq)

    def StoreHands(self, request: Any, _context: Any) -> history_pb2.StoreHandsResponse:
        self.away.check("history")
        with self.lock:
            for entry in request.entries:
                if entry.seq <= self.archived_seq[request.shard]:
                    continue
                if entry.seq != self.archived_seq[request.shard] + 1:
                    raise FailedPrecondition("ARCHIVE_GAP", "a gap")
                self.archived_seq[request.shard] = entry.seq
                if entry.HasField("hand"):
                    self.hands[request.shard].append(entry.hand.hand_id)
            return history_pb2.StoreHandsResponse(archived_seq=self.archived_seq[request.shard])

    def ClaimEmailRequests(
        self, request: Any, _context: Any
    ) -> history_pb2.ClaimEmailRequestsResponse:
        self.away.check("history")
        with self.lock:
            claimed, self.due = self.due[: request.limit], self.due[request.limit :]
        return history_pb2.ClaimEmailRequestsResponse(requests=claimed)

    def CompleteEmailRequest(
        self, request: Any, _context: Any
    ) -> history_pb2.CompleteEmailRequestResponse:
        self.away.check("completions")
        self.completed.append(request)
        return history_pb2.CompleteEmailRequestResponse(state=request.outcome)


class _TypedErrors(grpc.ServerInterceptor):
    """Makes statuses of typed errors, as the services' own interceptor does."""

    def intercept_service(self, continuation: Any, details: Any) -> Any:
        handler = continuation(details)

        def answer(request: Any, context: Any) -> Any:
            try:
                return handler.unary_unary(request, context)
            except DoorcardError as error:
                context.set_trailing_metadata(error.trailing_metadata())
                context.abort(error.code, error.message)

        return grpc.unary_unary_rpc_method_handler(
            answer, handler.request_deserializer, handler.response_serializer
        )


@dataclass
class FakeRoom:
    """The three services on one address."""

    address: str
    away: Away
    tables: FakeTables
    wallet: FakeWallet
    history: FakeHistory


@contextmanager
def running() -> Iterator[FakeRoom]:
    """The three services on a free port for the life of the block."""
    away = Away()
    # What settlement does not call is not there.
    tables = FakeTables(away)
    wallet = FakeWallet(away)  # type: ignore[abstract]
    history = FakeHistory(away)  # type: ignore[abstract]
    server = grpc.server(ThreadPoolExecutor(8), interceptors=[_TypedErrors()])
    internal_pb2_grpc.add_TableInternalServiceServicer_to_server(tables, server)
    wallet_pb2_grpc.add_WalletServiceServicer_to_server(wallet, server)
    history_pb2_grpc.add_HistoryServiceServicer_to_server(history, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield FakeRoom(f"127.0.0.1:{port}", away, tables, wallet, history)
    finally:
        server.stop(0).wait()
