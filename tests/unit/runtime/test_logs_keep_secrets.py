"""No card, token, address or e-mail leaves in a log line, whoever writes it."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from services.runtime import logs

JWT = "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJhbm5hIn0.c2lnbmF0dXJl"


def cleaned(**event: Any) -> str:
    return json.dumps(logs.scrub(None, "info", event))


@pytest.mark.parametrize(
    "key",
    ["cards", "down_cards", "card", "sealed_deck", "token", "authorization", "x-auth-token",
     "email", "player_email", "mail_address", "peer", "ip", "password", "seed", "salt",
     "database_url"],
)  # fmt: skip
def test_values_under_secret_keys_are_removed(key: str) -> None:
    assert "hush" not in cleaned(**{key: "hush"})
    assert "51" not in cleaned(**{key: 51})
    assert "hush" not in cleaned(facts={key: ["hush"]})


@pytest.mark.parametrize(
    "secret",
    [JWT, "anna@club.example", "192.168.17.4", "2001:db8:0:1:a:b:c:d", "AsKd", "7c 7d 2h", "Td,9s",
     "redis://user:hunter2@"],
)  # fmt: skip
def test_secrets_inside_texts_are_cut_out(secret: str) -> None:
    line = cleaned(event=f"it said {secret} loudly", facts=[f"<{secret}>"], more={"x": secret})
    assert secret not in line
    assert "loudly" in line


def test_single_cards_are_cut_out_alone_quoted_or_in_lists() -> None:
    assert "As" not in cleaned(shown="As", why="bad card 'As'", row=["As"], two=["As", "Kd"])


def test_what_is_no_secret_stays() -> None:
    event = {
        "event": "hand_settled", "hand": "01a22da9-9e1c-7381-91ae-ab033c2a5a30", "pots": 2,
        "at": "2026-11-30T18:14:40.123Z", "took_ms": 1.5,
        "method": "/doorcard.table.v1.TableService/Act",
        "token_id": "77214", "seat": None, "ok": True,
    }  # fmt: skip
    assert logs.scrub(None, "info", dict(event)) == event


def test_an_id_stays_whole_even_where_it_looks_like_cards() -> None:
    entry = "4c5d2c3d-6c7d-8c9d-9d8c-2c3d4c5d6c7d"
    event = {"entry": entry, "event": f"parked {entry}", "both": [entry, entry]}
    assert logs.scrub(None, "info", dict(event)) == event
    assert cleaned(event=f"{entry} holds 4c5d").count(logs.REMOVED) == 1


def test_bytes_are_counted_and_long_texts_are_cut() -> None:
    assert logs.scrub(None, "info", {"blob": b"secret"}) == {"blob": "6 bytes"}
    assert len(cleaned(text="x" * 10_000)) < 5_000


def test_every_logger_of_a_process_writes_scrubbed_json_lines_with_ids() -> None:
    program = """
import logging
from services.runtime import logs
logs.configure("wallet", "info")
logs.bind(trace="t-1", table="table-7")
logs.logger.info("paid", amount=5, email="anna@club.example")
logs.logger.debug("too fine")
logging.getLogger("celery.worker").warning("connected to %s", "redis://u:hunter2@10.0.0.9/0")
try:
    raise ValueError("bad cards AsKd from anna@club.example")
except ValueError:
    logs.logger.error("failed", exc_info=True)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == ""
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert [line["event"] for line in lines][::2] == ["paid", "failed"]
    assert {line["service"] for line in lines} == {"wallet"}
    assert {(line["trace"], line["table"]) for line in lines} == {("t-1", "table-7")}
    assert [line["level"] for line in lines] == ["info", "warning", "error"]
    assert lines[1]["logger"] == "celery.worker"
    assert "Traceback" in lines[2]["exception"]
    for secret in ("anna@", "hunter2", "10.0.0.9", "AsKd"):
        assert secret not in done.stderr


def test_grpcs_own_log_with_addresses_of_peers_stays_silent() -> None:
    program = """
import services
import asyncio, grpc
from grpc import aio

begun = asyncio.Event()

async def hang(request, context):
    begun.set()
    await asyncio.Event().wait()

async def main():
    server = aio.server()
    method = {"Hang": grpc.unary_unary_rpc_method_handler(hang)}
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("a.B", method)])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        call = channel.unary_unary("/a.B/Hang")(b"")
        await begun.wait()
        await server.stop(0)
        print(await call.code())

asyncio.run(main())
"""
    environment = {key: value for key, value in os.environ.items() if key != "GRPC_VERBOSITY"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "StatusCode.UNAVAILABLE\n"
    assert "127.0.0.1" not in done.stderr
