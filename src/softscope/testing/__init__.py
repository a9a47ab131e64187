"""A public test battery for maps from logits to weights; it needs only NumPy.

`PROPERTIES` names the tested properties, in the order of a report:

>>> from softscope import testing
>>> testing.PROPERTIES[:4]
('returns', 'finite', 'non_negative', 'sums_to_one')
"""

from softscope.testing.battery import check_simplex_map
from softscope.testing.report import Report, Result
from softscope.testing.sentences import PROPERTIES

__all__ = ["PROPERTIES", "Report", "Result", "check_simplex_map"]
