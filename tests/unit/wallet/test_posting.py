"""Posting entries against accounts in memory: whole or not at all."""

from itertools import count
from uuid import uuid4

from hypothesis import given
from hypothesis import strategies as st

from services.wallet.entries import CashOut, Commit, Entry, Hand, Release, State
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


def entry(work: Hand | Commit | Release | CashOut, table: str, currency: str = "EUR") -> Entry:
    return Entry(1, str(uuid4()), "", table, currency, work, bytes)


sittings = st.sampled_from([f"sitting-{n}" for n in (*SEATS, 17)])
reservation_ids = st.sampled_from([f"reservation-{n}" for n in range(11, 17)])
hands = st.dictionaries(sittings, st.integers(-60, 60), max_size=4).flatmap(
    lambda nets: st.builds(
        Hand,
        st.uuids().map(str),
        st.just(tuple(nets.items())),
        st.sampled_from([-sum(nets.values()), 0, 1]),
    )
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
