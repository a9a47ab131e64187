"""Makes `python -m softscope.cli` run `softscope`."""

import sys

from softscope.cli.program import main

if __name__ == "__main__":
    sys.exit(main())
