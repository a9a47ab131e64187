"""Whether PyTorch's own context parallel is at work: then a call shows the keys of this rank, and there are others."""

from __future__ import annotations

import sys
from typing import Any

from torch.nn import functional

from softscope.doctor.listen.observed_call import Shards


def shards_here() -> Shards | None:
    """The group that shares out the keys of `scaled_dot_product_attention`, and how; None if none does.

    PyTorch replaces the function by one that knows the mesh, and keeps a list of such functions.
    """
    home: Any = sys.modules.get("torch.distributed.tensor.experimental._context_parallel._attention")
    if home is None:
        return None
    function: Any = functional.scaled_dot_product_attention
    while hasattr(function, "__wrapped__"):  # ours
        function = function.__wrapped__
    if function not in home._replaced_functions:
        return None
    from torch.distributed.device_mesh import DeviceMesh

    known = [cell.cell_contents for cell in function.__closure__ or ()]
    mesh = next(x for x in known if isinstance(x, DeviceMesh))
    return Shards(mesh.get_group(), "zigzag" if home._cp_options.enable_load_balance else "contiguous")


def is_dtensor(x: Any) -> bool:
    """Whether it is a DTensor: an operation on it may wait for other ranks."""
    tensors = sys.modules.get("torch.distributed.tensor")
    return tensors is not None and isinstance(x, tensors.DTensor)


def shared_out(*args: Any, **kwargs: Any) -> bool:
    """Whether a call works on DTensors: they find their operators by name, and must find the originals."""
    return any(map(is_dtensor, (*args, *kwargs.values()))) or shards_here() is not None
