"""Logs of these tests are caught, not printed, and searched."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from structlog.testing import capture_logs

CARD = re.compile(r"\b[2-9TJQKA][cdhs]\b")


@pytest.fixture(autouse=True)
def logged() -> Iterator[list[Any]]:
    """The lines logged in a test; none may hold a card."""
    with capture_logs() as lines:
        yield lines
    for line in lines:
        assert not CARD.search(repr({k: v for k, v in line.items() if k != "exc_info"}))
