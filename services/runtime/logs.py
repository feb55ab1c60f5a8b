"""JSON lines on stderr, one an event, with the ids of what is going on and nothing that is secret.

`logger.info("hand_settled", pots=2)`; the event is a name, facts are keys. Ids (service, table,
hand, request, trace) come from context variables: `bind(table=...)` holds for the rest of the task
and its children.
"""

import json
import logging
import re
import sys
from collections.abc import Mapping, MutableMapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, Final

import structlog
from structlog.typing import Processor

REMOVED: Final = "[removed]"
TEXT_MAX: Final = 4000
"""Characters kept of one text, tracebacks included."""
DEPTH_MAX: Final = 4

_SECRET_KEY: Final = re.compile(
    r"(?:^|_)(?:address(?:es)?|authorization|cards?|cookie|credentials?|deck|emails?|hole|host|ip"
    r"|passphrase|passwords?|payload|peer|private_key|recipients?|salts?|sealed|secrets?|seeds?|sender"
    r"|tokens?|ur[il])$"
)
"""Keys that end in one of these words."""

_CARD: Final = "[2-9TJQKA][cdhs]"
_UUID: Final = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_SECRET_TEXTS: Final = (
    re.compile(r"eyJ[\w-]{8,}\.[\w-]+\.[\w-]*"),  # JSON Web Token
    re.compile(r"[\w.+%-]+@[\w-]+(\.[\w-]+)+"),  # e-mail
    re.compile(r"\b\w+://[^\s/@]+@"),  # credentials in a URL
    # Two or more cards; groups of hex digits in an id can look like them.
    re.compile(rf"(?P<id>\b{_UUID}\b)|\b{_CARD}(?:[\s,]*{_CARD})+\b"),
    re.compile(rf"""(?:^|(?<=["'])){_CARD}(?:$|(?=["']))"""),  # one card alone or in quotes
    re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b"),  # IPv4
    re.compile(r"(?<![\w:])(?:[0-9a-f]{0,4}:){3,7}[0-9a-f]{0,4}(?![\w:])", re.IGNORECASE),  # IPv6
    re.compile(r"-----BEGIN [A-Z ]+-----.*?(?:-----END [A-Z ]+-----|$)", re.DOTALL),  # PEM
)

logger: Final[structlog.typing.FilteringBoundLogger] = structlog.get_logger()

# One variable for all ids: every action takes them along and puts them back.
_ids: Final[ContextVar[Mapping[str, Any]]] = ContextVar("ids", default=MappingProxyType({}))


def bind(**ids: str | int) -> None:
    """Put ids on every further line of this task and of the tasks it starts."""
    _ids.set({**_ids.get(), **ids})


def bound() -> Mapping[str, Any]:
    """The ids that are on the lines of this task."""
    return _ids.get()


def rebind(ids: Mapping[str, Any]) -> None:
    """Put these ids, and no others, on every further line of this task: for one that works for
    several callers in turn. ids: what `bound` gave.
    """
    _ids.set(ids)


def trace_id() -> str:
    """The id that joins the lines of one request across services; "" outside a call."""
    return str(_ids.get().get("trace", ""))


def configure(service: str, level: str = "info") -> None:
    """Make every logger of this process, ours and libraries', write JSON lines to stderr."""
    number = logging.getLevelNamesMapping()[level.upper()]
    shared = _processors(service)
    structlog.configure(
        processors=[*shared, structlog.processors.format_exc_info, scrub, _to_json],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *shared],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                scrub,
                _to_json,
            ],
        )
    )
    logging.basicConfig(handlers=[handler], level=max(number, logging.INFO), force=True)


def scrub(_logger: Any, _name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Drop values whose key names a secret, and cut what looks like one out of every text."""
    return {key: _clean(key, value, DEPTH_MAX) for key, value in event.items()}


def _processors(service: str) -> list[Processor]:
    def add_ids(
        _logger: Any, _name: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        return {**_ids.get(), **event, "service": service}

    return [
        add_ids,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
    ]


def _clean(key: str, value: Any, depth: int) -> Any:
    if _names_secret(key):
        return REMOVED
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, dict) and depth:
        return {str(inner): _clean(str(inner), each, depth - 1) for inner, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset) and depth:
        # Joined, so that single cards side by side are seen for what they are.
        if _clean_text(" ".join(map(str, value))) != " ".join(map(str, value)):
            return REMOVED
        return [_clean("", each, depth - 1) for each in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return f"{len(value)} bytes"
    return _clean_text(str(value))


def _names_secret(key: str) -> bool:
    return _SECRET_KEY.search(key.lower().replace("-", "_")) is not None


def _unless_an_id(found: re.Match[str]) -> str:
    return found[0] if found.lastgroup == "id" else REMOVED


def _clean_text(text: str) -> str:
    for pattern in _SECRET_TEXTS:
        text = pattern.sub(_unless_an_id, text)
    return text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]}..."


def _to_json(_logger: Any, _name: str, event: MutableMapping[str, Any]) -> str:
    return json.dumps(event, ensure_ascii=False, separators=(",", ":"))
