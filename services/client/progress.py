"""How far a viewer has seen a table: what comes next, what came already, what is missing."""

from enum import Enum, auto


class Verdict(Enum):
    """What to do with a frame."""

    NEW = auto()
    SEEN = auto()
    """He has it already, or it comes to him by another frame."""
    GAP = auto()
    """Versions before it are missing."""


class Progress:
    """One viewer's versions of one table, on whatever stream they come.

    A version may come in two frames, always in one message: what all see, then what only he sees.
    On a gateway's stream frames that name nobody begin to count for a viewer once one that names
    him has come after his join.
    """

    def __init__(self, version: int) -> None:
        self.version = version
        """The last that he has seen; 0 for none."""
        self._named_only = False
        self._message = -1
        """The message that brought the last version by an update."""

    def joining(self, *, gateway: bool) -> None:
        """He joins, on a new stream or again."""
        self._named_only = gateway
        self._message = -1

    def snapshot(self, version: int, *, named: bool) -> Verdict:
        """The whole table as of a version."""
        if self._named_only and not named:
            return Verdict.SEEN
        self._named_only = False
        self.version = version
        self._message = -1
        return Verdict.NEW

    def update(self, version: int, message: int, *, named: bool) -> Verdict:
        """What a version changed. message: a number that no other message of his streams has."""
        if self._named_only and not named:
            return Verdict.SEEN
        self._named_only = False
        if version == self.version:
            return Verdict.NEW if message == self._message else Verdict.SEEN
        if version < self.version:
            return Verdict.SEEN
        if version > self.version + 1:
            return Verdict.GAP
        self.version = version
        self._message = message
        return Verdict.NEW
