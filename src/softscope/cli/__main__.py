"""`python -m softscope.cli` is `softscope`."""

import sys

from softscope.cli.program import main

if __name__ == "__main__":
    sys.exit(main())
