"""What a command shows while it takes longer than a moment: on stderr, only where somebody
watches, and gone when it is done.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress


def progress_bar() -> Progress:
    """A bar for work whose parts can be counted."""
    console = Console(stderr=True)
    return Progress(console=console, transient=True, disable=not console.is_terminal)


@contextmanager
def spinner(what: str) -> Iterator[Callable[[str], None]]:
    """For work of unknown length; what is given says how far it is."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _what: None
        return
    with console.status(what) as status:
        yield status.update
