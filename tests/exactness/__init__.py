"""Exactness: every function against the oracles, within the bounds stated in `softscope.bounds`."""
