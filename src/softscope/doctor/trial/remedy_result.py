"""What trying a remedy showed: the held-out loss with and without it, and what else was tried."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, NamedTuple

from softscope._text import Text

if TYPE_CHECKING:
    from softscope.doctor.read.effect import Effect


class AlsoTried(NamedTuple):
    """A candidate that was tried and is not prescribed: what it did to the loss, or why that was not measured."""

    name: Text
    why: Text
    effect: Effect | None = None


@dataclasses.dataclass(frozen=True)
class RemedyTrial:
    """What trying a remedy showed; losses are held out.

    Attributes:
        before: The loss without it, at once.
        treated: The loss with it: after the steps, or at once if there were none.
        untreated: The same without it.
        at_once: The change of the loss at once.
        after: The change after the steps, against the same steps without it; None if there were none.
        steps: How many steps; 0 if the comparison is at once.
        others: The candidates that were tried and are not prescribed.
        passes: What all candidates cost together, in forward passes over the batch; a backward pass counts as two.
        seconds: The same in time.
        helps: Whether the loss falls clearly.
        feigned: The loss that the model shows with what it must not see; all others are without it.
        repair: A fault is repaired, whether or not that shows within a few steps.
    """

    before: float
    treated: float
    untreated: float
    at_once: Effect
    after: Effect | None
    steps: int
    others: tuple[AlsoTried, ...] = ()
    passes: float = 0.0
    seconds: float = 0.0
    helps: bool = True
    feigned: float | None = None
    repair: bool = False

    @property
    def effect(self) -> Effect:
        """The change that decided."""
        return self.at_once if self.after is None else self.after

    @property
    def said(self) -> Text:
        """The result in one sentence."""
        if self.feigned is None:
            return self._found
        return Text(
            zh=f"{self._found.zh}（都按正确的掩码算；按现在的掩码，损失看上去是 {self.feigned:.3g}）",
            en=f"{self._found.en} (all with the right mask; with the present one the loss seems to be "
            f"{self.feigned:.3g})",
        )

    @property
    def _found(self) -> Text:
        if not self.helps and not self.repair:
            return Text(zh="试过，没有一种明显降低损失", en="tried: nothing lowers the loss clearly")
        if not self.helps and not self.effect.costs:
            return Text(
                zh=f"试过：{self.steps} 步后看不出差别，损失 {self.treated:.3g}，不处理 {self.untreated:.3g}",
                en=f"tried: no clear difference after {self.steps} steps, loss {self.treated:.3g}, untreated "
                f"{self.untreated:.3g}",
            )
        figures = f"{self.before:.3g} → {self.treated:.3g}"
        error = "" if math.isnan(self.effect.error) else f" ± {self.effect.error:.1g}"
        if self.after is None:
            return Text(zh=f"试过：损失当即 {figures}{error}", en=f"tried: loss {figures}{error} at once")
        return Text(
            zh=f"试过：{self.steps} 步后损失 {figures}{error}；不处理 {self.untreated:.3g}",
            en=f"tried: loss {figures}{error} after {self.steps} steps; untreated {self.untreated:.3g}",
        )

    @property
    def also(self) -> Text | None:
        """The other candidates in one line, each with what it did to the loss."""
        if not self.others:
            return None
        zh = "；".join(f"{one.name.zh}（{one.why.zh}）" for one in self.others)
        return Text(zh=zh, en="; ".join(f"{one.name.en} ({one.why.en})" for one in self.others))

    @property
    def cost(self) -> Text:
        """The cost in words."""
        return Text(
            zh=f"相当于这个批次的 {self.passes:.0f} 次前向传播，{self.seconds:.1f} 秒",
            en=f"as much as {self.passes:.0f} forward passes over the batch, {self.seconds:.1f} s",
        )
