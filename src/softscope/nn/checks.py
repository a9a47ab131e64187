"""Input checks for multi-head attention; each error names the argument, the rule, the value and the fix."""

from torch import Tensor

from softscope._arguments.checks import whole_number
from softscope.nn import masks


def sizes(embed_dim: int, num_heads: int) -> None:
    """Refuse an embed_dim that does not divide into num_heads heads."""
    d, heads = whole_number(embed_dim, "embed_dim", 1), whole_number(num_heads, "num_heads", 1)
    if d % heads:
        raise ValueError(
            f"num_heads must divide embed_dim, but got num_heads={heads} and embed_dim={d}; "
            f"the nearest larger embed_dim that fits is {-(-d // heads) * heads}"
        )


def tokens(query: Tensor, key: Tensor, value: Tensor, sizes: tuple[int, int, int], *, batch_first: bool) -> None:
    """Refuse inputs that do not match each other or the module's sizes (embed_dim, kdim, vdim)."""
    given = {"query": query, "key": key, "value": value}
    form = "(batch, n, size)" if batch_first else "(n, batch, size)"
    for (name, x), size, rule in zip(given.items(), sizes, ("embed_dim", "kdim", "vdim"), strict=True):
        if not isinstance(x, Tensor):
            raise TypeError(f"{name} must be a tensor, but got {type(x).__name__}; convert it")
        if x.is_nested:
            raise TypeError(
                f"{name} must be a padded tensor, but got a nested one; pad it and pass key_padding_mask "
                f"(nn.TransformerEncoder: set its use_nested_tensor to False, as softscope.nn.replace does)"
            )
        if x.ndim not in (2, 3) or x.ndim != query.ndim:
            raise ValueError(
                f"{name} must be {form}, or (n, size) like the others, but has shape {tuple(x.shape)} "
                f"beside a query of {tuple(query.shape)}; reshape it"
            )
        if x.shape[-1] != size:
            raise ValueError(
                f"{name} must have {rule} = {size} components, but has shape {tuple(x.shape)}; "
                f"build the layer for its size, or project it"
            )
    if key.shape[:-1] != value.shape[:-1]:
        raise ValueError(
            f"key and value must have the same length and batch, but got {tuple(key.shape)} and {tuple(value.shape)}; "
            f"cut or pad one of them"
        )
    axis = 0 if batch_first else 1
    if query.ndim == 3 and query.shape[axis] != key.shape[axis]:
        raise ValueError(
            f"query and key must have the same batch, but got {tuple(query.shape)} and {tuple(key.shape)} as {form}; "
            f"match them, or set batch_first={not batch_first}"
        )


def both_masks(attn_mask: Tensor | None, key_padding_mask: Tensor | None, q: Tensor, k: Tensor) -> None:
    """Refuse masks that do not match q (…, heads, n, d) and k (…, heads, m, d)."""
    *batch, heads, n, _ = q.shape
    m = k.shape[-2]
    several = (*batch, 1)[0] * heads
    masks.checked(attn_mask, "attn_mask", ((n, m), (several, n, m)), "(n, m) or (batch·heads, n, m)")
    axes = "(batch, m)" if batch else "(m,)"
    masks.checked(key_padding_mask, "key_padding_mask", ((*batch, m),), axes)
