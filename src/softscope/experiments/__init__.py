"""The questions of the texts as experiments: each measures, returns tables with their uncertainty, and draws them.

`softscope.experiments.ledger` holds what the texts claim, each claim with the measurement that decides it.

>>> from softscope import experiments
>>> result = experiments.run("extremes")
>>> round(float(result["cases"].row(case="slight")["peak"]), 4)
0.6652

`NAMES` are the experiments, `LANGS` the languages, and `Lang` the type of one of these:

>>> experiments.NAMES[:3], experiments.LANGS
(('overflow', 'extremes', 'temperature'), ('en', 'zh'))
>>> spoken: experiments.Lang = "zh"
>>> experiments.entry("overflow").question(spoken)[-1]
'？'
"""

from softscope._text import LANGS, Lang, Text
from softscope.experiments.catalogue import NAMES, Entry, entry, run
from softscope.experiments.result import Result
from softscope.experiments.table import Column, Measured, Table

__all__ = ["LANGS", "NAMES", "Column", "Entry", "Lang", "Measured", "Result", "Table", "Text", "entry", "run"]
