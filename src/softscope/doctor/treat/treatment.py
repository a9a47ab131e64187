"""The part of a prescription that code can carry out: the remedy, the sites and heads, and the dose of each.

Needs no PyTorch until it is applied, so a recorded run can be judged without it.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from softscope.doctor.treat.remedies import Applied

# A largest logit at which a head can choose and still change its mind: the peak weight among 16 keys is at most 0.91.
# In `softscope experiment remedies`, heads brought to 5 learn, whatever they were stuck on; those at 10 did not always.
REST = 5.0
_SHOWN = 3  # heads in one line of code


@dataclasses.dataclass(frozen=True)
class Treatment:
    """A dose per head: its temperature, or the largest logit that QK-clip reduces to the `tau` of its site."""

    remedy: Literal["temperature", "qk-clip"]
    heads: Mapping[str, Mapping[int, float]]
    tau: Mapping[str, float] = dataclasses.field(default_factory=dict)

    def apply(self, model: Any) -> Applied:
        """Treat the model in place; the result can undo it."""
        from softscope.doctor.treat import remedies

        if self.remedy == "temperature":
            return remedies.temperature(model, self.heads)
        done = remedies.Applied("qk-clip")
        for site, tops in self.heads.items():
            done.absorb(remedies.qk_clip(model, {site: tops}, tau=self.tau[site]))
        return done

    def code(self) -> str:
        """The equivalent call after `from softscope.doctor import remedies`, with the first few heads.

        >>> Treatment("temperature", {"attention": {0: 16.0}}).code()
        'remedies.temperature(model, {"attention": {0: 16}})'
        """
        listed, left = [], _SHOWN
        for site, doses in self.heads.items():
            if left <= 0:
                break
            shown = [f"{head}: {dose:.3g}" for head, dose in list(doses.items())[:left]]
            left -= len(shown)
            more = ", …" if len(shown) < len(doses) else ""
            listed.append(f'"{site}": {{{", ".join(shown)}{more}}}')
        inside = ", ".join(listed) + (", …" if len(listed) < len(self.heads) else "")
        if self.remedy == "temperature":
            return f"remedies.temperature(model, {{{inside}}})"
        tau = next(iter(self.tau.values()))
        return f"remedies.qk_clip(model, {{{inside}}}, tau={tau:.3g})"
