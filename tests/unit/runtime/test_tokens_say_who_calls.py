"""Tokens: what holds, what does not, and for whom a caller may act."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import copy_context
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from services.runtime import auth
from services.runtime.auth import Caller, KeyFileVerifier, TokenFile, TokenSigner, TokenVerifier
from services.runtime.errors import InvalidArgument, PermissionDenied, Unauthenticated
from services.runtime.roles import METHOD_ROLES, Role

KEY = Ed25519PrivateKey.generate()
SIGNER = TokenSigner(KEY, "k1")


def verifier() -> TokenVerifier:
    return TokenVerifier({"k1": KEY.public_key()})


DAY_S = 86_400
"""Parameters are made when tests are collected, which may be long before they run."""


def signed(key: Any = KEY, kid: Any = "k1", algorithm: str = "EdDSA", **changes: Any) -> str:
    claims = {"sub": "anna", "roles": ["player"], "aud": "doorcard", "exp": time.time() + DAY_S}
    claims.update(changes)
    claims = {name: value for name, value in claims.items() if value is not None}
    return jwt.encode(claims, key, algorithm, headers={} if kid is None else {"kid": kid})


def test_a_minted_token_names_its_bearer() -> None:
    token = SIGNER.mint("gw", ["service"], 60, act_for=["bot-"], email="a@b.example", name="Gate")
    caller = verifier().verify(token)
    assert caller.subject == "gw"
    assert caller.roles == {Role.SERVICE}
    assert caller.act_for == ("bot-",)
    assert (caller.email, caller.name) == ("a@b.example", "Gate")
    assert caller.expires_at_s > time.time() + 50


@pytest.mark.parametrize(
    "token",
    [
        "",
        "rubbish",
        "a.b.c",
        "x" * 5000,
        signed(Ed25519PrivateKey.generate()),
        signed(kid="other"),
        signed(kid=None),
        signed("0" * 32, algorithm="HS256"),
        signed("", algorithm="none"),
        signed(aud="elsewhere"),
        signed(aud=None),
        signed(exp=None),
        signed(sub=None),
        signed(sub="two words"),
        signed(sub=""),
        signed(sub="x" * 65),
        signed(roles="player"),
        signed(act_for=["bot-", ""]),
        signed(act_for="bot-"),
        signed(email=7),
        signed(nbf=time.time() + DAY_S / 2),
    ],
)
def test_what_does_not_hold_is_token_invalid(token: str) -> None:
    with pytest.raises(Unauthenticated) as refused:
        verifier().verify(token)
    assert refused.value.reason == "TOKEN_INVALID"
    assert not token or token not in str(refused.value)


def test_an_expired_token_says_so() -> None:
    with pytest.raises(Unauthenticated) as refused:
        verifier().verify(signed(exp=time.time() - 60))
    assert refused.value.reason == "TOKEN_EXPIRED"


def test_a_token_made_by_a_clock_ahead_of_ours_holds() -> None:
    ahead_s = time.time() + 300
    assert verifier().verify(signed(iat=ahead_s, exp=ahead_s + 600)).subject == "anna"


def test_a_remembered_token_still_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = verifier()
    token = SIGNER.mint("anna", ["player"], 60)
    assert checks.verify(token) is checks.verify(token)
    later_s = time.time() + 61 + auth.CLOCK_SKEW_S
    monkeypatch.setattr("services.runtime.auth.time.time", lambda: later_s)
    assert token in checks._verified
    # The library has a clock of its own; it is enough that memory alone no longer answers.
    monkeypatch.setattr(checks, "_verify", _refuse)
    with pytest.raises(Unauthenticated):
        checks.verify(token)


def _refuse(_token: str) -> Caller:
    raise Unauthenticated("TOKEN_EXPIRED", "the token has expired")


def test_memory_of_tokens_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "TOKENS_KEPT_MAX", 3)
    checks = verifier()
    for number in range(5):
        checks.verify(SIGNER.mint(f"p{number}", ["player"], 60))
    assert len(checks._verified) == 3


def test_unknown_roles_open_nothing() -> None:
    assert verifier().verify(signed(roles=["owner", "player"])).roles == {Role.PLAYER}


def test_mint_refuses_an_impossible_subject() -> None:
    with pytest.raises(ValueError, match="subject"):
        SIGNER.mint("two words", ["player"], 60)


# -- key and token files


def pem_of(key: Ed25519PrivateKey) -> str:
    encoded = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return encoded.decode()


def test_a_key_taken_out_of_the_file_stops_holding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auth, "KEYS_LOOK_S", 0.0)
    path = tmp_path / "keys.json"
    path.write_text(json.dumps({"k1": pem_of(KEY)}))
    checks = KeyFileVerifier(path)
    token = SIGNER.mint("anna", ["player"], 60)
    assert checks.verify(token).subject == "anna"
    path.write_text(json.dumps({"second": pem_of(Ed25519PrivateKey.generate())}))
    with pytest.raises(Unauthenticated):
        checks.verify(token)


def test_an_unreadable_key_file_leaves_the_last_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auth, "KEYS_LOOK_S", 0.0)
    path = tmp_path / "keys.json"
    path.write_text(json.dumps({"k1": pem_of(KEY)}))
    checks = KeyFileVerifier(path)
    path.write_text("{")
    assert checks.verify(SIGNER.mint("anna", ["player"], 60)).subject == "anna"


@pytest.mark.parametrize("content", ["[]", "{}", "{", '{"k": "no pem"}'])
def test_a_bad_key_file_is_refused_at_the_start(tmp_path: Path, content: str) -> None:
    path = tmp_path / "keys.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"keys\.json"):
        KeyFileVerifier(path)


def test_a_renewed_token_file_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auth, "KEYS_LOOK_S", 0.0)
    path = tmp_path / "token"
    path.write_text("first\n")
    tokens = TokenFile(path)
    assert tokens.current() == "first"
    path.write_text("second\n")
    assert tokens.current() == "second"
    os.unlink(path)
    assert tokens.current() == "second"


# -- for whom


@contextmanager
def header(player: str) -> Iterator[None]:
    token = auth._requested_player.set(player)
    yield
    auth._requested_player.reset(token)


ANNA = Caller("anna", frozenset({Role.PLAYER}))
GATEWAY = Caller("gw", frozenset({Role.SERVICE}), act_for=("bot-", "web-"))
EVERYONE = Caller("gw", frozenset({Role.SERVICE}), act_for=("*",))
SHUFFLER = Caller("shuffler", frozenset({Role.SERVICE}))


def test_a_player_acts_as_himself() -> None:
    assert auth.acting_player(ANNA) == "anna"
    assert auth.acting_player(ANNA, "anna") == "anna"


def test_a_gateway_acts_for_players_of_its_prefixes() -> None:
    assert auth.acting_player(GATEWAY, "bot-1") == "bot-1"
    assert auth.acting_player(EVERYONE, "anna") == "anna"
    with header("web-2"):
        assert auth.acting_player(GATEWAY) == "web-2"
        assert auth.acting_player(GATEWAY, "bot-1") == "bot-1"


@pytest.mark.parametrize(
    ("caller", "requested", "reason"),
    [
        (ANNA, "ben", "NOT_YOUR_PLAYER"),
        (GATEWAY, "anna", "NOT_YOUR_PLAYER"),
        (GATEWAY, None, "PLAYER_NOT_NAMED"),
        (SHUFFLER, None, "NOT_A_PLAYER"),
        (SHUFFLER, "anna", "NOT_YOUR_PLAYER"),
        (SHUFFLER, "shuffler", "NOT_A_PLAYER"),
    ],
)
def test_nobody_else_acts_for_a_player(caller: Caller, requested: str | None, reason: str) -> None:
    with pytest.raises(PermissionDenied) as refused:
        auth.acting_player(caller, requested)
    assert refused.value.reason == reason


def test_a_player_cannot_become_another_by_header() -> None:
    with header("ben"), pytest.raises(PermissionDenied):
        auth.acting_player(ANNA)


def test_a_malformed_player_is_an_invalid_argument() -> None:
    with pytest.raises(InvalidArgument):
        auth.acting_player(EVERYONE, "two words")


def test_outside_a_call_there_is_no_caller() -> None:
    with pytest.raises(Unauthenticated):
        copy_context().run(auth.current_caller)


def test_a_gateway_may_call_only_what_players_may() -> None:
    for method, roles in METHOD_ROLES.items():
        if Role.PLAYER in roles and Role.SERVICE in roles:
            auth.check_allowed(method, GATEWAY)
        else:
            with pytest.raises(PermissionDenied):
                auth.check_allowed(method, EVERYONE)
        if Role.SERVICE in roles:
            auth.check_allowed(method, SHUFFLER)


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.AUDITOR])
def test_staff_never_act_as_players_whatever_their_token_says(role: Role) -> None:
    staff = Caller("olga", frozenset({role}), act_for=("*",))
    with pytest.raises(PermissionDenied):
        auth.acting_player(staff, "anna")
