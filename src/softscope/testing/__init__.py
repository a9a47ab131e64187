"""The contract that every map from logits to weights must keep, as one public battery. NumPy only.

`PROPERTIES` names what is tested, in the order of a report:

>>> from softscope import testing
>>> testing.PROPERTIES[:4]
('returns', 'finite', 'non_negative', 'sums_to_one')
"""

from softscope.testing.battery import check_simplex_map
from softscope.testing.report import Report, Result
from softscope.testing.sentences import PROPERTIES

__all__ = ["PROPERTIES", "Report", "Result", "check_simplex_map"]
