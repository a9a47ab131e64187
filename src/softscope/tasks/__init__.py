"""Small synthetic tasks and small models that learn them, used by the doctor, the experiments and the lab.

>>> from softscope import tasks
>>> model = tasks.RecallModel(d=16, vocabulary=4)
>>> history = tasks.train(model, lambda g: tasks.recall_batch(8, pairs=4, generator=g), steps=3)
>>> len(history.loss)
3

`IGNORED` is the target of a position that asks for no answer:

>>> tasks.IGNORED
-100
"""

try:
    import torch as _torch  # noqa: F401  (imported here once, so that a missing torch gives a readable error)
except ModuleNotFoundError as error:
    if error.name != "torch":  # torch is installed but broken: its own message says more than ours
        raise
    raise ImportError("softscope.tasks needs PyTorch: pip install 'softscope[torch]'") from error

from softscope.tasks.batch import IGNORED, Batch
from softscope.tasks.copying import CopyBatch, copy_batch
from softscope.tasks.layer import Attention
from softscope.tasks.models import RecallModel, SmallTransformer
from softscope.tasks.options import AttentionOptions
from softscope.tasks.recall import RecallBatch, recall_batch
from softscope.tasks.training import History, train

__all__ = [
    "IGNORED",
    "Attention",
    "AttentionOptions",
    "Batch",
    "CopyBatch",
    "History",
    "RecallBatch",
    "RecallModel",
    "SmallTransformer",
    "copy_batch",
    "recall_batch",
    "train",
]
