"""The shuffler as a process: what it starts with, and how it ends."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from doorcard.shuffler.v1 import shuffler_pb2 as pb
from doorcard.shuffler.v1 import shuffler_pb2_grpc

from services.runtime.channels import call_sync, connect_sync
from services.runtime.ready import Ready, read_ready
from services.runtime.sealing import SealKeys, new_key
from services.shuffler.receipts import ReceiptKeys
from tests.conftest import Room


def environment(room: Room) -> dict[str, str]:
    seal_keys, receipt_keys = room.folder / "seal.json", room.folder / "receipt.json"
    seal_keys.write_text(SealKeys("room", {"deck-1": new_key()}).to_json())
    receipt_keys.write_text(ReceiptKeys.generate("r1").to_json())
    own = {
        "LISTEN": "127.0.0.1:0",
        "METRICS_LISTEN": "127.0.0.1:0",
        "READY_FILE": str(room.folder / "ready.json"),
        "AUTH_KEYS_FILE": str(room.auth_keys_file),
        "SHUFFLER_SEAL_KEYS_FILE": str(seal_keys),
        "SHUFFLER_RECEIPT_KEYS_FILE": str(receipt_keys),
    }
    plain = {name: value for name, value in os.environ.items() if not name.startswith("DOORCARD_")}
    return plain | {f"DOORCARD_{name}": value for name, value in own.items()}


def started(variables: dict[str, str]) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "services.shuffler"]
    return subprocess.Popen(command, env=variables, stderr=subprocess.PIPE, text=True)


def ready(process: "subprocess.Popen[str]", file: Path) -> Ready:
    end = time.monotonic() + 30
    while (found := read_ready(file)) is None:
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.02)
    return found


def test_it_deals_logs_no_card_and_ends_with_0_at_sigterm(room: Room) -> None:
    variables = environment(room)
    with started(variables) as process:
        try:
            port = ready(process, Path(variables["DOORCARD_READY_FILE"])).grpc
            settings = room.settings(token_file=room.token_file("table-1", ["service"]))
            with connect_sync(f"127.0.0.1:{port}", settings) as channel:
                stub = shuffler_pb2_grpc.ShufflerServiceStub(channel)
                hand: dict[str, Any] = {"table_id": "t", "hand_id": "h"}
                deck = call_sync(
                    stub.CreateDeck, pb.CreateDeckRequest(request_id="r", **hand), timeout_s=5
                )
                drawn = call_sync(
                    stub.Draw,
                    pb.DrawRequest(sealed_deck=deck.sealed_deck, positions=[0, 1], **hand),
                    timeout_s=5,
                )
        finally:
            process.send_signal(signal.SIGTERM)
        _, logged = process.communicate(timeout=20)
    assert process.returncode == 0
    lines = [json.loads(line) for line in logged.splitlines()]
    [line] = [each for each in lines if each["event"] == "deck_drawn"]
    assert (line["positions"], line["caller"]) == ([0, 1], "table-1")
    assert not any(f'"{card.card}"' in logged for card in drawn.cards)


@pytest.mark.parametrize("variable", ["SHUFFLER_SEAL_KEYS_FILE", "SHUFFLER_RECEIPT_KEYS_FILE"])
def test_without_keys_it_says_which_setting_is_missing(room: Room, variable: str) -> None:
    variables = environment(room)
    del variables[f"DOORCARD_{variable}"]
    with started(variables) as process:
        _, said = process.communicate(timeout=20)
    assert process.returncode == 2
    assert f"DOORCARD_{variable}" in said


def test_a_broken_key_file_is_named_and_not_quoted(room: Room) -> None:
    variables = environment(room)
    file = Path(variables["DOORCARD_SHUFFLER_RECEIPT_KEYS_FILE"])
    file.write_text('{"keys": [{"id": "r1", "private_key": "c2VjcmV0"}]}')
    with started(variables) as process:
        _, said = process.communicate(timeout=20)
    assert process.returncode == 2
    assert str(file) in said
    assert "c2VjcmV0" not in said
