"""`python -m iomodel` is the command line."""

import sys

from iomodel.cli import main

if __name__ == "__main__":
    sys.exit(main())
