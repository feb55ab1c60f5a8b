"""Things that a fork must not share: channels, and what is built on them."""

import os
from collections.abc import Callable
from typing import Generic, TypeVar

Thing = TypeVar("Thing")


class PerChild(Generic[Thing]):
    """Gives each process a thing of its own, made when the process first asks for it."""

    def __init__(self, make: Callable[[], Thing]) -> None:
        self._make = make
        self._pid = 0
        self._things: list[Thing] = []

    def __call__(self) -> Thing:
        if self._pid != os.getpid():
            self._things = [self._make()]
            self._pid = os.getpid()
        return self._things[0]
