"""Whose rake it was (docs/rules.md, 7)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.wallet.attribution import apportion, by_contributed, by_dealt


def test_dealt_everyone_bears_the_same() -> None:
    assert by_dealt(3, 6) == (500,) * 6
    assert by_dealt(1, 3) == (334, 333, 333)
    assert by_dealt(0, 4) == (0,) * 4
    assert by_dealt(0, 0) == ()


def test_contributed_each_bears_by_what_he_put_in() -> None:
    assert by_contributed(3, (40, 40, 10, 10, 0)) == (1200, 1200, 300, 300, 0)
    assert by_contributed(1, (1, 1, 1)) == (334, 333, 333)
    assert by_contributed(2, (1, 2)) == (667, 1333)


def test_the_largest_remainder_gets_the_unit_that_is_left() -> None:
    assert apportion(10, (5, 3, 2)) == (5, 3, 2)
    assert apportion(7, (1, 1, 5)) == (1, 1, 5)
    assert apportion(5, (1, 2, 4)) == (1, 1, 3)
    assert apportion(4, (0, 0)) == (2, 2)


@given(st.integers(0, 10**12), st.lists(st.integers(0, 10**9), min_size=1, max_size=8))
def test_parts_add_up_and_are_within_one_of_the_exact_part(whole: int, weights: list[int]) -> None:
    parts = apportion(whole, weights)
    assert sum(parts) == whole
    total = sum(weights) or len(weights)
    for part, weight in zip(parts, weights if any(weights) else [1] * len(weights), strict=True):
        assert abs(part * total - whole * weight) < total


@pytest.mark.parametrize(
    ("whole", "weights", "said"),
    [(-1, (1,), "below zero"), (1, (-1, 2), "below zero"), (1, (), "nobody")],
)
def test_what_cannot_be_shared(whole: int, weights: tuple[int, ...], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        apportion(whole, weights)
