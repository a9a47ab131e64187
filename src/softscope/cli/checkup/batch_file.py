"""A batch of model input from a file of torch.save, which may be a stranger's: plain tensors, and no more than fit."""

from __future__ import annotations

import pickle
import zipfile
from typing import TYPE_CHECKING, Any

from softscope.cli.checkup import sizes
from softscope.cli.checkup.apart import reason
from softscope.cli.checkup.clean_copy import regular
from softscope.cli.problems import UsageError, shown

if TYPE_CHECKING:
    import pathlib


def saved_batch(path: pathlib.Path) -> dict[str, Any]:
    """Return the tensors of the file by name; a single one is called input_ids."""
    import torch

    try:
        path.stat()
        regular(path, sizes.BATCH)
        if zipfile.is_zipfile(path):
            check_stored(path)
        found = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise UsageError("checkup.folder.pickle", path=shown(path)) from None
    except (UsageError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise UsageError("checkup.batch.unreadable", path=shown(path), reason=reason(error)) from None
    parts = found if isinstance(found, dict) else {"input_ids": found}
    if not parts or not all(isinstance(key, str) and isinstance(x, torch.Tensor) for key, x in parts.items()):
        raise UsageError("checkup.batch.wrong", path=shown(path), came=type(found).__name__)
    for key, x in parts.items():
        if (kind := _kind(x)) != "dense":
            raise UsageError("checkup.batch.layout", path=shown(path), name=shown(key), came=kind)
    if (total := sum(x.numel() * x.element_size() for x in parts.values())) > sizes.BATCH:
        raise UsageError("checkup.file.large", path=shown(path), size=sizes.told(total), most=sizes.told(sizes.BATCH))
    return parts


def _kind(x: Any) -> str:
    """Name what makes a tensor more, or less, than an array of numbers in memory."""
    if x.is_nested:
        return "nested"
    if str(x.layout) != "torch.strided":
        return "sparse"
    return "quantized" if x.is_quantized else "dense" if x.device.type == "cpu" else str(x.device.type)


def check_stored(path: pathlib.Path) -> None:
    """Refuse compressed members: torch.save writes none, and a small file could unfold into any size."""
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if member.compress_type != zipfile.ZIP_STORED or member.file_size > path.stat().st_size:
                raise UsageError("checkup.file.packed", path=path.name)
