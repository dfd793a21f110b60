"""Make the stub of the compiled module: `python bindings/make_stub.py src/evertree/_core.pyi`.

nanobind knows names and arguments; stub.pat knows what C++ calls an object.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
MODULE = "evertree._core"


def make_stub(stub: Path) -> None:
    """Write the stub of the module that is installed, in the style of the house."""
    configured = ["--config", str(HERE.parent / "pyproject.toml"), "--quiet", str(stub)]
    _python("nanobind.stubgen", "-q", "-m", MODULE, "-p", str(HERE / "stub.pat"), "-o", str(stub))
    _python("ruff", "check", "--select", "I", "--fix-only", *configured)
    _python("ruff", "format", *configured)


def _python(module: str, *arguments: str) -> None:
    subprocess.run([sys.executable, "-m", module, *arguments], check=True)  # noqa: S603


if __name__ == "__main__":
    make_stub(Path(sys.argv[1]))
