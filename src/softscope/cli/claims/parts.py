"""Shared by all ledger formats: the parts of an entry, and the sides of a contradiction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import softscope
from softscope._text import Text
from softscope.cli import language
from softscope.cli.words import WORDS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from softscope._text import Lang
    from softscope.cli.claims.checking import Checked
    from softscope.experiments.ledger import Entry, Outcome, Settled

_LISTED = "\N{IDEOGRAPHIC COMMA}"  # separates list items in Chinese
_DRAWN = {
    "both": "claims.winner.both",
    "neither": "claims.winner.neither",
    "each in its own case": "claims.winner.each",
}


def words(key: str, **values: Any) -> Text:
    """Return the words in both languages."""
    return WORDS[key].format(**values)


def parts(entry: Entry) -> list[tuple[str, Text | str]]:
    """Return what to say about an entry below the claim itself: each label's key, and the text."""
    outcome = entry.outcome
    rows: list[tuple[str, Text | str]] = []
    if outcome.measured != "–":
        rows.append((f"claims.evidence.{outcome.evidence}", outcome.measured))
    if outcome.verdict == "only-if" and outcome.only_if is not None:
        rows.append(("claims.only_if", outcome.only_if))
    rows.append(("claims.because", outcome.because))
    if outcome.verdict == "fails" and outcome.instead is not None:
        rows.append(("claims.instead", outcome.instead))
    if outcome.source:
        rows.append(("claims.source", quoted(outcome)))
    if entry.claim.experiment:
        rows.append(("claims.shown", f"softscope experiment {entry.claim.experiment}"))
    return rows


def quoted(outcome: Outcome) -> Text:
    """Return the source, and whether it supports the claim."""
    return words(f"claims.source.{outcome.stance}", source=outcome.source)


def made(checked: Checked) -> Text:
    """Return the sentence that says by which version and from which seed the verdicts come."""
    return words("claims.made", version=softscope.__version__, seed=checked.seed)


def left_out(checked: Checked) -> Text | None:
    """Return the sentence that says what --fast left out; None if that is nothing."""
    if not checked.left_out:
        return None
    return words("claims.left_out", count=len(checked.left_out), names=_listed(checked.left_out))


def ends(settled: Settled) -> Text:
    """Return the sentence that says which side stands."""
    if settled.winner in _DRAWN:
        return words(_DRAWN[settled.winner])
    sides = settled.contradiction.one, settled.contradiction.other
    winner, loser = sides if settled.winner == "one" else sides[::-1]
    fails = any(settled.verdicts[name] == "fails" for name in loser)
    key = "claims.winner.against" if fails else "claims.winner.partly"
    return words(key, winner=_listed(winner), loser=_listed(loser))


def _listed(names: Sequence[str]) -> Text:
    return Text(zh=_LISTED.join(names), en=", ".join(names))


def counts(checked: Checked, lang: Lang) -> str:
    """Count the claims, in total and by verdict."""
    if not checked.entries:
        return language.say(lang, "claims.none")
    parts = [language.say(lang, "claims.counted", count=len(checked.entries))]
    for verdict, count in checked.counts.items():
        named = language.say(lang, f"claims.verdict.{verdict}")
        parts.append(language.say(lang, "claims.count", verdict=named, count=count))
    return " · ".join(parts)
