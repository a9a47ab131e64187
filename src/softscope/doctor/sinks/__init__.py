"""Where snapshots go during training: a record, TensorBoard, Weights & Biases, MLflow, Prometheus, or several of these.

A sink has four methods, the same as `Record`: `sites`, `add`, `unseen`, `note`. `follow` connects sinks to a probe. A
sink with `states` also gets the state of every head before each snapshot, one with `alert` the events of each reading.

>>> import numpy as np
>>> from softscope.doctor import Site, Snapshot, sinks
>>> log = sinks.Log(lambda values, step: print(step, values))
>>> log.sites([Site("encoder.0", "sdpa", heads=2, kv_heads=2, scale=0.125, head_size=64)])
>>> log.add(Snapshot(20, 0.1, None, {"sharpness": np.array([[0.25, 0.75]])}))
20 {'softscope/encoder.0/sharpness': 0.5, 'softscope/encoder.0/sharpness_worst': 0.75}
"""

from softscope.doctor.sinks.following import follow
from softscope.doctor.sinks.kinds import Alerted, Sink, SnapshotSource, Stateful
from softscope.doctor.sinks.loggers import Log, TensorBoard
from softscope.doctor.sinks.mlflow_runs import MLflow
from softscope.doctor.sinks.numbers import scalars
from softscope.doctor.sinks.prometheus_text import Prometheus
from softscope.doctor.sinks.weights_and_biases import WandB

__all__ = [
    "Alerted",
    "Log",
    "MLflow",
    "Prometheus",
    "Sink",
    "SnapshotSource",
    "Stateful",
    "TensorBoard",
    "WandB",
    "follow",
    "scalars",
]
