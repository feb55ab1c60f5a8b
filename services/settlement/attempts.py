"""Work that kills its workers is set aside instead of killing them for ever.

Redis as a broker counts no deliveries, so starts are counted here, in the broker's own Redis: who
begins a piece of work leaves a mark and takes it away at the end, and a mark whose owner cannot be
running any more stands for a death. After `DEATHS_MAX` of them the message is parked and its work
rests for `REST_S`; then the next trigger tries it once more, and one more death lets it rest again.
Work that succeeds is parked no longer.

Every message of settlement is a trigger whose work is found again from its owner (outbox, ledger,
archive): parking one loses nothing, it only keeps one shard, or the mails, waiting meanwhile.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple, Protocol

from redis import Redis

from services.runtime.clock import MS_PER_S, now_ms
from services.runtime.ids import uuid7
from services.runtime.logs import logger
from services.settlement import meters
from services.settlement.broker import BROKER_AWAY

DEATHS_MAX: Final = 3
REST_S: Final = 60
SURELY_OVER_MS: Final = 60_000
"""Twice the hard limit of a task: a mark of that age is nobody's, however slow its worker is."""
MARKS_KEPT_S: Final = 3600
US_PER_MS: Final = 1000
PARKED_MAX: Final = 1000
DECISIONS_KEPT: Final = 200

PARKED: Final = "settlement:parked"
DECISIONS: Final = "settlement:decisions"


class Mark(NamedTuple):
    """Somebody began a piece of work and did not end it yet."""

    worker: str
    message: str
    once: str
    """Two starts of the same message by the same worker are two marks."""

    def text(self) -> str:
        """As it is kept."""
        return "|".join(self)


@dataclass(frozen=True, slots=True)
class ParkedMessage:
    """A message whose work killed its workers."""

    work: str
    """What it is about, for instance drain-3; one at a time of each."""
    task: str
    args: tuple[Any, ...]
    message: str
    """Id of the last message."""
    since_ms: int
    """When it was parked first ..."""
    last_ms: int
    """... and last."""
    times: int

    def fields(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


class Decision(Protocol):
    """`retry` or `drop`."""

    def __call__(self, client: Redis, work: str, *, operator: str, reason: str) -> bool:
        """False if no such work is parked."""


class Begun(NamedTuple):
    """A start that was counted; empty mark: the broker was away and nothing was counted."""

    work: str
    mark: str


class Attempts:
    """Counts for one worker.

    client: of the broker's Redis. worker: a name that no other worker has or had.
    """

    def __init__(self, client: Callable[[], Redis], worker: str) -> None:
        self._client = client
        self._worker = worker
        self._away = False

    def begin(self, work: str, task: str, args: Sequence[Any], message: str) -> Begun | None:
        """None if the work rests. The caller is the only one of its worker who does this work.

        A broker that is away keeps nothing waiting: then nothing is counted.
        """
        mark = Mark(self._worker, message, uuid7())
        try:
            begun = self._begin(work, task, tuple(args), mark)
        except BROKER_AWAY as error:
            self._tell_away(error)
            return Begun(work, "")
        self._away = False
        return begun

    def end(self, begun: Begun, *, well: bool) -> None:
        """The work ended, well or with an error; in either case nobody died of it."""
        if not begun.mark:
            return
        try:
            client = self._client()
            if not well:
                client.zrem(_marks(begun.work), begun.mark)
                return
            pipe = client.pipeline(transaction=False)
            pipe.delete(_marks(begun.work))
            pipe.hdel(PARKED, begun.work)
            pipe.hlen(PARKED)
            _, settled, parked = pipe.execute()
        except BROKER_AWAY as error:
            self._tell_away(error)
            return
        meters.PARKED_MESSAGES.set(parked)
        if settled:
            logger.info("message_parked_no_more", work=begun.work)

    def _begin(self, work: str, task: str, args: tuple[Any, ...], mark: Mark) -> Begun | None:
        client = self._client()
        pipe = client.pipeline(transaction=False)
        pipe.zrange(_marks(work), 0, -1, withscores=True)
        pipe.exists(_rest(work))
        pipe.hget(PARKED, work)
        pipe.hlen(PARKED)
        pipe.time()
        marks, rests, parked, count, (second, microsecond) = pipe.execute()
        meters.PARKED_MESSAGES.set(count)
        if rests:
            return None
        # Workers' clocks may differ by more than a mark lives: its age is told by the broker's.
        at_ms = second * MS_PER_S + microsecond // US_PER_MS
        found = [(Mark(*_text(each).split("|")), int(score)) for each, score in marks]
        if deaths(found, mark, at_ms) >= (1 if parked else DEATHS_MAX):
            self._park(work, task, args, mark, parked, count)
            return None
        pipe = client.pipeline(transaction=False)
        pipe.zadd(_marks(work), {mark.text(): at_ms})
        pipe.expire(_marks(work), MARKS_KEPT_S)
        pipe.execute()
        return Begun(work, mark.text())

    def _park(
        self, work: str, task: str, args: tuple[Any, ...], mark: Mark, before: Any, count: int
    ) -> None:
        at_ms = now_ms()
        earlier = _read(before) if before else None
        parked = ParkedMessage(
            work=work,
            task=task,
            args=args,
            message=mark.message,
            since_ms=earlier.since_ms if earlier else at_ms,
            last_ms=at_ms,
            times=earlier.times + 1 if earlier else 1,
        )
        pipe = self._client().pipeline()
        if earlier or count < PARKED_MAX:
            pipe.hset(PARKED, work, json.dumps(parked.fields()))
        pipe.set(_rest(work), mark.message, ex=REST_S)
        pipe.delete(_marks(work))
        pipe.execute()
        meters.MESSAGES_PARKED.labels(task).inc()
        meters.PARKED_MESSAGES.set(count if earlier else count + 1)
        logger.error(
            "message_parked", work=work, task=task, message=mark.message, times=parked.times
        )

    def _tell_away(self, error: Exception) -> None:
        if not self._away:
            logger.warning("attempts_not_counted", kind=type(error).__name__)
        self._away = True


def deaths(marks: Iterable[tuple[Mark, int]], mine: Mark, at_ms: int) -> int:
    """How many of the marks (with when they were made, by one clock) are of workers that died.

    I hold the only turn of this work in my worker, and a message is with one worker at a time: what
    stands in either's name is over. Marks of other workers may be of work that is running, until
    they are older than any task may become.
    """
    return sum(
        mark.worker == mine.worker
        or (mark.message == mine.message and mark.message != "")
        or made_ms < at_ms - SURELY_OVER_MS
        for mark, made_ms in marks
    )


# What operators do


def parked(client: Redis) -> list[ParkedMessage]:
    """What is parked now, by work."""
    found: Any = client.hgetall(PARKED)
    return sorted((_read(each) for each in found.values()), key=lambda each: each.work)


def decisions(client: Redis) -> list[dict[str, Any]]:
    """What operators decided, newest first; the last `DECISIONS_KEPT`."""
    found: Any = client.lrange(DECISIONS, 0, -1)
    return [json.loads(each) for each in found]


def retry(client: Redis, work: str, *, operator: str, reason: str) -> bool:
    """Let its next trigger try it now. It stays parked until it has succeeded.

    False if no such work is parked.
    """
    return _decide(client, work, "retry", operator, reason, _rest(work))


def drop(client: Redis, work: str, *, operator: str, reason: str) -> bool:
    """Forget its message and its deaths: its next trigger is as good as the first.

    False if no such work is parked.
    """
    return _decide(client, work, "drop", operator, reason, _rest(work), _marks(work), drops=True)


def _decide(
    client: Redis,
    work: str,
    decision: str,
    operator: str,
    reason: str,
    *keys: str,
    drops: bool = False,
) -> bool:
    found: Any = client.hget(PARKED, work)
    if found is None:
        return False
    line = {
        "decision": decision,
        "operator": operator,
        "reason": reason,
        "at_ms": now_ms(),
        "parked": json.loads(found),
    }
    pipe = client.pipeline()
    pipe.lpush(DECISIONS, json.dumps(line))
    pipe.ltrim(DECISIONS, 0, DECISIONS_KEPT - 1)
    pipe.delete(*keys)
    if drops:
        pipe.hdel(PARKED, work)
    pipe.execute()
    return True


def _read(text: Any) -> ParkedMessage:
    fields = json.loads(text)
    return ParkedMessage(**{**fields, "args": tuple(fields["args"])})


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _marks(work: str) -> str:
    return f"settlement:unfinished:{work}"


def _rest(work: str) -> str:
    return f"settlement:resting:{work}"
