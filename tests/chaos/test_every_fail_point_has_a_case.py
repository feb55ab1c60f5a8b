"""No fail point stands in the code that no case comes by; a case fails where nobody reaches it."""

from services.runtime.failpoints import POINTS
from tests.chaos.test_killed_at_every_step import STEPS
from tests.chaos.test_killed_while_reopening import ROUNDS


def test_every_fail_point_has_a_case() -> None:
    assert {*STEPS, *ROUNDS} == set(POINTS)
