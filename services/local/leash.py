"""Becomes another program that cannot outlive the process that started it.

    python -I -S leash.py SIGNAL USER COMMAND...

asks the kernel to send SIGNAL when the starter dies (Linux; more exactly: when the thread that
started it ends), then executes COMMAND under the same process id, as USER unless that is "-". Runs
without site-packages, so that it costs a few milliseconds.
"""

import ctypes
import os
import pwd
import sys
from typing import NoReturn

PR_SET_PDEATHSIG = 1
STARTER_GONE = 3
"""Exit status when the starter died before the leash held."""


def main(signal_number: int, user: str, command: list[str]) -> NoReturn:
    """Put the leash on and become `command`."""
    starter = int(os.environ.pop("LEASH_STARTER"))
    if user != "-":
        entry = pwd.getpwnam(user)
        os.initgroups(user, entry.pw_gid)
        os.setgid(entry.pw_gid)
        os.setuid(entry.pw_uid)
        os.environ["HOME"] = entry.pw_dir
    if sys.platform == "linux":
        # After the change of user, which would undo it.
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal_number)
        if os.getppid() != starter:
            sys.exit(STARTER_GONE)
    os.execvp(command[0], command)  # noqa: S606 (the supervisor's own command)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
