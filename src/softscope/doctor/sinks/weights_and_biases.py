"""Weights & Biases: scalars with their own step, and alerts."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from softscope._installed import require
from softscope.doctor.sinks.loggers import Log

if TYPE_CHECKING:
    from softscope._text import Lang

_STEP = "softscope/step"


class WandB(Log):
    """Logs the scalars to a run of Weights & Biases, and events as its alerts.

    The charts have `softscope/step` as their x-axis: a run's own step is whatever its loggers make of it, and a row
    below it would be dropped. A snapshot joins the row that is open there, or begins the one of its own step, whichever
    is later, and never the row of the snapshot before. If you log with a `step=` of your own, let it count training
    steps: one that counts epochs would soon be below the latest row.

    Args:
        run: what `wandb.init` returned; by default the run that is active when the first snapshot arrives, so that a
            trainer may start it.
        lang: the language of alerts, "en" or "zh".

    Examples:
        >>> import types, numpy as np
        >>> from softscope.doctor import Site, Snapshot
        >>> run = types.SimpleNamespace(step=0, log=print, alert=print, define_metric=lambda *_, **__: None)
        >>> sink = WandB(run)
        >>> sink.sites([Site("encoder.0", "sdpa", heads=1, kv_heads=1, scale=0.125, head_size=64)])
        >>> sink.add(Snapshot(20, 0.1, None, {"max_logit": np.array([[4.5]])}))
        {'softscope/encoder.0/max_logit': 4.5, 'softscope/encoder.0/max_logit_worst': 4.5, 'softscope/step': 20} 20
    """

    def __init__(self, run: Any = None, *, lang: Lang = "en") -> None:
        super().__init__(self._write, self._tell, lang=lang)
        if run is None:
            require("softscope.doctor.sinks.WandB needs", ("wandb",), install="wandb")
        self._run, self._row = run, -1
        self._defined: set[str] = set()

    def _started(self) -> Any:
        if self._run is None:
            self._run = importlib.import_module("wandb").run
        if self._run is None:
            raise RuntimeError("no run of Weights & Biases is active; call wandb.init() first, or pass its run")
        return self._run

    def _write(self, values: dict[str, float], step: int) -> None:
        run = self._started()
        # By name: a pattern may lose against the "*" of a trainer's own logger.
        if not self._defined:
            run.define_metric(_STEP, hidden=True)
        for name in values.keys() - self._defined:
            run.define_metric(name, step_metric=_STEP)
        self._defined |= values.keys()
        self._row = max(step, run.step, self._row + 1)
        run.log({**values, _STEP: step}, self._row)

    def _tell(self, **alert: str) -> None:
        self._started().alert(**alert)
