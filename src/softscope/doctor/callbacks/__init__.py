"""The doctor inside a training: your own loop, Hugging Face's Trainer, Lightning's. See docs/examples."""

from softscope.doctor.callbacks.huggingface import HuggingFaceCallback
from softscope.doctor.callbacks.lightning import LightningCallback
from softscope.doctor.callbacks.loop import watch_training

__all__ = ["HuggingFaceCallback", "LightningCallback", "watch_training"]
