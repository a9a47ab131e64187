"""Histories made by hand: a healthy one, plus whatever changes a test asks for."""

import dataclasses
import math

import numpy as np

from softscope.doctor.judge.history_view import HistoryView
from softscope.doctor.listen.reasons import TOLD, Reason
from softscope.doctor.read.effect import Effect
from softscope.doctor.read.head_trial import HeadTrial, as_facts
from softscope.doctor.read.snapshot import History, Site, Snapshot

FORWARD = {
    "sharpness": 0.3, "jacobian_trace": 0.8, "peak": 0.3, "max_logit": 6.0, "logit_spread": 1.0, "sink_column": 0.0,
    "sink_mass": 0.2, "q_norm": 8.0, "k_norm": 8.0, "cosine": 0.1, "lse_min": 2.0, "count": 300.0, "sees_ahead": 0.0,
    "ahead": 0.0, "own": 1.0, "blind": 0.0, "q_alike": 0.3, "k_alike": 0.3,
}  # fmt: skip
GRADIENT = {
    "demand": 1.0, "supply": 0.1, "transmission": 1.2, "transmission:median": 1.1, "advantage": 0.1,
    "advantage_error": 0.05, "regret_ratio": 0.9, "blocked": 0.0, "blocked_mass": 0.2, "alone": 0.0, "cut": 0.0,
    "q_trains": 0.0, "k_trains": 0.0, "v_trains": 0.0,
}  # fmt: skip
STUCK = {"blocked": 0.9, "transmission": 1e-3, "transmission:median": 1e-4, "advantage": 0.1, "advantage_error": 0.1}
RIGHT = STUCK | {"advantage": 3.0}
RESTING = STUCK | {"blocked_mass": 0.97}


def history(*, heads=4, sites=1, steps=range(0, 50, 10), loss=True, site=None, unseen=(), **changes):
    """All heads healthy at all steps, except for the changes: reading=number, (steps,) or {head: number or (steps,)}.

    A head is an index into the first site, or (site, head). Write a colon in a name as two underscores. Each entry of
    `unseen` is (name, why), with the reason in our own words.
    """
    steps = list(steps)
    values = FORWARD | (GRADIENT if loss else {})
    series = {name: np.full((len(steps), sites, heads), value, np.float32) for name, value in values.items()}
    series["k_norm"] *= 1.0 + 1e-3 * np.arange(heads, dtype=np.float32)  # heads that are equal to the bit are a fault
    for name, change in changes.items():
        name = name.replace("__", ":")
        known = series.setdefault(name, np.full((len(steps), sites, heads), np.nan, np.float32))
        for head, value in (change if isinstance(change, dict) else {None: change}).items():
            value = np.broadcast_to(np.asarray(value, np.float32), len(steps))
            if head is None:
                known[:] = value[:, None, None]
            else:
                at = head if isinstance(head, tuple) else (0, head)
                known[:, at[0], at[1]] = value
    return History(
        sites=tuple(made_site(i, heads, **(site or {})) for i in range(sites)),
        snapshots=tuple(
            Snapshot(step, 0.1 * i, 2.0 / (i + 1) if loss else None, {name: x[i] for name, x in series.items()})
            for i, step in enumerate(steps)
        ),
        unseen=tuple((name, Reason(TOLD, (why,))) for name, why in unseen),
    )


def made_site(index, heads, **changes):
    d = changes.get("head_size", 64)
    given = {"kind": "sdpa", "kv_heads": heads, "scale": 1 / math.sqrt(d) if d else math.nan, "head_size": d}
    return Site(**({"name": f"layers.{index}.attention", "heads": heads} | given | changes))


def per_head(head, readings):
    """The readings, as changes to one head."""
    return {name.replace(":", "__"): {head: value} for name, value in readings.items()}


def without(found, *names):
    """The history without the named readings."""
    kept = [
        Snapshot(s.step, s.seconds, s.loss, {name: x for name, x in s.readings.items() if name not in names})
        for s in found.snapshots
    ]
    return History(found.sites, tuple(kept), found.unseen, found.facts)


def trial(uniform=(0.0, 0.01), softened=(0.0, 0.01), slope=None):
    """A trial with these effects, each (change, error), of a loss of 2."""
    effects = [None if x is None else Effect(*x) for x in (uniform, softened, slope)]
    return HeadTrial(effects[0], effects[1], temperature=9.0, loss=2.0, parts=16, slope=effects[2])


STARVES, USEFUL, IDLE = trial(softened=(-0.3, 0.1)), trial(uniform=(0.5, 0.1)), trial(uniform=(0.002, 0.002))


def starving(found, *heads):
    """The history of a run in which a trial showed that these heads of the first site starve."""
    trials = {(found.sites[0].name, head): STARVES for head in heads}
    return dataclasses.replace(found, facts={**found.facts, "trials": as_facts(trials)})


def tried(found, head, result=STARVES):
    """The history, as a view in which this head of the first site was tried."""
    return HistoryView(found, {(found.sites[0].name, head): result})
