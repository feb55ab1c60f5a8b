"""Checks that stay on in production: what must hold whatever was fed in."""


class InvariantError(RuntimeError):
    """Something that cannot happen did: the state must not be used any further."""


def require(holds: bool, what: str) -> None:
    """Raises InvariantError with `what` unless `holds`."""
    if not holds:
        raise InvariantError(what)
