"""The change of the loss that an intervention brings, with its standard error over parts of a batch."""

from __future__ import annotations

import dataclasses
import math
from statistics import NormalDist
from typing import TYPE_CHECKING

from softscope._text import same

if TYPE_CHECKING:
    from collections.abc import Sequence

    from softscope._text import Text

# Standard errors between an effect and none, by the number of parts: Student's t at 97.5%, so that four parts do not
# pass for forty. Ends at the normal distribution's.
_STUDENT = {2: 12.7, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57, 7: 2.45, 8: 2.36, 10: 2.26, 12: 2.20, 16: 2.13, 24: 2.07}
CLEAR = 2.0


@dataclasses.dataclass(frozen=True)
class Effect:
    """The mean change of the loss, and its standard error over the parts of the batch.

    >>> Effect(0.3, 0.1).costs, Effect(-0.3, 0.1).helps, Effect(0.1, 0.1).costs
    (True, True, False)
    >>> Effect(0.3, 0.1, parts=4).costs                    # four parts are few: 3 standard errors are not clear
    False
    """

    change: float
    error: float
    parts: int = 1000

    @property
    def costs(self) -> bool:
        """Whether the loss clearly rises."""
        return self.change > self.clear

    @property
    def helps(self) -> bool:
        """Whether the loss clearly falls."""
        return self.change < -self.clear

    @property
    def clear(self) -> float:
        """The smallest change that is clear: two standard errors, more if the parts are few; NaN for one part."""
        few = [n for n in _STUDENT if n <= self.parts]
        return self.error * (CLEAR if self.parts >= 30 or not few else _STUDENT[max(few)])

    def helps_among(self, many: int) -> bool:
        """Whether the loss falls clearly enough for the best of `many`: some of many fall by chance (Bonferroni).

        >>> Effect(-0.22, 0.1).helps, Effect(-0.22, 0.1).helps_among(5)
        (True, False)
        """
        chance = 0.025
        more = NormalDist().inv_cdf(1.0 - chance / max(many, 1)) / NormalDist().inv_cdf(1.0 - chance)
        return self.change < -self.clear * more

    @property
    def text(self) -> Text:
        """For people: +0.31 ± 0.02.

        >>> Effect(-0.0123, 0.004).text.en
        '−0.012 ± 0.004'
        """
        if math.isnan(self.error):
            return same(f"{self.change:+.2g}".replace("-", "−"))
        return same(f"{self.change:+.2g} ± {self.error:.1g}".replace("-", "−"))


def effect(differences: Sequence[float]) -> Effect:
    """The mean of paired differences and its standard error; NaN for a single one.

    >>> effect([1.0, 3.0])
    Effect(change=2.0, error=1.0, parts=2)
    """
    n = len(differences)
    mean = math.fsum(differences) / n
    if n < 2:
        return Effect(mean, math.nan, n)
    return Effect(mean, math.sqrt(math.fsum((d - mean) ** 2 for d in differences) / (n - 1) / n), n)
