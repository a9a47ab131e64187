"""The ledger: every claim in the source texts, checked, with a verdict that follows from what was found.

Claims live in `texts/text_00N_….py`; every `Claim` in a module with such a name is loaded. One looks like this:

    @claim(
        "S1-03",                                              # its id; text 001
        says=Text(zh="……", en="the claim in our words"),      # may quote the text's numbers
        quote="……",                                           # a few words of the text itself
        where="Part 1, L21-22",
        experiment="normalisers",                             # the experiment that shows it; omit if none does
        slow=False,                                           # True: over a second or so; left to the nightly tier
    )
    def _s1_03() -> Outcome:
        p = …                                                 # measure; random numbers from generator("S1-03")
        return Outcome.of(
            {"[2.0, 2.1, 2.2]": near(p, ["0.326", "0.342", "0.358"])},    # what the sentence says, part by part
            measured=f"[{p[0]:.3f}, …]",                      # a string if it is only figures, else a Text
            because={"fails": Text(zh="……", en="why, in one or two sentences that a learner understands")},
            instead=Text(zh="……", en="the sentence that is true"),         # wherever the claim may fail
        )

The rule. A sentence with a false *part* fails. "Only if" names a condition on the *inputs* (unit variance, no ties,
few keys) under which the sentence as written is true: pass the inputs it was tried on as `under={label: held}`, and the
condition as `only_if`. A sentence that needs words reread, dropped or replaced fails as written; `instead` holds the
true one. If all cases are true, the claim holds.

`because` is a reason for each verdict the claim may get; a verdict without a reason gets a list of what was false.
Evidence has a kind: "measured" (we ran it), "derived" (proved by symbols or logic), "quoted" (it stands in a source,
which supports or contradicts it), "judged" (nothing to measure). `cited(source=…, supports=…, because=…)` and
`opinion(because)` label claims that we cannot decide. Numbers in `measured` and `because` come from the measurement
through f-strings, and both languages show the same ones. If several claims share a measurement, take it once, in a
function with `functools.cache`. Import torch, sympy and softscope.tasks inside functions, so that
`softscope claims S1-03` does not wait for them.

`near`, `cut`, `within`, `equal` and `off_by` compare. `estimate`, `variance_of` and `share` give a mean with its
standard error; its `above`, `below` and `agrees` raise NoiseError if the mean lies within four standard errors of the
edge. `times` compares speeds. `paper` records what the paper says. `texts.figures` formats rows of figures.
"""

from softscope.experiments.ledger import paper
from softscope.experiments.ledger.claim import Claim, claim, generator, seeded
from softscope.experiments.ledger.compare import cut, equal, half_unit, near, off_by, symbols, within
from softscope.experiments.ledger.contradictions import CONTRADICTIONS, Contradiction, Settled, settled
from softscope.experiments.ledger.estimate import Estimate, NoiseError, estimate, share, times, variance_of
from softscope.experiments.ledger.outcome import (
    EVIDENCE,
    VERDICTS,
    Case,
    Evidence,
    Outcome,
    Stance,
    Verdict,
    cited,
    opinion,
)
from softscope.experiments.ledger.places import place
from softscope.experiments.ledger.running import Entry, check, claims, forget

__all__ = [
    "CONTRADICTIONS",
    "EVIDENCE",
    "VERDICTS",
    "Case",
    "Claim",
    "Contradiction",
    "Entry",
    "Estimate",
    "Evidence",
    "NoiseError",
    "Outcome",
    "Settled",
    "Stance",
    "Verdict",
    "check",
    "cited",
    "claim",
    "claims",
    "cut",
    "equal",
    "estimate",
    "forget",
    "generator",
    "half_unit",
    "near",
    "off_by",
    "opinion",
    "paper",
    "place",
    "seeded",
    "settled",
    "share",
    "symbols",
    "times",
    "variance_of",
    "within",
]
