"""The contract that every map from logits to weights must keep, as one public battery. NumPy only."""

from softscope.testing.battery import check_simplex_map
from softscope.testing.report import Report, Result
from softscope.testing.sentences import PROPERTIES

__all__ = ["PROPERTIES", "Report", "Result", "check_simplex_map"]
