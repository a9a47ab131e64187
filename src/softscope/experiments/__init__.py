"""The experiments: each answers one question from the texts, returns tables with error estimates, and draws charts.

`softscope.experiments.ledger` lists every claim the texts make, each with the measurement that decides it.

>>> from softscope import experiments
>>> result = experiments.run("extremes")
>>> round(float(result["cases"].row(case="slight")["peak"]), 4)
0.6652

`NAMES` lists the experiments, `LANGS` the languages, and `Lang` is the type of a language code:

>>> experiments.NAMES[:3], experiments.LANGS
(('overflow', 'extremes', 'temperature'), ('en', 'zh'))
>>> spoken: experiments.Lang = "zh"
>>> experiments.entry("overflow").question.of(spoken)[-1]
'？'
"""

from softscope._text import LANGS, Lang, Text
from softscope.experiments.catalogue import NAMES, Entry, entry, run
from softscope.experiments.result import Result
from softscope.experiments.table import Column, Measured, Table

__all__ = ["LANGS", "NAMES", "Column", "Entry", "Lang", "Measured", "Result", "Table", "Text", "entry", "run"]
