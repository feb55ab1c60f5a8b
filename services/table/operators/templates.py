"""Templates: what a table is to be, under a name."""

import asyncio
from typing import Final

import msgspec
from doorcard.table.v1 import admin_pb2, table_pb2

from services.runtime.clock import timestamp
from services.runtime.errors import Aborted, InvalidArgument, NotFound
from services.runtime.ids import NAME_RULE, is_name, uuid5_of
from services.table.draft.audit import Facts, Instruction
from services.table.operators.documents import Change, Documents
from services.table.state.creation import NewTable, new_table
from services.table.state.state import digest, is_repeat
from services.table.store.store import Store

SHELF: Final = "templates"
REQUESTS_MAX: Final = 4
_VALIDATED_AS: Final = "template"


class Template(msgspec.Struct, frozen=True, array_like=True):
    """A template as it is stored."""

    name: str
    table: bytes
    """A serialized CreateTableRequest without request_id."""
    number: int
    """Its version, 1 up."""
    changed_ms: int
    changed_by: str
    deleted: bool = False
    requests: tuple[bytes, ...] = ()
    """`digest` of the last requests that changed it."""

    def creation(self, request_id: str, name: str = "") -> table_pb2.CreateTableRequest:
        """What creates a table like this."""
        request = table_pb2.CreateTableRequest.FromString(self.table)
        request.request_id = request_id
        request.name = name or request.name
        return request

    def shown(self) -> admin_pb2.TableTemplate:
        """In the contract's words."""
        return admin_pb2.TableTemplate(
            name=self.name,
            table=table_pb2.CreateTableRequest.FromString(self.table),
            version=self.number,
            changed=timestamp(self.changed_ms),
            changed_by=self.changed_by,
        )

    @property
    def facts(self) -> Facts:
        """For the audit log."""
        if self.deleted:
            return {}
        table = table_pb2.CreateTableRequest.FromString(self.table)
        facts = {"template version": str(self.number)}
        for field, value in table.ListFields():
            facts[field.name] = str(value).strip().replace("\n", " ")
        return facts


class Templates:
    """The templates. Everything raises what `documents.Documents` does."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._documents = Documents(store, Template)

    async def put(
        self, name: str, table: table_pb2.CreateTableRequest, replaces: int, by: Instruction
    ) -> Template:
        """Keep a template that `check_template` has seen. Raises Aborted (VERSION_MOVED) when
        another version than `replaces` is there (0: none).
        """
        content = table.SerializeToString(deterministic=True)
        request = digest(f"{by.operator} {by.request_id}", ("put", name, content, replaces))

        def decide(present: Template | None) -> Change[Template] | None:
            if present is not None and _known(present, request):
                return None
            here = present.number if present is not None and not present.deleted else 0
            if here != replaces:
                raise Aborted(
                    "VERSION_MOVED", "another version is there", metadata={"version": str(here)}
                )
            made = Template(
                name=name,
                table=content,
                number=(present.number if present is not None else 0) + 1,
                changed_ms=self._store.now_ms(),
                changed_by=by.operator,
                requests=_with(present, request),
            )
            return Change(made, by, present.facts if present is not None else {}, made.facts)

        object_id = template_id(name)
        if await self._documents.would_change(object_id, decide):
            await self._store.shelves.put(SHELF, name, object_id)
        return _there(await self._documents.change(object_id, name, decide))

    async def get(self, name: str) -> Template:
        """A template. Raises NotFound (TEMPLATE_UNKNOWN)."""
        kept = await self._documents.load(template_id(check_name(name)))
        return _there(kept.content if kept is not None else None)

    async def page(self, after: str, limit: int) -> tuple[list[Template], str]:
        """Templates by name after one, and the last name that was looked at ("" at the end)."""
        listed = sorted(await self._store.shelves.read(SHELF))
        names = [name for name in listed if name > after][:limit]
        found = await asyncio.gather(*(self._documents.load(template_id(name)) for name in names))
        shown = [each.content for each in found if each is not None and not each.content.deleted]
        return shown, names[-1] if len(names) == limit else ""

    async def delete(self, name: str, by: Instruction) -> None:
        """Forget a template. Raises NotFound (TEMPLATE_UNKNOWN)."""
        request = digest(f"{by.operator} {by.request_id}", ("delete", name))

        def decide(present: Template | None) -> Change[Template] | None:
            if present is not None and _known(present, request):
                return None
            gone = msgspec.structs.replace(
                _there(present), deleted=True, requests=_with(present, request)
            )
            return Change(gone, by, _there(present).facts, {})

        await self._documents.change(template_id(check_name(name)), name, decide)
        await self._store.shelves.take_off(SHELF, name)


def template_id(name: str) -> str:
    """The id that a template is stored under."""
    return uuid5_of("template", name)


def check_name(name: str) -> str:
    """Raises InvalidArgument."""
    if not is_name(name):
        raise InvalidArgument.of_field("name", f"must be {NAME_RULE}")
    return name


def check_template(name: str, table: table_pb2.CreateTableRequest) -> NewTable:
    """The table that it would create. Raises InvalidArgument with every fault that a creation would
    have.
    """
    check_name(name)
    if table.request_id:
        raise InvalidArgument.of_field("table.request_id", "must be empty in a template")
    request = table_pb2.CreateTableRequest()
    request.CopyFrom(table)
    request.request_id = _VALIDATED_AS
    return new_table(request)


def _there(template: Template | None) -> Template:
    if template is None or template.deleted:
        raise NotFound("TEMPLATE_UNKNOWN", "there is no such template")
    return template


def _known(present: Template, request: bytes) -> bool:
    return any(is_repeat(known, request) for known in present.requests)


def _with(present: Template | None, request: bytes) -> tuple[bytes, ...]:
    before = present.requests if present is not None else ()
    return (*before[1 - REQUESTS_MAX :], request)
