"""Requests that wait for a stream are bounded."""

from typing import Any

import grpc
import pytest
from doorcard.table.v1 import table_pb2

from services.client import link as link_module
from services.client.link import Link
from services.runtime.errors import DoorcardError, ResourceExhausted


async def test_what_a_stream_does_not_take_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "QUEUED_MAX", 3)

    async def received(_link: Link, _message: Any) -> None:
        raise AssertionError("nobody answers")

    def ended(_link: Link, _error: DoorcardError) -> None:
        raise AssertionError("it is closed by us")

    channel = grpc.aio.insecure_channel("localhost:1")
    link = Link("localhost:1", channel, (), received, ended)
    for number in range(3):
        link.ask(table_pb2.PlayRequestFrame(request_id=str(number)))
    with pytest.raises(ResourceExhausted, match="STREAM_FULL"):
        link.ask(table_pb2.PlayRequestFrame())
    # A table that is followed is joined all the same.
    link.send(table_pb2.PlayRequestFrame(join=table_pb2.JoinTable()))
    await link.close()
    await channel.close()
