"""One word per concept, in Chinese, English, symbol and code: the vocabulary of every softscope text.

>>> from softscope.lab import glossary
>>> glossary.find("温度").code
'softmax(temperature)'
"""

from softscope.lab.glossary.checking import disagreements
from softscope.lab.glossary.term import Term, exists
from softscope.lab.glossary.terms import TERMS, find

__all__ = ["TERMS", "Term", "disagreements", "exists", "find"]
