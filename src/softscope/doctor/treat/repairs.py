"""What to repair where attention is not what it is meant to be; what can be tried is, the rest is the user's code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softscope._text import Text
from softscope.doctor.judge.checks import CHECKS
from softscope.doctor.listen.trained_codes import ALONE, NO_OPTIMIZER, READINGS
from softscope.doctor.treat.evidence import REPAIRED
from softscope.doctor.treat.prescriptions import Prescription
from softscope.doctor.treat.treatment import Treatment

if TYPE_CHECKING:
    from collections.abc import Iterable

    from softscope.doctor.judge.checks import CheckResult
    from softscope.doctor.judge.history_view import Head, HistoryView
    from softscope.doctor.treat.remedies.mask import Keys

TRIED = frozenset({"SS014", "SS015", "SS016", "SS018"})  # whose repair can be tried in the run
INVERTED = 0.95  # of the weight is where none should be: the mask hides what it should show

# The reading to expect afterwards. Whoever reads the wrong keys, or cannot learn, needs this before anything else.
EXPECTED: dict[str, Text] = {
    "SS014": Text(zh="没有一行看得到后面的 token", en="no row sees a later token"),
    "SS015": Text(zh="填充上的权重正好是 0", en="a weight of exactly 0 on padding"),
    "SS016": Text(zh="每个 token 都看得到它该看的键", en="every token sees the keys that it should"),
    "SS017": Text(zh="梯度到达这里，demand 大于 0", en="a gradient arrives here, with a demand above 0"),
    "SS018": Text(
        zh="W_Q、W_K、W_V 都收到梯度，都在优化器里", en="W_Q, W_K and W_V get gradients and are in an optimizer"
    ),
    "SS019": Text(
        zh="各头的读数不同，q、k、v 都不是 0", en="heads with readings of their own, and no q, k or v of zero"
    ),
    "SS020": Text(zh="权重是 softmax(scale·q·k + 掩码)", en="weights that are softmax(scale·q·k + mask)"),
    "SS021": Text(zh="相同的 token 在不同位置有不同的键", en="equal tokens with different keys at different positions"),
}


def repair(
    view: HistoryView, code: str, heads: tuple[Head, ...], outcomes: Iterable[tuple[Head, CheckResult]]
) -> Prescription:
    """The prescription for a fault that this check has found."""
    check = CHECKS[code]
    way = _masked(view, code, outcomes) or _unfrozen(view, code, outcomes)
    return Prescription(
        remedy="repair",
        heads=heads,
        what=check.remedy,
        why=Text(
            zh=f"{check.title.zh}：模型算的不是它该算的，别的办法都治不了这个",
            en=f"{check.title.en[0].lower()}{check.title.en[1:]}: the model does not compute what it should, and no "
            "other remedy makes up for that",
        ),
        expect=EXPECTED[code],
        evidence=REPAIRED,
        treatment=way,
        candidates=() if way is None else (way,),
    )


def _masked(view: HistoryView, code: str, outcomes: Iterable[tuple[Head, CheckResult]]) -> Treatment | None:
    """The mask that the site should have, where it is known."""
    found: dict[str, Keys] = {}
    replace = code == "SS016"
    for head, outcome in outcomes:
        site = view.site(head)
        if code == "SS014" or (code == "SS016" and site.expects == "causal"):
            found[site.name] = "past"
        elif code == "SS015" or (code == "SS016" and site.expects == "all"):
            found[site.name] = "past" if site.expects == "causal" else "all"
        replace |= max(outcome.values.get("ahead", 0.0), outcome.values.get("padding", 0.0)) >= INVERTED
    in_use = code == "SS014" or (code == "SS015" and not replace)
    return Treatment("mask", _whole(view, found), keys=found, replace=replace, in_use=in_use) if found else None


def _unfrozen(view: HistoryView, code: str, outcomes: Iterable[tuple[Head, CheckResult]]) -> Treatment | None:
    """Train what is frozen, or in no optimizer; what gets no gradient is cut off in the code."""
    found = [
        view.site(head).name for head, outcome in outcomes
        if {outcome.values[x] for x in READINGS.values() if x in outcome.values} <= {ALONE, NO_OPTIMIZER}
    ]  # fmt: skip
    return Treatment("unfreeze", _whole(view, found)) if code == "SS018" and found else None


def _whole(view: HistoryView, sites: Iterable[str]) -> dict[str, dict[int, float]]:
    heads = {site.name: site.heads for site in view.history.sites}
    return {site: dict.fromkeys(range(heads[site]), 1.0) for site in sites}
