"""docs/ERRORS.md, from the errors that the services raise: every reason, found in the code."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from services.runtime.errors import DoorcardError
from services.table.store.line import unavailable

SERVICES: Final = Path(__file__).parent.parent / "services"
SPEAKERS: Final = {
    "runtime": "every service",
    "client": "the client library",
    "table": "tables",
    "wallet": "wallet",
    "history": "history",
    "shuffler": "shuffler",
    "showdown": "showdown",
}
"""Packages whose errors a client hears -> who says it."""
CODES: Final = {kind.__name__: kind.default_code.name for kind in DoorcardError.__subclasses__()}
BY_WAY_OF: Final = {
    "Refused": "FailedPrecondition",
    "_refuse_faults": "InvalidArgument",
    "refuse": "InvalidArgument",
    "unavailable": "Unavailable",
}
"""Functions that make an error of a reason -> its class."""
MALFORMED: Final = "INVALID_FIELD"

ADVICE: Final = {
    "ABORTED": "Look again, then ask anew.",
    "ALREADY_EXISTS": "Take another id, or send what was sent with this one.",
    "DEADLINE_EXCEEDED": "Ask again with the same request_id: it may have been done.",
    "FAILED_PRECONDITION": "Show the player why; it may succeed when things have changed.",
    "INTERNAL": "Our fault: tell the operator, do not repeat.",
    "INVALID_ARGUMENT": "Correct the request; as it is it can never succeed.",
    "NOT_FOUND": "Forget it: there is no such thing, or none for this caller.",
    "PERMISSION_DENIED": "Do not repeat it with this token.",
    "RESOURCE_EXHAUSTED": "Wait as long as RetryInfo says, or ask for less.",
    "UNAUTHENTICATED": "Get a token that holds.",
    "UNAVAILABLE": "Ask again with the same request_id, after the time in RetryInfo.",
}
"""By code, what a client does."""
OWN_ADVICE: Final = {
    "ID_REUSED": "A fault of the client: the same id was sent with other content.",
    "ILLEGAL_ACTION": "Offer what the view lists as legal; metadata has rule, call and wagers.",
    "ILLEGAL_AMOUNT": "Offer an amount of the metadata's `wagers`.",
    "NOT_JOINED": "Join the table on this stream first.",
    "SERVER_STOPS": "Connect elsewhere now; the client library does it by itself.",
    "STALE_TURN": "Wait for the next update: the hand has gone on, nothing was done.",
    "STORE_MEMORY": "Wait: hands in progress end, nothing new begins until there is memory.",
    "STREAM_LOST": "Join again from the last version seen; the client library does it by itself.",
    "TABLE_PAUSED": "Wait until the table is resumed; its clocks stand still.",
    "TOKEN_EXPIRED": "Get a new token and connect again.",
    "VERSIONS_MISSING": "Join again; the client library does it by itself.",
}
"""By reason, where there is more to say."""

HEAD: Final = """# Errors

Generated from the code by `make pages`; a test compares. Every refusal is a `google.rpc.Status`
with `ErrorInfo` of the domain `doorcard`: its reason is one of these words, which stay what they
are; its metadata has the facts that a client can act on. `BadRequest` names the fields at fault,
`RetryInfo` says when a later try may succeed. An error without `ErrorInfo` comes from something
between client and room. The message is for developers; `...` stands for what differs.

Codes that may be asked again with the same request_id: `UNAVAILABLE`, `DEADLINE_EXCEEDED`,
`CANCELLED`. Nothing is done twice.

| reason | code | from | message | what a client does |
|---|---|---|---|---|
"""


@dataclass(slots=True)
class Reason:
    """A reason with one code, and all who say it."""

    reason: str
    code: str
    speakers: set[str] = field(default_factory=set)
    messages: list[str] = field(default_factory=list)

    @property
    def advice(self) -> str:
        """What a client does about it."""
        return OWN_ADVICE.get(self.reason, ADVICE[self.code])


def reasons() -> list[Reason]:
    """All of them, in order."""
    found: dict[tuple[str, str], Reason] = {}
    for package, speaker in SPEAKERS.items():
        for path in sorted((SERVICES / package).rglob("*.py")):
            for kind, reason, message in _raised(ast.parse(path.read_text(encoding="utf-8"))):
                code = CODES[kind]
                each = found.setdefault((reason, code), Reason(reason, code))
                each.speakers.add(speaker)
                if message and message not in each.messages:
                    each.messages.append(message)
    return [found[key] for key in sorted(found)]


def text() -> str:
    """The page."""
    return HEAD + "".join(map(_row, reasons()))


def _row(each: Reason) -> str:
    messages = "; ".join(each.messages[:3]).replace("|", "\\|")
    speakers = ", ".join(sorted(each.speakers))
    return f"| `{each.reason}` | `{each.code}` | {speakers} | {messages} | {each.advice} |\n"


def _raised(module: ast.Module) -> Iterator[tuple[str, str, str]]:
    """(class, reason, message) of every error that a module makes of a literal reason."""
    for node in ast.walk(module):
        if not isinstance(node, ast.Call):
            continue
        called, given = node.func, node.args
        if isinstance(called, ast.Attribute) and called.attr == "of_field":
            reason = given[2] if len(given) > 2 else ast.Constant(MALFORMED)
            for each in _words(reason):
                yield "InvalidArgument", each, "" if each == MALFORMED else _text(given[1])
        elif isinstance(called, ast.Name) and given:
            kind = BY_WAY_OF.get(called.id, called.id)
            if kind in CODES:
                for each in _words(given[0]):
                    yield kind, each, _message(called.id, each, given)


def without_reason(path: Path) -> bool:
    """Whether a module makes an error of a reason that it was given."""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in CODES
        and not any(_words(node.args[0]))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    )


def _words(reason: ast.expr) -> Iterator[str]:
    for node in ast.walk(reason):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value:
            yield node.value


def _message(called: str, reason: str, given: list[ast.expr]) -> str:
    if called == unavailable.__name__:
        return unavailable(reason).message
    return _text(given[1]) if len(given) > 1 else ""


def _text(message: ast.expr) -> str:
    """A text of the code; what it is given when it runs is left out."""
    if isinstance(message, ast.Constant):
        return str(message.value)
    if not isinstance(message, ast.JoinedStr):
        return ""
    parts = message.values
    return "".join(str(each.value) if isinstance(each, ast.Constant) else "..." for each in parts)
