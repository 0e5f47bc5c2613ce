"""The command `iomodel`, and `python -m iomodel`."""

from __future__ import annotations

import gc
import os
import sys


def main() -> int:
    """Run one command and return its exit code.

    A command is one short process: the garbage collector would take a third of its time to walk the objects of the
    libraries, at import and again at exit. Commands that make many objects still have it. Pydantic would search every
    installed package for plugins, and sympy, when it builds many formulas, derive parts of them anew beyond 1,000. What
    the command derives from the sources of the package is kept for the next one.
    """
    gc.set_threshold(200_000)
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    os.environ.setdefault("SYMPY_CACHE_SIZE", "100000")
    from iomodel.cli.app import main as run
    from iomodel.common import derived

    derived.pending = {}
    gc.freeze()
    try:
        return run()
    finally:
        derived.keep()
        gc.freeze()


if __name__ == "__main__":
    sys.exit(main())
