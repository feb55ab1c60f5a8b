"""Who calls: EdDSA JSON Web Tokens, made and verified.

A token carries `sub` (a player id or a service's name), `roles`, `aud`, `exp`, and where known
`name`, `email` and `act_for` (prefixes of player ids a gateway may act for; "*" for all). Its
header names the key by `kid`.
"""

import json
import time
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from services.runtime.errors import PermissionDenied, Unauthenticated
from services.runtime.ids import check_player_id, is_name
from services.runtime.roles import METHOD_ROLES, Role

ALGORITHM: Final = "EdDSA"
CLOCK_SKEW_S: Final = 5
TOKENS_KEPT_MAX: Final = 10_000
TOKEN_BYTES_MAX: Final = 4096
KEYS_LOOK_S: Final = 1.0
"""A change of the key file is noticed within this time."""
ROLE_SETS_KEPT: Final = 64
EVERY_PLAYER: Final = "*"


@dataclass(frozen=True, slots=True)
class Caller:
    """The bearer of a verified token."""

    subject: str
    """Player id, or the name of a service or operator."""
    roles: frozenset[Role]
    act_for: tuple[str, ...] = ()
    """Prefixes of the player ids he may act for."""
    email: str = ""
    name: str = ""
    expires_at_s: int = 0
    """Seconds since 1970 UTC."""

    def may_act_for(self, player_id: str) -> bool:
        """Whether a prefix of `act_for` covers the player. Never for staff, who would see cards."""
        return not self.roles.isdisjoint(_MAY_ACT_FOR) and any(
            each == EVERY_PLAYER or player_id.startswith(each) for each in self.act_for
        )

    def holds_for_s(self) -> float:
        """Seconds until the token has expired, clocks that differ allowed for; 0 when it has."""
        return max(0.0, self.expires_at_s + CLOCK_SKEW_S - time.time())


_MAY_ACT_FOR: Final = frozenset({Role.PLAYER, Role.SERVICE, Role.CASHIER})
_caller: ContextVar[Caller] = ContextVar("caller")
_requested_player: ContextVar[str] = ContextVar("requested_player", default="")


def current_caller() -> Caller:
    """Who made the call being answered. Raises Unauthenticated outside one, and in methods open to
    all.
    """
    caller = _caller.get(None)
    if caller is None:
        raise Unauthenticated("TOKEN_MISSING", "no token was sent")
    return caller


def enter_call(caller: Caller, requested_player: str) -> None:
    """Make `caller` the current one for this task; `requested_player` is the `x-doorcard-player`
    header or "".
    """
    _caller.set(caller)
    _requested_player.set(requested_player)


def acting_player(caller: Caller, requested_player_id: str | None = None) -> str:
    """The player a request is for: the caller himself, or one he names and may act for.

    Without `requested_player_id` the call's `x-doorcard-player` header names the player. Raises
    PermissionDenied (NOT_YOUR_PLAYER, PLAYER_NOT_NAMED, NOT_A_PLAYER), InvalidArgument for a
    malformed id.
    """
    requested = requested_player_id or _requested_player.get()
    if requested:
        check_player_id(requested)
        if caller.may_act_for(requested):
            return requested
        if requested != caller.subject:
            raise PermissionDenied("NOT_YOUR_PLAYER", "the token does not act for this player")
    elif caller.act_for:
        raise PermissionDenied("PLAYER_NOT_NAMED", "say which player this is for")
    if Role.PLAYER not in caller.roles:
        raise PermissionDenied("NOT_A_PLAYER", "the token is not a player's")
    return caller.subject


def check_allowed(method: str, caller: Caller) -> None:
    """PermissionDenied unless `METHOD_ROLES` opens the method to one of the caller's roles.

    A gateway, which is a service that acts for players, may do no more than players: it stands
    where everybody can reach it, and must get at no hidden card or foreign money.
    """
    opened = METHOD_ROLES.get(method, frozenset())
    if caller.act_for and Role.PLAYER not in opened:
        opened -= {Role.SERVICE}
    if caller.roles.isdisjoint(opened):
        raise PermissionDenied("ROLE_NOT_ALLOWED", "no role of the token may call this method")


class TokenSigner:
    """Makes tokens with one private key.

    kid: the id under which verifiers know the public key.
    """

    def __init__(
        self, private_key: Ed25519PrivateKey, kid: str, *, audience: str = "doorcard"
    ) -> None:
        self._private_key = private_key
        self._kid = kid
        self._audience = audience

    def mint(
        self,
        subject: str,
        roles: Iterable[Role | str],
        ttl_s: float,
        act_for: Iterable[str] = (),
        email: str = "",
        name: str = "",
    ) -> str:
        """A token that holds for `ttl_s` seconds from now. Raises ValueError for one that nobody
        would believe.
        """
        if not is_name(subject):
            raise ValueError(f"subject {subject!r} is not a possible id")
        prefixes = list(act_for)
        if "" in prefixes:
            raise ValueError("an empty act_for prefix would cover everyone")
        issued_s = int(time.time())
        claims: dict[str, Any] = {
            "sub": subject,
            "roles": sorted(Role(role).value for role in roles),
            "aud": self._audience,
            "iat": issued_s,
            "exp": int(issued_s + ttl_s),
        }
        optional = {"act_for": prefixes, "email": email, "name": name}
        claims.update({key: value for key, value in optional.items() if value})
        return jwt.encode(claims, self._private_key, ALGORITHM, headers={"kid": self._kid})


class TokenVerifier:
    """Verifies tokens against a set of public keys, and remembers what it verified until it
    expires.
    """

    def __init__(self, keys: Mapping[str, Ed25519PublicKey], audience: str = "doorcard") -> None:
        self._keys = dict(keys)
        self._audience = audience
        self._verified: dict[str, Caller] = {}

    def verify(self, token: str) -> Caller:
        """The bearer. Raises Unauthenticated: TOKEN_EXPIRED, or else TOKEN_INVALID."""
        caller = self._verified.get(token)
        if caller is not None:
            if caller.holds_for_s():
                return caller
            del self._verified[token]
        caller = self._verify(token)
        while len(self._verified) >= TOKENS_KEPT_MAX:
            del self._verified[next(iter(self._verified))]
        self._verified[token] = caller
        return caller

    def replace_keys(self, keys: Mapping[str, Ed25519PublicKey]) -> None:
        """Believe these keys from now on, and only these: what others signed no longer holds."""
        self._keys = dict(keys)
        self._verified.clear()

    def _verify(self, token: str) -> Caller:
        if len(token) > TOKEN_BYTES_MAX:
            raise Unauthenticated("TOKEN_INVALID", f"a token has at most {TOKEN_BYTES_MAX} bytes")
        try:
            kid = jwt.get_unverified_header(token).get("kid")
            key = self._keys.get(kid) if isinstance(kid, str) else None
            if key is None:
                raise Unauthenticated("TOKEN_INVALID", "the token's kid names no key of this room")
            claims = jwt.decode(
                token,
                key,
                algorithms=[ALGORITHM],
                audience=self._audience,
                leeway=CLOCK_SKEW_S,
                # Whether it was made in our future says only that a clock is wrong, perhaps ours:
                # then we would refuse everybody.
                options={"require": ["exp", "aud", "sub"], "verify_iat": False},
            )
        except jwt.ExpiredSignatureError:
            raise Unauthenticated("TOKEN_EXPIRED", "the token has expired") from None
        except jwt.InvalidTokenError as error:
            # The kind of fault helps the integrator; the library's text may quote the token.
            kind = type(error).__name__.removesuffix("Error")
            raise Unauthenticated("TOKEN_INVALID", f"the token does not hold: {kind}") from None
        return _caller_of(claims)


class KeyFileVerifier(TokenVerifier):
    """A verifier whose keys come from a file (`read_public_keys`) and follow its changes."""

    def __init__(self, path: Path, audience: str = "doorcard") -> None:
        super().__init__(read_public_keys(path), audience)
        self._path = path
        self._stamp = _stamp(path)
        self._look_again_s = time.monotonic() + KEYS_LOOK_S

    def verify(self, token: str) -> Caller:
        """As `TokenVerifier.verify`. A key file that has become unreadable leaves the last good
        keys.
        """
        now_s = time.monotonic()
        if now_s >= self._look_again_s:
            self._look_again_s = now_s + KEYS_LOOK_S
            self._follow_file()
        return super().verify(token)

    def _follow_file(self) -> None:
        try:
            stamp = _stamp(self._path)
            if stamp != self._stamp:
                self.replace_keys(read_public_keys(self._path))
                self._stamp = stamp
        except (OSError, ValueError):
            return


class TokenFile:
    """This process's own token, read again whenever its file changes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int, int] | None = None
        self._token = ""
        self._look_again_s = 0.0

    def current(self) -> str:
        """The token. Raises OSError if the file was never readable; later the last one is kept."""
        now_s = time.monotonic()
        if now_s >= self._look_again_s:
            self._look_again_s = now_s + KEYS_LOOK_S
            try:
                stamp = _stamp(self._path)
                if stamp != self._stamp:
                    self._token = self._path.read_text(encoding="ascii").strip()
                    self._stamp = stamp
            except OSError:
                if not self._token:
                    raise
        return self._token


def read_public_keys(path: Path) -> dict[str, Ed25519PublicKey]:
    """Key id -> key from a JSON object of PEM texts. Raises ValueError naming the file and the key
    id.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: not JSON: {error}") from error
    if not isinstance(content, dict) or not content:
        raise ValueError(f"{path}: a JSON object of key id -> PEM is needed")
    keys: dict[str, Ed25519PublicKey] = {}
    for kid, pem in content.items():
        try:
            key = load_pem_public_key(str(pem).encode())
        except ValueError as error:
            raise ValueError(f"{path}: key {kid!r} is not in PEM") from error
        if not isinstance(key, Ed25519PublicKey):
            raise ValueError(f"{path}: key {kid!r} is not an Ed25519 public key")
        keys[kid] = key
    return keys


def _caller_of(claims: Mapping[str, Any]) -> Caller:
    subject, roles = claims["sub"], _texts(claims, "roles")
    if not is_name(subject):
        raise Unauthenticated("TOKEN_INVALID", "the token's sub is not a possible player id")
    act_for = _texts(claims, "act_for")
    if "" in act_for:
        raise Unauthenticated("TOKEN_INVALID", "an empty act_for prefix would cover everyone")
    return Caller(
        subject=subject,
        roles=_known(roles),
        act_for=act_for,
        email=_text(claims, "email"),
        name=_text(claims, "name"),
        expires_at_s=int(claims["exp"]),
    )


@lru_cache(maxsize=ROLE_SETS_KEPT)
def _known(roles: tuple[str, ...]) -> frozenset[Role]:
    """One set for all who have the same. A role of a later version of the room opens nothing."""
    known = {role.value for role in Role}
    return frozenset(Role(role) for role in roles if role in known)


def _text(claims: Mapping[str, Any], key: str) -> str:
    value = claims.get(key, "")
    if not isinstance(value, str):
        raise Unauthenticated("TOKEN_INVALID", f"the token's {key} is not a text")
    return value


def _texts(claims: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = claims.get(key, [])
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise Unauthenticated("TOKEN_INVALID", f"the token's {key} is not a list of texts")
    return tuple(value)


def _stamp(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_mtime_ns, found.st_size, found.st_ino
