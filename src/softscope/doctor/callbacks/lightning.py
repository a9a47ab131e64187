"""The doctor in Lightning's Trainer, whichever package it comes from: `lightning` or `pytorch_lightning`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from softscope.doctor.callbacks.attached import Callback


class LightningCallback(Callback):
    """A callback for Lightning's `Trainer`: attaches the probe when training begins and removes it when training ends.

        Trainer(max_epochs=3, callbacks=[LightningCallback("run.db")]).fit(module, batches)

    A step is one step of the optimizer, however many batches it took, with the mean of the losses that `training_step`
    returned for them. Step numbers are the trainer's `global_step`, also after `ckpt_path`. Validation is not read. If
    training stops with an exception, the probe is removed and the record says so.

    Every rank of a distributed training attaches; record and sinks get the snapshots on the first rank alone, so give
    a path and not a `Record` there.

    Args:
        record: where to record: a path, or a `Record`, which stays open; None to record nothing.
        every, max_rows, sinks, on_event, severity, group, probe: as for `HuggingFaceCallback`.

    Examples:
        >>> import torch, types
        >>> model = torch.nn.MultiheadAttention(8, 2, batch_first=True)
        >>> trainer = types.SimpleNamespace(global_step=0, is_global_zero=True, accumulate_grad_batches=1)
        >>> callback = LightningCallback(every=1)
        >>> callback.on_train_start(trainer, model)                            # a Trainer makes these calls
        >>> _, trainer.global_step = model(*3 * [torch.ones(1, 4, 8)]), 1
        >>> callback.on_train_batch_end(trainer, model, {"loss": torch.tensor(0.5)}, None, 0)
        >>> callback.scope.history().snapshots[0].loss
        0.5
        >>> callback.on_train_end(trainer, model)
    """

    _step = 0  # the trainer's, when ours began
    _losses: Sequence[Any] = ()  # of the batches since then

    def on_train_start(self, trainer: Any, module: Any) -> None:
        """Attach the probe: what is restored has been restored, and the first validation is over."""
        self._step, self._losses = trainer.global_step, ()
        self.attach(module, first_step=self._step, first_rank=trainer.is_global_zero)

    def on_train_batch_end(self, trainer: Any, _: Any, outputs: Any, *__: Any) -> None:
        """Mark the end of a step, if the optimizer has stepped."""
        loss: Any = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
        if hasattr(loss, "detach"):
            # The trainer has divided it, by as many also where an epoch ends and fewer batches are left.
            self._losses = [*self._losses, loss.detach().float().mean() * trainer.accumulate_grad_batches]
        if trainer.global_step != self._step:
            losses, self._losses, self._step = self._losses, (), trainer.global_step
            self.step(sum(losses) / len(losses) if losses else None)

    def on_train_end(self, *_: Any) -> None:
        """Remove the probe."""
        self.close()

    def on_exception(self, _: Any, __: Any, error: BaseException) -> None:
        """Remove the probe, and record what ended the training."""
        self.__exit__(type(error), error, error.__traceback__)

    # What else Lightning asks of a callback.

    @property
    def state_key(self) -> str:
        """The name of this callback for Lightning; it has no state to save, and there may be several."""
        return f"{type(self).__name__} {id(self)}"

    _legacy_state_key = state_key

    def state_dict(self) -> dict[str, Any]:
        """Nothing: the record is its own memory."""
        return {}

    def setup(self, *_: Any, **__: Any) -> None:
        """Nothing to do."""

    teardown = load_state_dict = setup
