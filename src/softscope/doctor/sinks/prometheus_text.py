"""Prometheus: the latest readings as gauges, in a file or in a registry that your program serves."""

from __future__ import annotations

import importlib
import os
import re
from typing import TYPE_CHECKING, Any

from softscope._installed import require
from softscope.doctor.judge.states import STATES
from softscope.doctor.sinks.loggers import Log
from softscope.doctor.sinks.numbers import WORST

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAME = re.compile(
    rf"softscope/(?:heads/(?P<total>{'|'.join(STATES)})"
    rf"|(?P<site>.*)/(?:state/(?P<state>{'|'.join(STATES)})|(?P<reading>{'|'.join(WORST)})(?P<worst>_worst)?))",
    re.DOTALL,  # a module's name may be any text
)
_HELP = {
    "step": "The step of the latest reading.",
    "heads": "How many heads of the model are in this state.",
    "site_heads": "How many heads of this site are in this state.",
}


class Prometheus(Log):
    """Keeps the latest scalars as gauges for Prometheus.

    They are `softscope_heads{state}`, `softscope_site_heads{site, state}`, `softscope_step`, and for each reading, such
    as `softscope_blocked{site, head}`, the mean over heads and the worst head. Nothing listens on a port unless you
    start it: `prometheus_client.start_http_server(9464, "127.0.0.1", registry=sink.registry)`.

    Args:
        path: a file to rewrite at every reading, such as one for node_exporter's textfile collector; or None.
        registry: a `CollectorRegistry` to add the gauges to, such as the one your program serves; by default one of
            its own.

    Examples:
        >>> import numpy as np, prometheus_client
        >>> from softscope.doctor import Site, Snapshot
        >>> sink = Prometheus()
        >>> sink.sites([Site("encoder.0", "sdpa", heads=2, kv_heads=2, scale=0.125, head_size=64)])
        >>> sink.add(Snapshot(20, 0.1, None, {"max_logit": np.array([[4.5, 0.5]])}))
        >>> print(prometheus_client.generate_latest(sink.registry).decode())
        # HELP softscope_step The step of the latest reading.
        # TYPE softscope_step gauge
        softscope_step 20.0
        # HELP softscope_max_logit The reading max_logit: the mean over a site's heads, and its worst head.
        # TYPE softscope_max_logit gauge
        softscope_max_logit{head="mean",site="encoder.0"} 2.5
        softscope_max_logit{head="worst",site="encoder.0"} 4.5
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, registry: Any = None) -> None:
        require("softscope.doctor.sinks.Prometheus needs", ("prometheus_client",), install="prometheus_client")
        super().__init__(self._write)
        self._package = importlib.import_module("prometheus_client")
        self._path = None if path is None else os.path.abspath(path)
        self.registry = self._package.CollectorRegistry() if registry is None else registry
        self._latest: tuple[dict[str, float], int] | None = None
        self.registry.register(self)

    def collect(self) -> Iterator[Any]:
        """The gauges: `prometheus_client` calls it when somebody asks."""
        if self._latest is None:
            return
        (values, step), gauge = self._latest, importlib.import_module("prometheus_client.core").GaugeMetricFamily
        yield gauge("softscope_step", _HELP["step"], step)
        families: dict[str, Any] = {}
        for name, value in values.items():
            what, labels = _labelled(name)
            if what not in families:
                text = _HELP.get(what, f"The reading {what}: the mean over a site's heads, and its worst head.")
                families[what] = gauge(f"softscope_{what}", text, labels=tuple(labels))
            families[what].add_metric(tuple(labels.values()), value)
        yield from families.values()

    def _write(self, values: dict[str, float], step: int) -> None:
        self._latest = values, step  # at once: another thread may be collecting
        if self._path is not None:
            self._package.write_to_textfile(self._path, self.registry)


def _labelled(name: str) -> tuple[str, dict[str, str]]:
    """A gauge and its labels, from the name in `scalars`.

    >>> _labelled("softscope/encoder.0/blocked_worst"), _labelled("softscope/heads/starving")
    (('blocked', {'head': 'worst', 'site': 'encoder.0'}), ('heads', {'state': 'starving'}))
    """
    found = _NAME.fullmatch(name)
    assert found is not None, name
    if found["total"]:
        return "heads", {"state": found["total"]}
    if found["state"]:
        return "site_heads", {"site": found["site"], "state": found["state"]}
    return found["reading"], {"head": "worst" if found["worst"] else "mean", "site": found["site"]}
