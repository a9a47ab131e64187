"""The changes a remedy made to a model, whether they are saved with it, and how to undo them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Literal

from softscope._text import Text

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch.nn import Parameter

Place = Literal["weights", "adapter", "options", "call"]
KEPT: dict[Place, Text] = {
    "weights": Text(zh="在权重里：随权重一起保存", en="in the weights: saved with them"),
    "adapter": Text(
        zh="在底座和适配器的权重里：PEFT 的 save_pretrained 只保存适配器，请连底座一起保存，或在加载后重新执行：{code}",
        en="in the weights of base and adapter: PEFT's save_pretrained stores only the adapter, so save the base, too, "
        "or apply again after loading: {code}",
    ),
    "options": Text(
        zh="在模块的选项里：save_pretrained 和 state_dict 不保存它，请在加载前重新执行：{code}",
        en="in the module's options: not in save_pretrained or state_dict, apply again before loading: {code}",
    ),
    "call": Text(
        zh="在注意力调用处的钩子里：torch.save(model) 会保存它，save_pretrained 和 state_dict 不会，"
        "请在加载前重新执行：{code}",
        en="in a hook at the attention call: torch.save(model) keeps it, save_pretrained and state_dict do not, apply "
        "again before loading: {code}",
    ),
}


class NotSupportedError(ValueError):
    """The remedy cannot be applied here; the message says why and what to do instead.

    >>> import torch
    >>> from softscope.doctor import remedies
    >>> remedies.head_count(torch.nn.Sequential(torch.nn.Linear(8, 8)), "0")
    Traceback (most recent call last):
    ...
    softscope.doctor.treat.remedies.applied.NotSupportedError: not supported at 0: ...
    """


def unsupported(site: str, why: str, instead: str) -> NotSupportedError:
    """Build the error, with a one-sentence message."""
    return NotSupportedError(f"not supported at {site}: {why}; instead {instead}")


@dataclasses.dataclass(frozen=True)
class Change:
    """A change at one site, to these heads (to all heads if empty), and where it is kept.

    >>> Change("encoder.0", heads=(3,), what=Text(zh="温度 4", en="temperature 4")).heads
    (3,)
    """

    site: str
    heads: tuple[int, ...]
    what: Text
    place: Place = "weights"


@dataclasses.dataclass
class Applied:
    """The changes of a remedy, in order; empty if it did nothing.

    Attributes:
        remedy: its name, for programs.
        changes: what was changed, site by site.
        parameters: the new trainable parameters: an optimizer created earlier does not know them.
        code: the call that does the same again.
        without_effect: why a change at the attention call did nothing, once the model has run.

    >>> import torch
    >>> from softscope.doctor import remedies
    >>> done = remedies.sink(torch.nn.MultiheadAttention(8, 2))
    >>> done.remedy, len(done.changes), len(done.parameters)
    ('sink', 1, 1)
    >>> done.kept.en
    "in the module's options: not in save_pretrained or state_dict, apply again before loading: remedies.sink(model)"
    >>> done.undo()
    >>> bool(done)
    False
    """

    remedy: str
    changes: list[Change] = dataclasses.field(default_factory=list)
    parameters: list[Parameter] = dataclasses.field(default_factory=list)
    code: str = ""
    without_effect: list[str] = dataclasses.field(default_factory=list)
    _back: list[Callable[[], None]] = dataclasses.field(default_factory=list, repr=False)
    _fold: Callable[[Any], Applied] | None = dataclasses.field(default=None, repr=False)

    @property
    def kept(self) -> Text:
        """Whether saving the model saves the changes; if not, how to get them back after loading."""
        places = dict.fromkeys(change.place for change in self.changes)
        said = [KEPT[place].format(code=self.code) for place in places]
        return Text(zh="；".join(text.zh for text in said), en="; ".join(text.en for text in said))

    def undo(self) -> None:
        """Restore the earlier state; weights return to their old values, whatever training did to them since."""
        while self._back:
            self._back.pop()()
        self.changes.clear()

    def fold(self, layout: Any = None) -> None:
        """Move the changes into the weights, so that they are saved with them; exact for a temperature.

        Args:
            layout: where unknown modules keep the weights of q and k, as `remedies.layouts` finds it.

        >>> import torch
        >>> from softscope.doctor import remedies
        >>> done = remedies.temperature(torch.nn.MultiheadAttention(8, 2), {"MultiheadAttention": {0: 4.0}})
        >>> done.fold()
        >>> done.kept.en
        'in the weights: saved with them'
        """
        if all(change.place in ("weights", "adapter") for change in self.changes):
            return
        if self._fold is None:
            raise NotSupportedError(
                f"not supported: {self.remedy} is no factor on weights, so it cannot be folded into them; instead "
                f"apply it again after loading: {self.code}"
            )
        new = self._fold(layout)
        self.changes, self.code, self._back = new.changes, new.code, new._back

    def absorb(self, other: Applied) -> None:
        """Merge another remedy's changes into this one."""
        self.changes += other.changes
        self.parameters += other.parameters
        self.code = "\n".join(part for part in (self.code, other.code) if part)
        self._back.append(other.undo)

    def on_undo(self, back: Callable[[], None]) -> None:
        """Register a callback for `undo`; the last one registered runs first."""
        self._back.append(back)

    def on_fold(self, fold: Callable[[Any], Applied]) -> None:
        """Register what `fold` does; it must raise before it changes anything."""
        self._fold = fold

    def __bool__(self) -> bool:
        return bool(self.changes)
