"""The claims, text by text: every module named text_00N… is found, and every `Claim` in it."""
