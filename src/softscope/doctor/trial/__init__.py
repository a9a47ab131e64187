"""Trials: what happens to the loss if a head is made uniform or softer. Readings raise a suspicion, a trial decides."""
