"""A probe that plays back a history made by hand."""

from softscope.doctor.events import watch
from softscope.doctor.sinks import follow

GREAT = 2000.0  # a largest logit that is a finding


class Played:
    """What followers use of a probe."""

    def __init__(self, found):
        self.found, self.callbacks, self.sites = found, [], found.sites

    def on_snapshot(self, callback):
        self.callbacks.append(callback)

    def history(self):
        return self.found

    def play(self):
        for snapshot in self.found.snapshots:
            for callback in self.callbacks:
                callback(snapshot)


def play(found, *sinks, **options):
    """Play a history to sinks."""
    scope = Played(found)
    follow(scope, *sinks, **options)
    scope.play()


def events(found, **options):
    """The events of a history, in short: (step, kind, code, head)."""
    got = []
    scope = Played(found)
    watch(scope, got.append, **options)
    scope.play()
    return [(event.step, event.kind, event.code, event.head) for event in got]
