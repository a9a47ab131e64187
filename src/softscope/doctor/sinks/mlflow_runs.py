"""MLflow: metrics, and tags for events."""

from __future__ import annotations

import functools
import importlib
import posixpath
import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from softscope._installed import require
from softscope.doctor.alerts import alerts
from softscope.doctor.events import Listener
from softscope.doctor.sinks.loggers import Log

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from softscope._text import Lang
    from softscope.doctor.events import Event

_MOST, _LONGEST = 1000, 250  # metrics per request, and characters of a name, that MLflow accepts


class MLflow(Log):
    """Logs the scalars to a run of MLflow, one request for each snapshot, and the latest event of each check as a tag.

    The tags are `softscope.SS001` and so on: the run list shows and finds them. A thread sends everything, because
    MLflow tries for minutes to reach a server that does not answer; your program waits for it only when it ends, or in
    `flush`.

    Args:
        run_id: the run; by default the one that is active when the first snapshot arrives, so that a trainer may start
            it.
        client: an `MlflowClient`, if it is not the default one; with Lightning's `MLFlowLogger`, pass
            `logger.run_id, logger.experiment`.
        lang: the language of tags, "en" or "zh".

    Examples:
        >>> import types, numpy as np
        >>> from softscope.doctor import Site, Snapshot
        >>> logged = []
        >>> client = types.SimpleNamespace(log_batch=lambda run, metrics: logged.extend(metrics))
        >>> sink = MLflow("a1b2c3", client)
        >>> sink.sites([Site("encoder.0", "sdpa", heads=1, kv_heads=1, scale=0.125, head_size=64)])
        >>> sink.add(Snapshot(20, 0.1, None, {"max_logit": np.array([[4.5]])}))
        >>> sink.flush()
        >>> logged[0].key, logged[0].value, logged[0].step
        ('softscope/encoder.0/max_logit', 4.5, 20)
    """

    def __init__(self, run_id: str | None = None, client: Any = None, *, lang: Lang = "en") -> None:
        require("softscope.doctor.sinks.MLflow needs", ("mlflow",), install="mlflow")
        super().__init__(self._write, lang=lang)
        self._run, self._client, self._tag = run_id, client, Listener(self._set_tag, "the tag for an event")

    @property
    def wants_alerts(self) -> bool:
        """Always: they become tags."""
        return True

    def alert(self, events: Sequence[Event]) -> None:
        """Tag the run with the events of one reading."""
        for code in dict.fromkeys(event.code for event in events):
            told = alerts([event for event in events if event.code == code], self._lang)
            self._tag(f"softscope.{code}", "\n\n".join(f"{title}\n{text}" for title, text, _ in told))

    def flush(self) -> None:
        """Wait until everything has been sent, or given up."""
        self._thread.submit(int).result()

    @functools.cached_property
    def _thread(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(1, "softscope-mlflow")

    def _send(self, call: Callable[..., Any], *arguments: Any) -> None:
        """Call it in the thread, unless an earlier call has failed."""
        if self._log is not None:
            try:
                call(*arguments)
            except Exception as error:  # third-party code: it may raise anything
                self._give_up(error)

    def _started(self) -> tuple[Any, str]:
        mlflow = importlib.import_module("mlflow")
        if self._run is None:
            run = mlflow.active_run()
            if run is None:
                raise RuntimeError("no run of MLflow is active; call mlflow.start_run() first, or pass its run_id")
            self._run = run.info.run_id
        self._client = self._client or mlflow.MlflowClient()
        return self._client, self._run

    def _write(self, values: dict[str, float], step: int) -> None:
        client, run = self._started()
        metric, now = importlib.import_module("mlflow.entities").Metric, int(time.time() * 1000)
        metrics = [metric(_valid(name), value, now, step) for name, value in values.items()]
        for first in range(0, len(metrics), _MOST):
            self._thread.submit(self._send, client.log_batch, run, metrics[first : first + _MOST])

    def _set_tag(self, name: str, text: str) -> None:
        client, run = self._started()
        self._thread.submit(self._send, client.set_tag, run, name, text)


def _valid(name: str) -> str:
    """A name that MLflow accepts: it may be a path of a file, and the beginning of a long one says least.

    >>> _valid("softscope/towers.a/../b:c/blocked")
    'softscope/towers.a/__/b_c/blocked'
    """
    plain = posixpath.normpath(re.sub(r"[^/\w.\- ]", "_", name).replace("/..", "/__"))
    start, _, end = plain.partition("/")
    return plain if len(plain) <= _LONGEST else f"{start}/{end[len(start) + 1 - _LONGEST :].lstrip('/.')}"
