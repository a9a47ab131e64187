"""The claims, text by text. Every `Claim` in a module named text_00N… is loaded."""
