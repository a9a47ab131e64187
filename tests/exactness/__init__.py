"""Exactness: every function against the oracles, within the bounds that `softscope.bounds` states."""
