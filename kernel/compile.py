"""Compiles the kernel into the wheel, which then belongs to one platform and any Python."""

import os
import shlex
import subprocess
import sysconfig
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE: Final = "doorcard_kernel/rank.c"
LIBRARY: Final = "doorcard_kernel/rank.so"
OPTIONS: Final = ("-O3", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared")


class CompileHook(BuildHookInterface[Any]):
    """Runs the C compiler: CC, else `cc`."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Put the shared library where the wheel takes it from."""
        compiler = shlex.split(os.environ.get("CC", "cc"))
        command = [*compiler, *OPTIONS, "-o", LIBRARY, SOURCE]
        subprocess.run(command, cwd=self.root, check=True)  # noqa: S603
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
        build_data["artifacts"].append(LIBRARY)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Leave nothing in the source tree."""
        (Path(self.root) / LIBRARY).unlink(missing_ok=True)
