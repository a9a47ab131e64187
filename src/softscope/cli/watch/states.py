"""The state of a head on the terminal: a letter, a colour and a legend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softscope.doctor.judge.states import NAMES, SETTLED, STATES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from softscope.cli.console import Console
    from softscope.doctor.judge.history_view import Head
    from softscope.doctor.judge.states import HeadState, StateName

# Not always the first letter: several states share that. Resting: Z, as of one who sleeps; uniform: F, as in flat. The
# ordinary state is a dot, so that the others stand out.
_LETTERS = {
    "learning": ".",
    "right": "R",
    "useful": "U",
    "resting": "Z",
    "positional": "P",
    "idle": "I",
    "starving": "S",
    "suspected": "?",
    "uniform": "F",
    "empty": "E",
    "unjudged": " ",
}
_FINE = ("learning", *SETTLED)
_STYLES: dict[str, str] = {"starving": "cell.most", "unjudged": "cell.read", **dict.fromkeys(_FINE, "cell.few")}
# Which of several sites to show if not all fit: the worst ones. A state that is not named here comes between.
_WORST_FIRST: dict[str, int] = {"starving": 0, "suspected": 1, "unjudged": 3, **dict.fromkeys(_FINE, 4)}


def letter(state: str) -> str:
    """Return the letter for a state; "unjudged" has none.

    >>> letter("starving"), letter("resting"), letter("unjudged")
    ('S', 'Z', ' ')
    """
    return _LETTERS.get(state, state[0].lower())


def style(state: str) -> str:
    """Return the colour of a cell: red only for heads that starve, yellow for those that may be ill.

    >>> style("starving"), style("resting"), style("suspected")
    ('cell.most', 'cell.few', 'cell.many')
    """
    return _STYLES.get(state, "cell.many")


def rank(state: str) -> int:
    """Return the place of a state in an order from worst to best.

    >>> sorted(["learning", "starving", "unjudged"], key=rank)
    ['starving', 'unjudged', 'learning']
    """
    return _WORST_FIRST.get(state, 2)


def counts(states: Mapping[Head, HeadState]) -> dict[StateName, int]:
    """Return the number of heads in each state that occurs, the worst first."""
    found = [judged.state for judged in states.values()]
    return {state: found.count(state) for state in sorted(STATES, key=rank) if state in found}


def legend(states: Mapping[Head, HeadState], console: Console) -> str:
    """Name the letters in use and count their heads."""
    parts = []
    for state, count in counts(states).items():
        key = "watch.legend" if letter(state).strip() else "watch.legend.none"
        values = {"letter": letter(state)} if key == "watch.legend" else {}
        parts.append(console.say(key, state=NAMES[state], count=count, **values))
    return "   ".join(parts)
