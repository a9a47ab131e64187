"""The part of a prescription that code can carry out: the remedy, the sites and heads, and the dose of each.

Needs no PyTorch until it is applied, so a recorded run can be judged without it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from softscope.doctor.treat.code import call

if TYPE_CHECKING:
    from softscope.doctor.treat.remedies import Applied, Layout
    from softscope.doctor.treat.remedies.mask import Keys

# A largest logit at which a head can choose and still change its mind: the peak weight among 16 keys is at most 0.91.
# In `softscope experiment remedies`, heads brought to 5 learn, whatever they were stuck on; those at 10 did not always.
REST = 5.0

RemedyName = Literal["temperature", "qk-clip", "reinitialise", "unit-qk-norm", "mask", "unfreeze"]


@dataclasses.dataclass(frozen=True)
class Treatment:
    """A dose per head. `code()` is what `apply` runs, so that both do the same.

    Attributes:
        remedy: Which function of `remedies` it is.
        heads: The dose of each head, by site: its temperature; the largest logit that QK-clip reduces to the `tau` of
            its site; the standard deviation of its logits when it is drawn anew. The others treat whole sites.
        tau: QK-clip's bound, by site.
        seed: Decides the weights that are drawn anew.
        layouts: Where sites that are not known by name keep W_Q and W_K.
        keys: What rows should see, by site, if the mask is wrong.
        replace: Whether that mask is to replace the given one, which hides what it should show.
        in_use: Whether a model is used as if it were treated: what is yet to be written cannot leak, and one sequence
            has no padding. A trial then judges the untreated model so, too.
    """

    remedy: RemedyName
    heads: Mapping[str, Mapping[int, float]]
    tau: Mapping[str, float] = dataclasses.field(default_factory=dict)
    seed: int = 0
    layouts: Mapping[str, Layout] = dataclasses.field(default_factory=dict)
    keys: Mapping[str, Keys] = dataclasses.field(default_factory=dict)
    replace: bool = False
    in_use: bool = False

    @property
    def repairs(self) -> bool:
        """Whether it takes a fault away, rather than treating what it did."""
        return self.remedy in ("mask", "unfreeze")

    def apply(self, model: Any) -> Applied:
        """Treat the model in place; the result can undo it."""
        from softscope.doctor.treat import remedies

        made: list[Applied] = [getattr(remedies, name)(model, given, **named) for name, given, named in self._calls()]
        first, *rest = made  # as it is: a single temperature can be folded into the weights
        for other in rest:
            first.absorb(other)
        return first

    def code(self) -> str:
        """The call after `from softscope.doctor import remedies`, one for each bound of QK-clip.

        >>> Treatment("temperature", {"attention": {0: 16.0}}).code()
        "remedies.temperature(model, {'attention': {0: 16.0}})"
        """
        return "\n".join(call(f"remedies.{name}", given, **named) for name, given, named in self._calls())

    def _calls(self) -> list[tuple[str, Any, dict[str, Any]]]:
        """The functions of `remedies`, and their arguments after the model."""
        heads = {site: dict(doses) for site, doses in self.heads.items()}
        used = {site: layout for site, layout in self.layouts.items() if site in heads}
        laid = {"layout": used} if used else {}
        if self.remedy == "temperature":
            return [("temperature", heads, {})]
        if self.remedy == "reinitialise":
            return [("reinitialise", heads, {"seed": self.seed, **laid})]
        if self.remedy == "unit-qk-norm":
            return [("qk_norm", list(heads), {"kind": "unit"})]
        if self.remedy == "mask":
            return [("mask", dict(self.keys), {"replace": True} if self.replace else {})]
        if self.remedy == "unfreeze":
            return [("unfreeze", list(heads), {})]
        bounds = dict.fromkeys(self.tau[site] for site in heads)
        return [
            (
                "qk_clip",
                {site: doses for site, doses in heads.items() if self.tau[site] == bound},
                {"tau": bound}
                | ({"layout": some} if (some := {s: x for s, x in used.items() if self.tau[s] == bound}) else {}),
            )
            for bound in bounds
        ]
