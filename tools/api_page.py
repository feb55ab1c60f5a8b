"""docs/API.md, from the protos: methods and who may call them, messages, enums."""

import re
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from grpc_tools import protoc  # type: ignore[import-untyped]

from services.runtime.roles import METHOD_ROLES

PROTOS: Final = Path(__file__).parent.parent / "protos"
MESSAGES: Final = FileDescriptorProto.MESSAGE_TYPE_FIELD_NUMBER
ENUMS: Final = FileDescriptorProto.ENUM_TYPE_FIELD_NUMBER
SERVICES: Final = FileDescriptorProto.SERVICE_FIELD_NUMBER
NESTED_MESSAGE: Final = 3
NESTED_ENUM: Final = 4
INNER: Final = 2
"""Of a message its fields, of a service its methods, of an enum its values."""
TYPES: Final = {
    1: "double", 2: "float", 3: "int64", 4: "uint64", 5: "int32", 6: "fixed64", 7: "fixed32",
    8: "bool", 9: "string", 12: "bytes", 13: "uint32", 15: "sfixed32", 16: "sfixed64",
    17: "sint32", 18: "sint64",
}  # fmt: skip
REPEATED: Final = 3

HEAD: Final = """# API

Generated from `protos/` by `make pages`; a test compares. Every call carries a token and a
deadline, every mutating one a `request_id` that makes it happen once; errors are
`google.rpc.Status` with a reason. What a call looks like in Python:
[the README's client](../README.md#a-client).
"""


def text() -> str:
    """The page."""
    files = descriptors()
    services = [part for file in files for part in _services(file)]
    messages = [part for file in files for part in _types(file)]
    return "\n".join([HEAD, "## Services\n", *services, "## Messages\n", *messages]) + "\n"


@cache
def descriptors() -> list[FileDescriptorProto]:
    """Our files with their comments, in the order of their names."""
    names = sorted(str(path.relative_to(PROTOS)) for path in PROTOS.rglob("*.proto"))
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "all"
        status = protoc.main(
            ["protoc", f"-I{PROTOS}", f"-I{Path(protoc.__file__).parent / '_proto'}",
             "--include_source_info", f"--descriptor_set_out={out}", *names]
        )  # fmt: skip
        if status:
            raise ValueError("the protos do not compile")
        return list(FileDescriptorSet.FromString(out.read_bytes()).file)


def _services(file: FileDescriptorProto) -> Iterator[str]:
    comments = _comments(file)
    for at, service in enumerate(file.service):
        full = f"{file.package}.{service.name}"
        yield f"### {full}\n\n{comments.get((SERVICES, at), '')}\n"
        yield "| method | takes | gives | for | |\n|---|---|---|---|---|"
        for number, method in enumerate(service.method):
            said = comments.get((SERVICES, at, INNER, number), "")
            takes = _named(method.input_type, streamed=method.client_streaming)
            gives = _named(method.output_type, streamed=method.server_streaming)
            roles = METHOD_ROLES[f"/{full}/{method.name}"]
            who = ", ".join(sorted(roles))
            yield f"| `{method.name}` | {takes} | {gives} | {who} | {said} |"
        yield ""


def _types(file: FileDescriptorProto) -> Iterator[str]:
    comments = _comments(file)
    for at, message in enumerate(file.message_type):
        yield from _message(message, file.package, (MESSAGES, at), comments)
    for at, enum in enumerate(file.enum_type):
        yield from _enum(enum, file.package, (ENUMS, at), comments)


def _message(
    message: Any, prefix: str, path: tuple[int, ...], comments: dict[tuple[int, ...], str]
) -> Iterator[str]:
    if message.options.map_entry:
        return
    full = f"{prefix}.{message.name}"
    yield f"### {_short(full)}\n\n{comments.get(path, '')}\n"
    if message.field:
        yield "| field | type | |\n|---|---|---|"
        maps = {nested.name: nested for nested in message.nested_type if nested.options.map_entry}
        for number, field in enumerate(message.field):
            said = comments.get((*path, INNER, number), "")
            yield f"| `{field.name}` | {_type(field, maps)} | {said} |"
        yield ""
    for number, nested in enumerate(message.nested_type):
        yield from _message(nested, full, (*path, NESTED_MESSAGE, number), comments)
    for number, enum in enumerate(message.enum_type):
        yield from _enum(enum, full, (*path, NESTED_ENUM, number), comments)


def _type(field: Any, maps: dict[str, Any]) -> str:
    entry = maps.get(field.type_name.rpartition(".")[2])
    if entry is not None:
        return f"map of {_type(entry.field[0], {})} to {_type(entry.field[1], {})}"
    kind = TYPES.get(field.type) or _linked(field.type_name)
    return f"repeated {kind}" if field.label == REPEATED else kind


def _enum(
    enum: Any, prefix: str, path: tuple[int, ...], comments: dict[tuple[int, ...], str]
) -> Iterator[str]:
    yield f"### {_short(f'{prefix}.{enum.name}')}\n\n{comments.get(path, '')}\n"
    yield "| value | |\n|---|---|"
    for number, value in enumerate(enum.value):
        yield f"| `{value.name}` | {comments.get((*path, INNER, number), '')} |"
    yield ""


def _comments(file: FileDescriptorProto) -> dict[tuple[int, ...], str]:
    return {
        tuple(each.path): " ".join(each.leading_comments.split()).replace("|", "\\|")
        for each in file.source_code_info.location
        if each.leading_comments
    }


def _named(full: str, *, streamed: bool) -> str:
    return f"{'stream of ' if streamed else ''}{_linked(full)}"


def _linked(full: str) -> str:
    name = full.removeprefix(".")
    if not name.startswith("doorcard."):
        return f"`{name}`"
    return f"[{_short(name)}](#{slug(_short(name))})"


def _short(full: str) -> str:
    """ "table.Seat" of "doorcard.table.v1.Seat"."""
    return re.sub(r"^\.?doorcard\.(\w+)\.v\d+\.", r"\1.", full)


def slug(heading: str) -> str:
    """A heading's anchor, as GitHub makes it."""
    bare = re.sub(r"[`*]", "", heading.lower())
    return re.sub(r"[^\w\- ]", "", bare).replace(" ", "-")
