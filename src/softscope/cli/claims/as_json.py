"""The ledger as JSON: machine-readable names, and every sentence in both languages."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import softscope
from softscope._text import LANGS, Text, said

if TYPE_CHECKING:
    from softscope.cli.claims.checking import Checked
    from softscope.cli.console import Console
    from softscope.experiments.ledger import Entry

VERSION = 1  # bump when a name disappears or changes meaning; adding names needs no bump


def show(checked: Checked, console: Console) -> None:
    """Print the document."""
    console.write(json.dumps(document(checked), indent=2, ensure_ascii=False, allow_nan=False))


def document(checked: Checked) -> dict[str, Any]:
    """Return the document as Python objects."""
    return {
        "schema": "softscope.claims",
        "schema_version": VERSION,
        "softscope_version": softscope.__version__,
        "seed": checked.seed,
        "counts": checked.counts,
        "left_out": checked.left_out,
        "claims": [_entry(entry) for entry in checked.entries],
        "contradictions": [
            {
                "one": found.contradiction.one,
                "other": found.contradiction.other,
                "about": _both(found.contradiction.about),
                "verdicts": dict(found.verdicts),
                "stands": found.winner,
            }
            for found in checked.settled
        ],
    }


def _entry(entry: Entry) -> dict[str, Any]:
    claim, outcome = entry.claim, entry.outcome
    conditional = outcome.verdict == "only-if" and outcome.only_if is not None
    return {
        "id": claim.id,
        "text": claim.text,
        "where": claim.where,
        "quote": claim.quote or None,
        "code": "{}, line {}".format(*claim.code),
        "says": _both(claim.says),
        "verdict": outcome.verdict,
        "only_if": _both(outcome.only_if) if conditional and outcome.only_if else None,
        "cases": [{"label": _both(label), "held": held, "kind": kind} for label, held, kind in outcome.cases],
        "measured": _both(outcome.measured),
        "because": _both(outcome.because),
        "instead": _both(outcome.instead) if outcome.verdict == "fails" and outcome.instead else None,
        "evidence": outcome.evidence,
        "source": outcome.source or None,
        "stance": outcome.stance,
        "experiment": claim.experiment or None,
        "slow": claim.slow,
        "seconds": round(entry.seconds, 3),
    }


def _both(text: Text | str) -> dict[str, str]:
    return {lang: said(text, lang) for lang in LANGS}
