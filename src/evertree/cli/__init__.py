"""The command `evertree`. One file per command; this one only finds it and says what went wrong."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import evertree
from evertree.cli import run
from evertree.cli.wording import with_options
from evertree.errors import EvertreeError

COMMANDS = (run,)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the answer is the exit code: 0 good, 1 a promise broken, 2 an error."""
    parser = argparse.ArgumentParser(prog="evertree", description=evertree.__doc__.splitlines()[0])
    parser.add_argument("--version", action="version", version=f"evertree {evertree.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for command in COMMANDS:
        command.add(commands)
    options = parser.parse_args(arguments)
    try:
        code: int = options.run(options)
    except EvertreeError as error:
        sys.stderr.write(f"evertree: {with_options(str(error))}\n")
        return 2
    except OSError as error:
        sys.stderr.write(f"evertree: {error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("evertree: stopped\n")
        return 130
    return code
