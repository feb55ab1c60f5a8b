"""Posting entries against accounts in memory: whole or not at all."""

from datetime import UTC, datetime
from itertools import count
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.wallet.entries import CashOut, Commit, Entry, Hand, Note, Release, State
from services.wallet.posting import Account, HouseAccounts, Posting, Reservation

TABLES = ("table-1", "table-2")
PLAYERS = range(1, 4)
SEATS = range(11, 17)
CONTROL, HOUSE = 98, 99


def posting() -> Posting:
    """Three players with 100 each, six sittings with 50 at two tables, four reservations of 20."""
    accounts = {n: Account(n, f"player-{n}", "EUR", 100, 40) for n in PLAYERS}
    accounts |= {
        n: Account(n, f"sitting-{n}", "EUR", 50, table_id=TABLES[n % 2], player=n % 3 + 1)
        for n in SEATS
    }
    reservations = {
        f"reservation-{n}": Reservation(
            f"reservation-{n}", State.PENDING, TABLES[n % 2], 20, n % 3 + 1, n
        )
        for n in list(SEATS)[:4]
    }
    houses = {"EUR": HouseAccounts(CONTROL, HOUSE), "USD": HouseAccounts(96, 97)}
    return Posting(accounts, reservations, houses, set(), count(0))


def entry(
    work: Hand | Commit | Release | CashOut | Note, table: str, currency: str = "EUR"
) -> Entry:
    return Entry(1, str(uuid4()), "", table, currency, work, bytes)


sittings = st.sampled_from([f"sitting-{n}" for n in (*SEATS, 17)])
reservation_ids = st.sampled_from([f"reservation-{n}" for n in range(11, 17)])
hands = st.builds(
    lambda hand_id, nets, rakes, put_in: Hand(
        f"hand-{hand_id}",
        tuple(nets.items()),
        (-sum(nets.values()), 0, 1)[rakes],
        tuple((each, put_in) for each in nets) if put_in else (),
    ),
    st.integers(0, 10**6),
    st.dictionaries(sittings, st.integers(-60, 60), max_size=4),
    st.integers(0, 2),
    st.sampled_from([0, 60, 20]),
)
works = st.one_of(
    hands,
    st.builds(Commit, reservation_ids),
    st.builds(Release, reservation_ids),
    st.builds(
        CashOut,
        sittings,
        st.sampled_from([f"player-{n}" for n in PLAYERS]),
        st.integers(0, 80),
    ),
)
batches = st.lists(
    st.builds(entry, works, st.sampled_from(TABLES), st.sampled_from(["EUR", "EUR", "USD"])),
    max_size=20,
)


# A busy machine is no fault of the strategy.
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(batches)
def test_whatever_comes_the_rows_add_up_and_nothing_goes_below_zero(batch: list[Entry]) -> None:
    before = {number: account.balance for number, account in posting().accounts.items()}
    posted = posting()
    posted.post_all(batch)
    moved = dict.fromkeys(before, 0) | {CONTROL: 0, HOUSE: 0}
    for _, _, debit, credit, amount, *_ in posted.transfers:
        assert amount > 0
        moved[debit] -= amount
        moved[credit] += amount
    assert moved == {number: posted.balances.get(number, 0) for number in moved}
    assert sum(moved.values()) == 0
    assert moved[CONTROL] == 0
    assert moved[HOUSE] >= 0
    for number, account in posted.accounts.items():
        assert account.balance == before[number] + moved[number] >= 0
        assert 0 <= account.pending <= account.balance
        assert not (account.closed and account.balance)


# A busy machine is no fault of the strategy.
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(batches)
def test_each_entry_is_posted_or_parked_and_what_follows_a_parked_one_is_parked(
    batch: list[Entry],
) -> None:
    posted = posting()
    posted.post_all(batch)
    parked = [each.entry_id for each, _ in posted.parked]
    for table in TABLES:
        of_table = [each.entry_id for each in batch if each.table_id == table]
        first = next((n for n, each in enumerate(of_table) if each in parked), len(of_table))
        assert [each for each in parked if each in of_table] == of_table[first:]


def test_a_note_moves_nothing_and_waits_behind_nothing() -> None:
    made = posting()
    made.parked_tables.add(TABLES[0])
    made.post_all([entry(Note(), TABLES[0]), entry(Note(), TABLES[1], "XXX")])
    assert not made.parked
    assert made.rows == 0
    assert made.parked_tables == {TABLES[0]}


def test_the_last_line_of_a_hand_is_the_rake_and_balances_follow_the_order() -> None:
    posted = posting()
    first = Hand("hand-1", (("sitting-11", -30), ("sitting-13", 28)), 2)
    second = Hand("hand-2", (("sitting-11", -20), ("sitting-13", 20)), 0)
    third = Hand("hand-3", (("sitting-11", -1), ("sitting-13", 1)), 0)
    posted.post_all([entry(hand, TABLES[1]) for hand in (first, second, third)])
    assert [row[:5] for row in posted.transfers] == [
        (0, 0, 11, CONTROL, 30),
        (0, 1, CONTROL, 13, 28),
        (0, 2, CONTROL, HOUSE, 2),
        (1, 0, 11, CONTROL, 20),
        (1, 1, CONTROL, 13, 20),
    ]
    assert [reason for _, reason in posted.parked] == ["ESCROW_OVERDRAWN"]


def test_a_hand_is_kept_with_everyone_dealt_in_and_what_he_put_in() -> None:
    posted = posting()
    dealt_in = (("sitting-11", 30), ("sitting-13", 30), ("sitting-15", 5))
    nets = (("sitting-11", -30), ("sitting-13", 33), ("sitting-15", -5))
    ended = datetime(2026, 3, 1, 12, tzinfo=UTC)
    posted.post_all([entry(Hand("hand-1", nets, 2, dealt_in, 1, "5/10", ended), TABLES[1])])
    assert not posted.parked
    assert posted.hands == [(0, "EUR", 1, "5/10", ended, 2, "{3,2,1}", "{30,30,5}")]


@pytest.mark.parametrize(
    ("dealt_in", "reason"),
    [
        ((("sitting-11", 30), ("sitting-11", 30), ("sitting-13", 30)), "SITTING_TWICE"),
        ((("sitting-11", -1), ("sitting-13", 30)), "BAD_AMOUNT"),
        ((("sitting-11", 2**53), ("sitting-13", 30)), "BAD_AMOUNT"),
        ((("sitting-11", 29), ("sitting-13", 30)), "SHARES_DIFFER"),
        ((("sitting-11", 30),), "SHARES_DIFFER"),
        ((("sitting-11", 30), ("sitting-13", 0), ("sitting-17", 1)), "SITTING_UNKNOWN"),
        ((("sitting-11", 30), ("sitting-13", 0), ("sitting-12", 1)), "TABLE_DIFFERS"),
    ],
)
def test_shares_that_cannot_be_are_parked(
    dealt_in: tuple[tuple[str, int], ...], reason: str
) -> None:
    posted = posting()
    nets = (("sitting-11", -30), ("sitting-13", 28))
    posted.post_all([entry(Hand("hand-1", nets, 2, dealt_in), TABLES[1])])
    assert [each for _, each in posted.parked] == [reason]
    assert not posted.transfers
    assert not posted.hands
