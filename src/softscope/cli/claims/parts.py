"""What every way of writing the ledger shares: the parts of an entry, and who stands in a contradiction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softscope.cli import language
from softscope.experiments.ledger import Text

if TYPE_CHECKING:
    from typing import Any

    from softscope.experiments.ledger import Entry, Settled

_WINNERS = {
    "one": "claims.winner.one",
    "other": "claims.winner.other",
    "both": "claims.winner.both",
    "neither": "claims.winner.neither",
    "each in its own case": "claims.winner.each",
}


def words(key: str, **values: Any) -> Text:
    """The words in both languages."""
    return Text(language.say("zh", key, **values), language.say("en", key, **values))


def parts(entry: Entry) -> list[tuple[str, Text | str]]:
    """What is to be said of an entry below the claim itself: the key of each label, and the text."""
    outcome = entry.outcome
    rows: list[tuple[str, Text | str]] = []
    if outcome.measured != "–":
        rows.append(("claims.measured", outcome.measured))
    if outcome.verdict == "only-if" and outcome.only_if is not None:
        rows.append(("claims.only_if", outcome.only_if))
    rows.append(("claims.because", outcome.because))
    if outcome.source:
        rows.append(("claims.source", outcome.source))
    if entry.claim.experiment:
        rows.append(("claims.shown", f"softscope experiment {entry.claim.experiment}"))
    return rows


def ends(settled: Settled) -> Text:
    """The sentence that says which side stands."""
    found = settled.contradiction
    return words(_WINNERS[settled.winner], one=", ".join(found.one), other=", ".join(found.other))
