"""Which of a site's heads this rank computes."""

from __future__ import annotations

from typing import NamedTuple


class Heads(NamedTuple):
    """`first` is the first of this rank's heads; `ranks` ranks share out the site's heads, equally."""

    first: int = 0
    ranks: int = 1
