"""From a history to a diagnosis: states, check results, prescriptions, and a verdict in plain words."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from softscope._text import Text
from softscope.doctor.judge import checks
from softscope.doctor.judge.history_view import Head, HistoryView
from softscope.doctor.judge.states import STATES, StateName
from softscope.doctor.prognosis import NOT_MEASURED
from softscope.doctor.treat.plan import plans
from softscope.doctor.treat.prescriptions import Prescription

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from softscope.doctor.judge.checks import CheckResult, Kind, Severity
    from softscope.doctor.prognosis import Prognosis
    from softscope.doctor.read.head_trial import HeadTrial
    from softscope.doctor.read.snapshot import History


@dataclasses.dataclass(frozen=True)
class Diagnosis:
    """Everything the doctor concludes from one history.

    >>> from softscope.doctor import History
    >>> diagnosis = diagnose(History((), ()))
    >>> diagnosis.verdict.en
    'No attention was found: there is nothing to judge.'
    >>> diagnosis.fails("finding")
    False
    """

    view: HistoryView
    outcomes: tuple[CheckResult, ...]
    prescriptions: tuple[Prescription, ...]
    title: Text | str = ""
    prognosis: Prognosis | None = None  # only if it was measured

    @property
    def counts(self) -> dict[Kind, int]:
        """Number of judgements of each kind."""
        return checks.counts(self.outcomes)

    @property
    def states(self) -> dict[StateName, int]:
        """Number of heads in each state."""
        found = [head.state for head in self.view.states.values()]
        return {state: found.count(state) for state in STATES}

    def of(self, kind: Kind) -> dict[str, list[CheckResult]]:
        """The results of one kind, grouped by check code, in the order of the checks."""
        found: dict[str, list[CheckResult]] = {}
        for outcome in self.outcomes:
            if outcome.kind == kind:
                found.setdefault(outcome.code, []).append(outcome)
        return found

    def fails(self, at: Severity) -> bool:
        """Whether any result has this severity or a higher one."""
        severe = checks.SEVERITIES[: checks.SEVERITIES.index(at) + 1]
        return any(outcome.kind in severe for outcome in self.outcomes)

    @property
    def verdict(self) -> Text:
        """The verdict in a few plain sentences; it says how things will go on only if that was measured."""
        said = _verdict(self)
        if self.prognosis is None and not self.states["starving"]:
            return said
        ahead = NOT_MEASURED if self.prognosis is None else self.prognosis.said
        return Text(zh=said.zh + ahead.zh, en=f"{said.en} {ahead.en}")


def diagnose(
    history: History,
    title: Text | str = "",
    *,
    mute: Iterable[str] = (),
    trials: Mapping[tuple[str, int], HeadTrial | Text] | None = None,
) -> Diagnosis:
    """Judge a history: run every check, and derive remedies from the findings.

    Args:
        history: from a probe or a record.
        title: the heading of the diagnosis.
        mute: checks to silence, such as "SS010" or "SS004:encoder.*".
        trials: what `scope.trial` found; by default what the history holds. Without a trial, a head that looks stuck
            is suspected; with it, the head is starving, useful or idle.

    >>> import numpy as np
    >>> from softscope.doctor import History, Site, Snapshot
    >>> site = Site("encoder.0", "sdpa", heads=1, kv_heads=1, scale=0.125, head_size=64)
    >>> lost = Snapshot(20, 0.1, float("nan"), {"sharpness": np.array([[np.nan]], np.float32)})
    >>> diagnosis = diagnose(History((site,), (lost,)))
    >>> list(diagnosis.of("finding"))                                          # SS012: the run went NaN
    ['SS012']
    """
    view = HistoryView(history, trials)
    outcomes = checks.run(view, mute=mute)
    return Diagnosis(view, tuple(outcomes), tuple(plans(view, outcomes)), title)


def named(view: HistoryView, heads: Iterable[Head], most: int = 4) -> Text:
    """The names of the first few heads."""
    names = [view.name(head) for head in dict.fromkeys(heads)]
    more = len(names) - most
    zh, en = "、".join(name.zh for name in names[:most]), ", ".join(name.en for name in names[:most])
    return Text(zh=f"{zh} 等 {len(names)} 个", en=f"{en} and {more} more") if more > 0 else Text(zh=zh, en=en)


def _verdict(diagnosis: Diagnosis) -> Text:
    view, states = diagnosis.view, diagnosis.states
    total = len(view.heads)
    if not view.history.sites:
        return Text(zh="没有找到注意力，无从判断。", en="No attention was found: there is nothing to judge.")
    if not view.history.snapshots:
        return Text(zh="还没有任何读数，无从判断。", en="There are no readings yet: there is nothing to judge.")
    broken = [since for i in range(len(view.history.sites)) if (since := view.broken(i)) is not None]
    if len(broken) == len(view.history.sites):
        return Text(
            zh=f"从第 {min(broken)} 步起损失或读数是 NaN 或无穷，此后无法判断：请回到那之前的检查点，找出它的来源。",
            en=f"Since step {min(broken)} the loss or the readings have been NaN or infinite, so nothing can be "
            f"judged after that. Go back to an earlier checkpoint and find out where they come from.",
        )
    found = diagnosis.of("finding")
    starving = [head for head, known in view.states.items() if known.state == "starving"]
    suspected = [head for head, known in view.states.items() if known.state == "suspected"]
    if starving:
        return _joined(_starving(view, starving), _suspected(view, suspected))
    others = [head for outcomes in found.values() for outcome in outcomes for head in outcome.heads]
    judged = total - states["unjudged"]
    blind = Text(
        zh=f"没有损失，无法判断 {states['unjudged']} 个头是否挨饿；这不等于健康。",
        en=f"Without a loss, the doctor cannot tell whether {states['unjudged']} heads are starving; that does not "
        f"mean they are healthy.",
    )
    if view.has_loss:
        blind = Text(
            zh=f"无法判断 {states['unjudged']} 个头是否挨饿：读数太少，或每行只有一个键；这不等于健康。",
            en=f"The doctor cannot tell whether {states['unjudged']} heads are starving: there are too few readings, "
            f"or only one key per row; that does not mean they are healthy.",
        )
    if others:
        names = named(view, others)
        said = Text(
            zh=f"发现 {sum(map(len, found.values()))} 处问题，涉及 {names.zh}。",
            en=f"{_many(sum(map(len, found.values())), 'finding')} in {names.en}.",
        )
        return _joined(said, _suspected(view, suspected), None if judged == total else blind)
    if suspected or judged < total:
        said = Text(zh="没有发现问题。", en="No findings.")
        return _joined(said, _suspected(view, suspected), None if judged == total else blind)
    words: dict[StateName, tuple[str, str, str]] = {
        "right": ("个已经读对", "reads the right keys", "read the right keys"),
        "useful": ("个看似卡住，试过有用", "looks stuck but is useful", "look stuck but are useful"),
        "learning": ("个还在学", "can still learn", "can still learn"),
        "resting": ("个停在 sink 上", "rests on a sink", "rest on a sink"),
        "positional": ("个按位置读取", "reads by position", "read by position"),
        "idle": ("个闲置", "is idle", "are idle"),
        "uniform": ("个始终均匀", "stays uniform", "stay uniform"),
        "empty": ("个是空的", "is empty", "are empty"),
    }
    parts = [(states[name], name) for name in words if states[name]]
    chinese = f"{total} 个头：" + "，".join(f"{n} {words[name][0]}" for n, name in parts)
    english = ", ".join(f"{n} {words[name][1 if n == 1 else 2]}" for n, name in parts)
    return Text(
        zh=f"没有发现问题。{'唯一的头' + words[parts[0][1]][0].removeprefix('个') if total == 1 else chinese}。",
        en=f"No findings. "
        f"{'Its only head ' + words[parts[0][1]][1] if total == 1 else f'Of {total} heads, {english}'}.",
    )


def _starving(view: HistoryView, heads: list[Head]) -> Text:
    names, total, one = named(view, heads), len(view.heads), len(heads) == 1
    return Text(
        zh=f"{'唯一的头' if total == 1 else f'{total} 个头里有 {len(heads)} 个'}在挨饿：{names.zh}。"
        f"试过：没有{'它' if one else '它们'}损失也不上升，放松之后会更好，或就能学习。",
        en=f"{'Its only head' if total == 1 else f'{len(heads)} of {total} heads'} {'is' if one else 'are'} starving: "
        f"{names.en}. A trial showed it: the loss does not need {'it as it is' if one else 'them as they are'}, and "
        f"softer {'it is' if one else 'they are'} better or can learn.",
    )


def _suspected(view: HistoryView, heads: list[Head]) -> Text | None:
    if not heads:
        return None
    names, total, one = named(view, heads), len(view.heads), len(heads) == 1
    if all(view.states[head].trial is not None for head in heads):
        end = Text(zh="试了仍说不准，请用更大的批次再试。", en="and a trial left it open: use a larger batch.")
    else:
        end = Text(
            zh="是不是真的卡住，要试过才知道：scope.trial(批次)。", en="but only a trial can tell: scope.trial(batch)."
        )
    return Text(
        zh=f"{'唯一的头' if total == 1 else f'{total} 个头里有 {len(heads)} 个'}可疑：{names.zh}。"
        f"{'它' if one else '它们'}看上去卡住了，{end.zh}",
        en=f"{'Its only head' if total == 1 else f'{len(heads)} of {total} heads'} {'is' if one else 'are'} suspected: "
        f"{names.en}. {'It looks' if one else 'They look'} stuck, {end.en}",
    )


def _joined(*parts: Text | None) -> Text:
    said = [part for part in parts if part is not None]
    return Text(zh="".join(part.zh for part in said), en=" ".join(part.en for part in said))


def _many(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"
