"""Choose claims and check them, with a progress bar on a terminal."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from softscope._progress_bar import ProgressBar
from softscope.cli.problems import UsageError, shown
from softscope.experiments import ledger

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclasses.dataclass(frozen=True)
class Checked:
    """The entries to show, all that were checked, the contradictions these settle, the seed, and what was left out."""

    entries: list[ledger.Entry]
    checked: list[ledger.Entry]
    settled: list[ledger.Settled]
    seed: int
    left_out: list[str]

    @property
    def texts(self) -> list[str]:
        """Return the texts that occur, in order."""
        return sorted({entry.claim.text for entry in self.entries})

    def of(self, text: str) -> list[ledger.Entry]:
        """Return the entries of one text."""
        return [entry for entry in self.entries if entry.claim.text == text]

    @property
    def counts(self) -> dict[str, int]:
        """Count the entries for each verdict that occurs."""
        found = [entry.outcome.verdict for entry in self.entries]
        return {verdict: found.count(verdict) for verdict in ledger.VERDICTS if verdict in found}


def check(ids: Sequence[str], text: str | None, verdict: str | None, fast: bool, seed: int) -> Checked:
    """Check the requested claims. We filter by verdict last, since only the check tells us the verdict."""
    known = {claim.id: claim for claim in ledger.claims()}
    for name in ids:
        if name.upper() not in known:
            raise UsageError("claims.id.unknown", value=shown(name))
    wanted = {name.upper() for name in ids} or known.keys()
    fitting = [claim for claim in known.values() if claim.id in wanted and text in (None, claim.text)]
    chosen = [claim for claim in fitting if not (fast and claim.slow)]
    if not chosen:
        raise UsageError("claims.nothing")
    bar = ProgressBar()

    def progress(done: int, total: int, claim: ledger.Claim) -> None:
        bar.label = claim.id
        bar(done / total)

    try:
        entries = ledger.check(chosen, progress, seed)
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "sympy"):
            raise
        raise UsageError("claims.package.missing", package=error.name) from error
    finally:
        bar.wipe()
    return Checked(
        [entry for entry in entries if verdict in (None, entry.outcome.verdict)],
        entries,
        ledger.settled(entries),
        seed,
        [claim.id for claim in fitting if claim not in chosen],
    )
