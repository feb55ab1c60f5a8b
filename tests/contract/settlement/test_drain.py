"""Ledger, archive, trim: killed between any two steps, doubled or delayed, nothing is lost or
doubled.
"""

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from services.runtime.errors import FailedPrecondition, Unavailable
from services.settlement.drain import ROUNDS_MAX, Drain
from services.settlement.peers import Peers
from services.settlement.reconcile import Reconciler
from tests.contract.settlement.fakes import EPOCH, TABLES, FakeRoom

SHARD = 1


class Killed(BaseException):
    """The process ends here."""


class DyingPeers(Peers):
    """Peers of a process that is killed at its n-th call, before it is sent or before its answer
    arrives.
    """

    def __init__(self, peers: Peers, die_at: int, *, before: bool) -> None:
        super().__init__(peers.tables, peers.wallet, peers.history, peers.timeout_s)
        self._left = die_at
        self._before = before

    def call(self, method: Callable[..., Any], request: Any) -> Any:
        self._left -= 1
        if self._left == 0 and self._before:
            raise Killed
        answer = super().call(method, request)
        if self._left == 0:
            raise Killed
        return answer


def check_drained(room: FakeRoom, entries: list[Any]) -> None:
    """Everything applied, archived once and in order, and the outbox trimmed to its last entry."""
    assert room.wallet.applied[SHARD] == [each.ledger.entry_id for each in entries]
    hands = [each.hand.hand_id for each in entries if each.HasField("hand")]
    assert room.history.hands[SHARD] == hands
    assert room.history.archived_seq[SHARD] == len(entries)
    assert [each.ledger.seq for each in room.tables.entries[SHARD]] == [len(entries)]
    assert room.tables.told[SHARD] == (len(entries), len(entries))


def test_a_drain_goes_through_ledger_archive_and_trim(fake_room: FakeRoom, peers: Peers) -> None:
    entries = [fake_room.tables.write(SHARD) for _ in range(7)]
    entries.insert(3, fake_room.tables.write(SHARD, release={"reservation_id": "r"}))
    entries.sort(key=lambda each: each.ledger.seq)
    at = Drain(peers, batch=3).shard(SHARD)
    assert at is not None
    assert (at.epoch, at.applied_seq, at.archived_seq) == (EPOCH, 8, 8)
    check_drained(fake_room, entries)


@pytest.mark.parametrize("before", [True, False], ids=["before-the-call", "before-its-answer"])
def test_killed_between_any_two_steps_nothing_is_doubled_or_lost(
    fake_room: FakeRoom, peers: Peers, before: bool
) -> None:
    entries = []
    die_at = 0
    survived = False
    while not survived:
        die_at += 1
        assert die_at < 50
        entries += [fake_room.tables.write(SHARD) for _ in range(5)]
        try:
            Drain(DyingPeers(peers, die_at, before=before), batch=2).shard(SHARD)
            survived = True
        except Killed:
            pass
        # Another process goes on from whatever was left.
        Drain(peers, batch=2).shard(SHARD)
        check_drained(fake_room, entries)
    assert die_at > 10


def test_killed_over_and_over_at_the_same_step_it_still_gets_on(
    fake_room: FakeRoom, peers: Peers
) -> None:
    entries = [fake_room.tables.write(SHARD) for _ in range(6)]
    for die_at in range(4, 8):
        for _ in range(3):
            with suppress(Killed):
                Drain(DyingPeers(peers, die_at, before=False), batch=1).shard(SHARD)
    Drain(peers, batch=1).shard(SHARD)
    check_drained(fake_room, entries)


def test_a_kill_between_storing_and_trimming_is_made_up_for_without_new_entries(
    fake_room: FakeRoom, peers: Peers
) -> None:
    entries = [fake_room.tables.write(SHARD)]
    with pytest.raises(Killed):
        # Progress, archive's progress, read, apply, store, then trim.
        Drain(DyingPeers(peers, 6, before=True), batch=5).shard(SHARD)
    assert SHARD not in fake_room.tables.told
    Drain(peers, batch=5).shard(SHARD)
    check_drained(fake_room, entries)


def test_doubled_triggers_do_the_work_once(fake_room: FakeRoom, peers: Peers) -> None:
    entries = [fake_room.tables.write(SHARD) for _ in range(60)]
    with ThreadPoolExecutor(6) as pool:
        drains = [pool.submit(Drain(peers, batch=7).shard, SHARD) for _ in range(6)]
        for each in drains:
            each.result()
    Drain(peers, batch=7).shard(SHARD)
    check_drained(fake_room, entries)


def test_a_drain_that_another_one_overtakes_finds_no_gap(fake_room: FakeRoom, peers: Peers) -> None:
    entries = [fake_room.tables.write(SHARD) for _ in range(5)]
    fake_room.away.services.add("history")
    with pytest.raises(Unavailable):
        Drain(peers, batch=5).shard(SHARD)
    fake_room.away.services.clear()
    entries += [fake_room.tables.write(SHARD) for _ in range(2)]
    reads = itertools.count(1)

    def overtake(_shard: int, _peer: str) -> None:
        # The second reading is of what the archive lacks.
        if next(reads) == 2:
            entries.extend(fake_room.tables.write(SHARD) for _ in range(9))
            Drain(peers, batch=5).shard(SHARD)

    fake_room.tables.before_read = overtake
    Drain(peers, batch=5).shard(SHARD)
    check_drained(fake_room, entries)


def test_the_ledger_goes_on_while_the_archive_is_away_and_nothing_is_trimmed(
    fake_room: FakeRoom, peers: Peers
) -> None:
    entries = [fake_room.tables.write(SHARD) for _ in range(3)]
    fake_room.away.services.add("history")
    drain = Drain(peers, batch=2)
    with pytest.raises(Unavailable):
        drain.shard(SHARD)
    entries += [fake_room.tables.write(SHARD) for _ in range(30)]
    with pytest.raises(Unavailable):
        drain.shard(SHARD)
    assert len(fake_room.wallet.applied[SHARD]) == 33
    assert len(fake_room.tables.entries[SHARD]) == 33
    # The tables are told all the same, so that hands go on.
    assert fake_room.tables.told[SHARD][0] == 33
    fake_room.away.services.clear()
    drain.shard(SHARD)
    check_drained(fake_room, entries)


def test_nothing_is_archived_before_the_ledger_has_it(fake_room: FakeRoom, peers: Peers) -> None:
    fake_room.tables.write(SHARD)
    fake_room.away.services.add("wallet")
    with pytest.raises(Unavailable):
        Drain(peers, batch=2).shard(SHARD)
    assert not fake_room.history.hands[SHARD]


def test_one_trigger_is_bounded_and_the_next_one_goes_on(fake_room: FakeRoom, peers: Peers) -> None:
    entries = [fake_room.tables.write(SHARD) for _ in range(ROUNDS_MAX + 3)]
    drain = Drain(peers, batch=1)
    at = drain.shard(SHARD)
    assert at is not None
    assert at.applied_seq == ROUNDS_MAX
    drain.shard(SHARD)
    check_drained(fake_room, entries)


def test_an_idle_shard_is_not_told_the_same_again(fake_room: FakeRoom, peers: Peers) -> None:
    fake_room.tables.write(SHARD)
    drain = Drain(peers, batch=5)
    drain.shard(SHARD)
    fake_room.tables.told.clear()
    drain.shard(SHARD)
    assert not fake_room.tables.told


def test_a_shard_that_was_never_opened_is_left_alone(fake_room: FakeRoom, peers: Peers) -> None:
    assert Drain(peers, batch=5).shard(fake_room.wallet.shards) is None


def test_a_parked_entry_pauses_its_table_and_others_go_on(
    fake_room: FakeRoom, peers: Peers
) -> None:
    tables = fake_room.tables
    bad = tables.write(SHARD, TABLES[0])
    fake_room.wallet.poisoned.add(bad.ledger.entry_id)
    entries = [bad, *(tables.write(SHARD, TABLES[n % 2]) for n in range(1, 9))]
    Drain(peers, batch=3).shard(SHARD)
    assert {table for table, _ in tables.paused} == {TABLES[0]}
    parked = {each.table_id for each in fake_room.wallet.parked[SHARD]}
    assert parked == {TABLES[0]}
    assert len(fake_room.wallet.parked[SHARD]) == 5
    # The archive has every hand that was played, parked or not.
    check_drained(fake_room, entries)


def test_a_pause_that_was_not_made_is_made_by_the_reconciler(
    fake_room: FakeRoom, peers: Peers
) -> None:
    bad = fake_room.tables.write(SHARD)
    fake_room.wallet.poisoned.add(bad.ledger.entry_id)
    fake_room.away.services.add("pauses")
    Drain(peers, batch=3).shard(SHARD)
    check_drained(fake_room, [bad])
    assert not fake_room.tables.paused
    fake_room.away.services.clear()
    Reconciler(peers, confirm_s=0, reservation_age_s=120).shard(SHARD)
    assert [table for table, _ in fake_room.tables.paused] == [TABLES[0]]


def test_an_archive_that_lost_entries_is_reported_and_the_ledger_goes_on(
    fake_room: FakeRoom, peers: Peers
) -> None:
    for _ in range(4):
        fake_room.tables.write(SHARD)
    drain = Drain(peers, batch=2)
    drain.shard(SHARD)
    fake_room.history.archived_seq[SHARD] = 1  # restored from an old copy; the outbox is trimmed
    fake_room.tables.write(SHARD)
    with pytest.raises(FailedPrecondition, match="ARCHIVE_GAP"):
        drain.shard(SHARD)
    assert len(fake_room.wallet.applied[SHARD]) == 5
