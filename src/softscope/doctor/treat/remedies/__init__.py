"""Remedies as code: each changes a model in place and reports its changes; `undo()` reverts them.

>>> import torch
>>> from softscope.doctor import remedies
>>> model = torch.nn.MultiheadAttention(8, 2)
>>> done = remedies.softcap(model, cap=20.0)
>>> [change.what.en for change in done.changes]
['soft cap 20']
>>> done.undo()
"""

from softscope.doctor.treat.remedies.applied import Applied, Change, NotSupportedError
from softscope.doctor.treat.remedies.entmax import entmax
from softscope.doctor.treat.remedies.largest import largest_logits
from softscope.doctor.treat.remedies.layout import Layout, layouts
from softscope.doctor.treat.remedies.mask import mask
from softscope.doctor.treat.remedies.places import head_count
from softscope.doctor.treat.remedies.qk_clip import qk_clip
from softscope.doctor.treat.remedies.qk_norm import qk_norm
from softscope.doctor.treat.remedies.reinitialise import reinitialise
from softscope.doctor.treat.remedies.scalable import scalable
from softscope.doctor.treat.remedies.sink import sink
from softscope.doctor.treat.remedies.softcap import softcap
from softscope.doctor.treat.remedies.temperature import temperature
from softscope.doctor.treat.remedies.unfreeze import unfreeze

__all__ = [
    "Applied",
    "Change",
    "Layout",
    "NotSupportedError",
    "entmax",
    "head_count",
    "largest_logits",
    "layouts",
    "mask",
    "qk_clip",
    "qk_norm",
    "reinitialise",
    "scalable",
    "sink",
    "softcap",
    "temperature",
    "unfreeze",
]
