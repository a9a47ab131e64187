"""What trying a head showed, and how a record keeps it. Measured in `trial`, judged in `judge`; needs no PyTorch."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any, Literal

from softscope._text import Text
from softscope.doctor.read.effect import Effect

if TYPE_CHECKING:
    from collections.abc import Mapping

NOTHING = 0.01  # of the loss

Verdict = Literal["useful", "starving", "idle", "open"]


@dataclasses.dataclass(frozen=True)
class HeadTrial:
    """What trying one head showed.

    Attributes:
        uniform: The loss if the head reads all visible keys alike, less the loss as it is.
        softened: The same if its logits are divided by `temperature`.
        temperature: The standard deviation of its logits within a row, so that softened logits have 1; at least 1.
        loss: The loss as it is.
        parts: How many parts of the batch were compared.
        slope: The slope of the loss where training would take the softened head, per unit by which its logits move;
            negative if it would learn. None if that was not needed, or if q and k are not visible.
        step: The step of the run at which it was tried, if there was one.
    """

    uniform: Effect
    softened: Effect
    temperature: float
    loss: float
    parts: int
    slope: Effect | None = None
    step: int | None = None

    @property
    def useful(self) -> bool:
        """Whether the model needs what the head reads: made uniform, it costs."""
        return self.uniform.costs

    @property
    def better_softer(self) -> bool:
        """Whether softening helps at once."""
        return self.softened.helps

    @property
    def would_learn(self) -> bool:
        """Whether the gradient of the softened head points the loss down."""
        return self.slope is not None and self.slope.helps

    @property
    def verdict(self) -> Verdict:
        """What the trial says of a head that the readings suspect.

        A head without which the loss rises is useful, whatever else would help. One that may be useful is not called
        starving. If softening helps, that means a cost beyond its own standard error. If only its gradient points
        down, any cost at all: useful heads have such a gradient, too.
        """
        if self.useful:
            return "useful"
        if self.better_softer:
            return "starving" if self.uniform.change <= self.uniform.error else "open"
        if self.would_learn:
            return "starving" if self.uniform.change <= 0.0 else "open"
        most = self.uniform.change + self.uniform.clear
        return "idle" if most < NOTHING * abs(self.loss) else "open"


class Trials(dict[tuple[str, int], "HeadTrial | Text"]):
    """The result for each (site, head): a `HeadTrial`, or the reason why it could not be tried.

    Attributes:
        passes: What it cost, in forward passes over the batch; a backward pass counts as two.
        seconds: The same in time.
    """

    passes: float = 0.0
    seconds: float = 0.0

    @property
    def cost(self) -> Text:
        """The cost in words."""
        many = len(self)
        return Text(
            zh=f"试了 {many} 个头：相当于这个批次的 {self.passes:.0f} 次前向传播，{self.seconds:.1f} 秒",
            en=f"tried {many} head{'s' * (many != 1)}: as much as {self.passes:.0f} forward passes over the batch, "
            f"{self.seconds:.1f} s",
        )


Found = dict[tuple[str, int], HeadTrial]


def as_facts(trials: Mapping[tuple[str, int], HeadTrial | Text]) -> list[dict[str, Any]]:
    """The trials as a record keeps them, among the facts of a run.

    >>> tried = HeadTrial(Effect(0.1, 0.05, 16), Effect(0.0, 0.05, 16), temperature=4.0, loss=2.0, parts=16)
    >>> of_facts(as_facts({("encoder.0", 3): tried})) == {("encoder.0", 3): tried}
    True
    """
    return [
        {
            "site": site, "head": head, "step": trial.step, "loss": trial.loss, "parts": trial.parts,
            "temperature": trial.temperature, "uniform": _numbers(trial.uniform), "softened": _numbers(trial.softened),
            "slope": None if trial.slope is None else _numbers(trial.slope),
        }
        for (site, head), trial in trials.items()
        if not isinstance(trial, Text)
    ]  # fmt: skip


def of_facts(kept: Any) -> Found:
    """The trials that a record holds; what is not as `as_facts` writes it is left out."""
    found: Found = {}
    for one in kept if isinstance(kept, list) else ():
        try:
            place = str(one["site"]), int(one["head"])
            slope = one["slope"]
            found[place] = HeadTrial(
                _effect(one["uniform"]), _effect(one["softened"]), float(one["temperature"]), float(one["loss"]),
                int(one["parts"]), None if slope is None else _effect(slope),
                None if one["step"] is None else int(one["step"]),
            )  # fmt: skip
        except (KeyError, TypeError, ValueError, OverflowError):
            continue
    return found


def _numbers(effect: Effect) -> list[float | None]:
    return [effect.change, None if math.isnan(effect.error) else effect.error, effect.parts]


def _effect(numbers: Any) -> Effect:
    change, error, parts = numbers
    return Effect(float(change), math.nan if error is None else float(error), int(parts))
