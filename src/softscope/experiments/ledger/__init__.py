"""The ledger: every claim in the source texts, measured, with a verdict that follows from the measurement.

Claims live in `texts/text_00N_….py`; every `Claim` in a module with such a name is loaded. One looks like this:

    @claim(
        "S1-03",                                              # its id; text 001
        says=Text(zh="……", en="the claim in our words"),      # may quote the text's numbers
        where="Part 1, L21-22",
        experiment="normalisers",                             # a module of softscope.experiments; omit if none
        slow=False,                                           # True: over a second or so; left to the nightly tier
    )
    def _s1_03() -> Outcome:
        p = …                                                 # measure; random numbers from generator("S1-03")
        return Outcome.of(
            {"[2.0, 2.1, 2.2]": near(p, ["0.326", "0.342", "0.358"])},    # label → does the claim hold there?
            measured=f"[{p[0]:.3f}, …]",                      # a string if it is only figures, else a Text
            because=Text(zh="……", en="one sentence"),
            only_if=Text(zh="……", en="…"),                    # completes "holds only if"; required if cases differ
        )

If all cases are true, the claim holds; if none are, it fails; if only some are, the verdict is only-if.
`cited(source=…, because=…)` and `opinion(because)` label claims that we cannot measure. Numbers in `measured` and
`because` come from the measurement through f-strings, and both languages show the same ones. If several claims share a
measurement, take it once, in a function with `functools.cache`. Import torch, sympy and softscope.tasks inside
functions, so that `softscope claims S1-03` does not wait for them.

`near`, `cut`, `within`, `equal` and `off_by` compare. `estimate`, `variance_of` and `share` give a mean with its
standard error; its `above`, `below` and `agrees` raise NoiseError if the mean lies within four standard errors of the
edge. `times` compares speeds. `paper` records what the paper says. `texts.figures` formats rows of figures.
"""

from softscope.experiments.ledger import paper
from softscope.experiments.ledger.claim import Claim, claim, generator
from softscope.experiments.ledger.compare import cut, equal, half_unit, near, off_by, symbols, within
from softscope.experiments.ledger.contradictions import CONTRADICTIONS, Contradiction, Settled, settled
from softscope.experiments.ledger.estimate import Estimate, NoiseError, estimate, share, times, variance_of
from softscope.experiments.ledger.outcome import VERDICTS, Outcome, Verdict, cited, opinion
from softscope.experiments.ledger.places import place
from softscope.experiments.ledger.running import Entry, check, claims

__all__ = [
    "CONTRADICTIONS",
    "VERDICTS",
    "Claim",
    "Contradiction",
    "Entry",
    "Estimate",
    "NoiseError",
    "Outcome",
    "Settled",
    "Verdict",
    "check",
    "cited",
    "claim",
    "claims",
    "cut",
    "equal",
    "estimate",
    "generator",
    "half_unit",
    "near",
    "off_by",
    "opinion",
    "paper",
    "place",
    "settled",
    "share",
    "symbols",
    "times",
    "variance_of",
    "within",
]
