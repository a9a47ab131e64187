"""A stand-in for the probe: it reads nothing and makes up a snapshot for every step."""

from doctor.record.runs import SITES, snapshot
from softscope.doctor.read.snapshot import History


class FakeScope:
    """`with probe(model) as scope`, with the methods that followers of a probe use."""

    made: list = []  # noqa: RUF012

    def __init__(self, model, **options):
        self.model, self.options = model, options
        self.attached, self.steps, self.losses, self.callbacks, self.snapshots = False, 0, [], [], []
        self.made.append(self)

    def __enter__(self):
        self.attached = True
        return self

    def __exit__(self, *_):
        self.attached = False

    def on_snapshot(self, callback):
        self.callbacks.append(callback)

    def step(self, loss=None):
        assert self.attached
        self.losses.append(loss)
        self.snapshots.append(snapshot(self.steps, loss=loss))
        self.steps += 1
        for callback in self.callbacks:
            callback(self.snapshots[-1])

    @property
    def sites(self):
        return SITES

    def history(self):
        facts = {"model": type(self.model).__name__}
        return History(SITES, tuple(self.snapshots), (("pooler", "no softmax seen"),), facts)
