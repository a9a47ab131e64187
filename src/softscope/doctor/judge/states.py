"""Decides what a head is doing: from the last readings, and from a trial where they raise a suspicion.

"Positional" is our own state: the previous-token heads of trained models are as sharp as stuck heads and have no
advantage either.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from softscope._text import Text
from softscope.doctor.judge.blocked_rows import BlockedRows
from softscope.doctor.judge.thresholds import (
    ASKED,
    ENOUGH_ROWS,
    ENOUGH_STEPS,
    ERRORS,
    IN_A_ROW,
    MANY,
    OFFSET,
    RIGHT,
    SATISFIED,
    SINK,
    UNIFORM,
)

if TYPE_CHECKING:
    from softscope.doctor.judge.history_view import Head, HistoryView
    from softscope.doctor.read.head_trial import HeadTrial

StateName = Literal[
    "learning", "right", "useful", "resting", "positional", "idle", "uniform", "empty", "suspected", "starving",
    "unjudged",
]  # fmt: skip
STATES: tuple[StateName, ...] = get_args(StateName)

NAMES: dict[StateName, Text] = {
    "learning": Text(zh="在学", en="learning"),
    "right": Text(zh="读对", en="right"),
    "useful": Text(zh="有用", en="useful"),
    "resting": Text(zh="停歇", en="resting"),
    "positional": Text(zh="按位置", en="positional"),
    "idle": Text(zh="闲置", en="idle"),
    "uniform": Text(zh="均匀", en="uniform"),
    "empty": Text(zh="空", en="empty"),
    "suspected": Text(zh="可疑", en="suspected"),
    "starving": Text(zh="饥饿", en="starving"),
    "unjudged": Text(zh="未判", en="not judged"),
}
MEANINGS: dict[StateName, Text] = {
    "learning": Text(zh="梯度还能到达 q 和 k", en="the gradient still reaches q and k"),
    "right": Text(zh="已经尖锐，而且读的是对的键", en="sharp, and on the right keys"),
    "useful": Text(
        zh="像是卡住了，但试过：没有它损失会上升", en="looks stuck, but was tried: without it the loss rises"
    ),
    "resting": Text(
        zh="停在一个不携带信息的键上；不是问题", en="parked on one key that carries no information; not a problem"
    ),
    "positional": Text(
        zh="总读同一个相对位置，比如前一个 token；不是问题",
        en="always reads the same offset, such as the previous token; not a problem",
    ),
    "idle": Text(
        zh="像是卡住了，但试过：有没有它、变不变柔和，损失都一样，也没有可学的",
        en="looks stuck, but was tried: with, without or softer, the loss is the same, and it has nothing to learn",
    ),
    "uniform": Text(zh="训练了很久，仍对所有的键一视同仁", en="still reads all keys alike after a long training"),
    "empty": Text(
        zh="q、k 或 v 是零：没有什么可选，或没有什么可读",
        en="its q, k or v is zero: it has nothing to choose by, or nothing to read",
    ),
    "suspected": Text(
        zh="读数像是卡住了，但没有试过，或试了仍说不准",
        en="its readings look stuck, but it was not tried, or the trial left it open",
    ),
    "starving": Text(
        zh="卡住了，而且试过：没有它损失不变，让它变柔和会更好，或就能学习",
        en="stuck, and tried: the loss does not need it as it is, and softer it is better or could learn",
    ),
    "unjudged": Text(
        zh="无法判断，例如没有损失；不等于健康",
        en="cannot be judged, for example without a loss; that does not mean healthy",
    ),
}
# Many rows are blocked, and that is fine.
SETTLED: tuple[StateName, ...] = ("right", "useful", "resting", "positional", "idle")
# What readings alone cannot tell apart: these are worth a trial.
DOUBTED: tuple[StateName, ...] = ("suspected", "starving", "useful", "idle")
NO_LOSS = Text(
    zh="没有见到反向传播：没有损失就无法判断", en="no backward pass was seen, and nothing can be judged without a loss"
)
NO_ROWS = Text(zh="读到的行都与损失无关", en="none of the sampled rows carries loss")
BROKEN = Text(
    zh="损失或读数是 NaN 或无穷，无法判断", en="the loss or the readings are NaN or infinite, so nothing can be judged"
)
TOO_FEW = Text(
    zh=f"很多行被阻断，但带损失的读数不到 {IN_A_ROW.value} 次，还不能判断",
    en=f"many rows are blocked, but it is too early to judge: fewer than {IN_A_ROW.value} readings have a loss",
)
TOO_FEW_ROWS = Text(
    zh=f"被阻断的行只读到 {{}} 行，不到 {ENOUGH_ROWS.value} 行，还不能判断",
    en=f"only {{}} blocked rows were read, and fewer than {ENOUGH_ROWS.value} decide nothing",
)
NOT_TRIED = Text(zh="没有试过", en="it was not tried")
OPEN = Text(zh="试过，仍说不准", en="the trial left it open")


@dataclasses.dataclass(frozen=True)
class HeadState:
    """The state of a head and the readings that decided it; NaN for readings not taken."""

    state: StateName
    blocked: float = math.nan  # latest share of blocked rows
    transmission: float = math.nan  # latest value: the median where it was read, else the mean
    advantage: float = math.nan  # over the readings that decided
    error: float = math.nan
    mass: float = math.nan
    since: int | None = None  # the step since which many rows have been blocked
    why: Text | None = None  # set only if unjudged or suspected
    trial: HeadTrial | None = None  # what trying it showed, if it was suspected and tried


def state(view: HistoryView, head: Head) -> HeadState:
    """The state according to the last readings; earlier ones do not count."""
    wanted = int(IN_A_ROW.value)
    if view.broken(head.site) is not None:
        return HeadState("unjudged", why=BROKEN)
    if _empty(view, head, wanted):
        return HeadState("empty")
    steps, blocked = view.curve("blocked", head)
    if not len(blocked) or not any(view.last("judged", head, wanted) or (1.0,)):
        known = bool(view.last("judged", head, 1))
        return HeadState("unjudged", why=NO_ROWS if known else NO_LOSS)
    advantage, error = _advantage(view, head, wanted)
    mass = view.value("blocked_mass", head)
    found = HeadState(
        "learning",
        blocked=float(blocked[-1]),
        transmission=_transmission(view, head),
        advantage=advantage,
        error=error,
        mass=math.nan if mass is None else mass,
    )
    many = blocked > np.float32(MANY.value)  # readings are float32: one row in ten must not exceed 10%
    if not many[-1] or (len(many) >= wanted and not many[-wanted:].all()):
        return dataclasses.replace(found, state="uniform") if stays_uniform(view, head) else found
    if len(many) < wanted:
        return dataclasses.replace(found, state="unjudged" if many.all() else "learning", why=TOO_FEW)
    before = np.flatnonzero(~many)
    since = int(steps[before[-1] + 1] if len(before) else steps[0])
    rows = BlockedRows.of(view, head, since)
    if rows.rows < ENOUGH_ROWS.value:
        return dataclasses.replace(found, state="unjudged", since=since, why=TOO_FEW_ROWS.format(f"{rows.rows:.0f}"))
    found = dataclasses.replace(found, state=_blocked_state(view, head, found, rows), since=since)
    return _tried(view, head, found, rows) if found.state == "suspected" else found


def stays_uniform(view: HistoryView, head: Head) -> bool:
    """Whether it read all keys alike over the second half of a long training, whatever a fresh model did before."""
    steps, sharpness = view.curve("sharpness", head)
    if not len(steps) or steps[-1] - steps[0] < ENOUGH_STEPS.value:
        return False
    late = sharpness[2 * (steps - steps[0]) >= steps[-1] - steps[0]]
    return bool(late.max() <= UNIFORM.value)


def _empty(view: HistoryView, head: Head, wanted: int) -> bool:
    """Whether q, k or v was exactly zero in each of the last readings; a zero at the start goes away by itself."""
    for name in ("q_norm", "k_norm", "v_norm"):
        values = view.last(name, head, wanted)
        if len(values) == wanted and not any(values):
            return True
    return False


def _tried(view: HistoryView, head: Head, found: HeadState, rows: BlockedRows) -> HeadState:
    """Readings raise the suspicion that a head starves; only a trial decides.

    An idle head that looks at one kind of token, wherever it stands, rests there. Readings alone would not tell it from
    a head that got stuck on a token.
    """
    trial = view.trials.get((view.site(head).name, head.head))
    if trial is None or (trial.step is not None and found.since is not None and trial.step < found.since):
        why = view.untried.get((view.site(head).name, head.head))
        told = NOT_TRIED if why is None else Text(zh=f"试不了：{why.zh}", en=f"it could not be tried: {why.en}")
        return dataclasses.replace(found, why=told)
    if trial.verdict == "open":
        return dataclasses.replace(found, why=OPEN, trial=trial)
    if trial.verdict == "idle" and rows.reaches(rows.token_mass, SINK.value):
        return dataclasses.replace(found, state="resting", mass=rows.token_mass, trial=trial)
    return dataclasses.replace(found, state=trial.verdict, trial=trial)


def _blocked_state(view: HistoryView, head: Head, found: HeadState, rows: BlockedRows) -> StateName:
    """State of a head that has had many blocked rows for long enough."""
    if rows.reaches(rows.mass, SINK.value):
        return "resting"
    if rows.reaches(rows.offset_mass, OFFSET.value):
        return "positional"
    if math.isnan(found.advantage):
        return "unjudged"
    enough = 0.0 if _satisfied(view, head, int(IN_A_ROW.value)) else RIGHT.value
    return "right" if reads_right(found.advantage, found.error, enough) else "suspected"


def _satisfied(view: HistoryView, head: Head, wanted: int) -> bool:
    """Whether the loss no longer depends on what the head reads."""
    demand = view.curve("demand", head)[1]
    return len(demand) > wanted and bool(demand[-wanted:].max() < SATISFIED.value * demand.max())


def reads_right(advantage: float, error: float, enough: float = RIGHT.value) -> bool:
    """Whether the advantage is at least `enough`, even less two standard errors.

    >>> reads_right(3.0, 0.1), reads_right(1.3, 0.3), reads_right(0.6, 0.2)
    (True, True, False)
    """
    return advantage - ERRORS * error >= enough


def _advantage(view: HistoryView, head: Head, count: int) -> tuple[float, float]:
    """Mean and standard error over the last readings, which come from different batches.

    If the error leaves it open whether the advantage is enough, older readings are included too.
    """
    values, errors = view.last("advantage", head, ASKED), view.last("advantage_error", head, ASKED)
    if not values:
        return math.nan, math.nan
    mean, error = _pooled(values[-count:], errors[-count:])
    for more in range(count + 1, len(values) + 1):
        if abs(mean - RIGHT.value) >= ERRORS * error:
            break
        mean, error = _pooled(values[-more:], errors[-more:])
    return mean, error


def _pooled(values: list[float], errors: list[float]) -> tuple[float, float]:
    """Mean and standard error of several readings.

    A reading of a single sequence has no error of its own. Then the spread between the readings gives the error; for
    one reading alone it is infinite.
    """
    mean = float(np.mean(values))
    if len(errors) == len(values):
        return mean, float(np.linalg.norm(errors)) / len(errors)
    if len(values) > 1:
        return mean, float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return mean, math.inf


def _transmission(view: HistoryView, head: Head) -> float:
    found = view.value("transmission:median", head)
    found = view.value("transmission", head) if found is None else found
    return math.nan if found is None else found
