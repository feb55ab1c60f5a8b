"""`python -m tools`: write every generated file of the repository; `--check` only compares.

Exit status 1 with the names of the files that are not current.
"""

import sys

from tools.generated import Generated, everything


def stale(files: Generated) -> list[str]:
    """Names of the files whose content on disk is another."""
    return [
        str(path)
        for path, text in files.items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]


def start(arguments: list[str]) -> int:
    """The exit status."""
    files = everything()
    old = stale(files)
    if arguments == ["--check"]:
        for name in old:
            print(f"{name} is not current: make pages", file=sys.stderr)
        return int(bool(old))
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    print(f"{len(files)} files, {len(old)} of them changed")
    return 0


if __name__ == "__main__":
    sys.exit(start(sys.argv[1:]))
