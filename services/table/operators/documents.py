"""What the room keeps beside tables, each under an id of its own: templates, schedules, the
announcement to all.

A document is stored where a table of its id would be, sealed, and changed by the same script: so
its audit record is part of the commit that changes it, as a table's is.
"""

from collections.abc import Callable
from types import MappingProxyType
from typing import Final, Generic, NamedTuple, TypeVar

import msgspec

from services.runtime.errors import Aborted
from services.table.draft import audit
from services.table.draft.audit import Facts, Instruction
from services.table.store.store import Store
from services.table.store.stored import DOCUMENT, Commit, Committed, Conflict, Stored

CONFLICTS_MAX: Final = 8
NEVER: Final = 1 << 62
"""Above every version: no event records are kept."""

NOTHING: Final[Facts] = MappingProxyType({})

Content = TypeVar("Content", bound=msgspec.Struct)


class Kept(NamedTuple, Generic[Content]):
    """A document as it is stored."""

    stored: Stored
    content: Content


class Change(NamedTuple, Generic[Content]):
    """What a document is to be, and what of it is to be recorded."""

    content: Content
    by: Instruction | None = None
    """None: the room's own bookkeeping, of which no record is made."""
    before: Facts = NOTHING
    after: Facts = NOTHING


class Documents(Generic[Content]):
    """The documents of one kind. Everything raises what `Store.load` and `Store.commit` do."""

    def __init__(self, store: Store, kind: type[Content]) -> None:
        self._store = store
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(kind).decode

    async def load(self, object_id: str) -> Kept[Content] | None:
        """The document; None if there never was one."""
        stored = await self._store.load(object_id)
        return None if stored is None else self._kept(stored)

    async def would_change(
        self, object_id: str, decide: Callable[[Content | None], Change[Content] | None]
    ) -> bool:
        """Whether `change` would change it as it is now: what is refused raises here already, and
        nothing is written before.
        """
        present = await self.load(object_id)
        return decide(present.content if present is not None else None) is not None

    async def change(
        self,
        object_id: str,
        subject: str,
        decide: Callable[[Content | None], Change[Content] | None],
    ) -> Content | None:
        """Change a document; the content that holds then.

        subject: what the audit log calls it. decide: what it is to be, from what it is; None leaves
        it. It may be called again when another replica was quicker, and what it raises is raised.
        """
        present = await self.load(object_id)
        for _ in range(CONFLICTS_MAX):
            wanted = decide(present.content if present is not None else None)
            if wanted is None:
                return present.content if present is not None else None
            conflict = await self._commit(object_id, subject, present, wanted)
            if conflict is None:
                return wanted.content
            present = conflict
        raise Aborted("DOCUMENT_BUSY", "other changes came first each time", retry_after_ms=100)

    async def _commit(
        self,
        object_id: str,
        subject: str,
        present: Kept[Content] | None,
        wanted: Change[Content],
    ) -> Kept[Content] | None:
        """None when it is committed; else the document as another replica left it."""
        at_ms = self._store.now_ms()
        before = present.stored.version if present is not None else 0
        entries = []
        if wanted.by is not None:
            entry = audit.entry_of(
                wanted.by,
                object_id,
                before + 1,
                at_ms,
                wanted.before,
                wanted.after,
                subject=subject,
            )
            entries.append(entry.item(at_ms))
        outcome = await self._store.commit(
            Commit(
                table_id=object_id,
                expected=present.stored if present is not None else None,
                blob=DOCUMENT + self._encode(wanted.content),
                event=b"",
                deadline_ms=None,
                outbox=entries,
                trim_events_below=NEVER,
            )
        )
        if isinstance(outcome, Committed):
            return None
        if isinstance(outcome, Conflict):
            return self._kept(outcome.present)
        raise outcome.error()

    def _kept(self, stored: Stored) -> Kept[Content]:
        if stored.blob[:1] != DOCUMENT:
            raise Aborted("NO_DOCUMENT", "a table is stored under this id")
        return Kept(stored, self._decode(stored.blob[1:]))
