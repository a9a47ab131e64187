"""What a site's name says about it. Needs no PyTorch."""

from __future__ import annotations


def reads_another(site: str) -> bool:
    """Whether the site's name says that its keys come from another sequence."""
    return any(word in site for word in ("cross", "encoder_attn", "EncDec", "multihead_attn"))
