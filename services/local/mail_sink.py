"""An SMTP server that keeps every mail as an `.eml` file and sends none on."""

import argparse
import asyncio
import hashlib
import os
import signal
from email import message_from_bytes
from pathlib import Path
from typing import Final

from aiosmtpd.smtp import SMTP, Envelope, Session

from services.runtime.listen import split_listen

MAIL_BYTES_MAX: Final = 1 << 20


class EmlFolder:
    """Keeps mails, one file for each Message-ID: a mail that is sent twice is kept once."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder = folder

    async def handle_DATA(self, _server: SMTP, _session: Session, envelope: Envelope) -> str:  # noqa: N802
        """Called by aiosmtpd for a whole mail; its answer goes to the sender."""
        content = envelope.content or b""
        content = content if isinstance(content, bytes) else content.encode()
        identity = message_from_bytes(content).get("Message-ID") or content.hex()
        name = hashlib.sha256(identity.encode()).hexdigest()[:32]
        part = self._folder / f"{name}.part"
        part.write_bytes(content)
        os.replace(part, self._folder / f"{name}.eml")
        return "250 kept"


def kept(folder: Path) -> list[Path]:
    """The mails in a folder, oldest first."""
    return sorted(folder.glob("*.eml"), key=lambda mail: mail.stat().st_mtime_ns)


async def serve(listen: str, folder: Path) -> None:
    """Serve until SIGTERM or SIGINT."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    sink = EmlFolder(folder)
    host, port = split_listen(listen)
    server = await loop.create_server(
        lambda: SMTP(sink, data_size_limit=MAIL_BYTES_MAX, enable_SMTPUTF8=True, loop=loop),
        host,
        port,
        reuse_port=True,
    )
    async with server:
        await ended.wait()


def main() -> None:
    """`python -m services.local.mail_sink HOST:PORT FOLDER`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("listen", help="host:port")
    parser.add_argument("folder", type=Path, help="where the .eml files go")
    given = parser.parse_args()
    asyncio.run(serve(given.listen, given.folder))


if __name__ == "__main__":
    main()
