"""Wrappers of the functions that are replaced: each calls the original once and reports or follows the call."""

from __future__ import annotations

import contextlib
import functools
import types
from collections.abc import Callable
from typing import Any

from softscope.doctor.listen.observed_call import ObservedCall
from softscope.doctor.listen.patches import Function, here, lifted, quietly, state, tell, trouble


def told(
    describe: Callable[..., ObservedCall | None], *, lift: Callable[..., bool] = lambda *_, **__: False
) -> Callable[[Function], Function]:
    """Wrap a function to report what `describe(result, *args, **kwargs)` makes of each call.

    Args:
        describe: Describes the call.
        lift: Whether to run the function without any of our wrappers, given its arguments.
    """

    def wrap(original: Function) -> Function:
        @functools.wraps(original)
        def overheard(*args: Any, **kwargs: Any) -> Any:
            if state.busy or not here():
                return original(*args, **kwargs)
            for rewrite in state.rewrites:
                args, kwargs = rewrite(original, args, kwargs)
            state.busy = True
            try:
                with lifted() if lift(*args, **kwargs) else contextlib.nullcontext():
                    result = original(*args, **kwargs)
                tell(lambda: describe(result, *args, **kwargs))
            finally:
                state.busy = False
            return result

        return overheard

    return wrap


def followed(after: Callable[..., None], *, with_original: bool = False) -> Callable[[Function], Function]:
    """Wrap a function to tell `after(result, *args, **kwargs)` of each call; what it raises only loses the trace."""

    def wrap(original: Function) -> Function:
        attribute = isinstance(original, types.GetSetDescriptorType)  # such as Tensor.mT
        call: Function = original.__get__ if attribute else original
        follow = functools.partial(after, call) if with_original else after

        def known(*args: Any, **kwargs: Any) -> Any:
            if state.busy or not here():
                return call(*args, **kwargs)
            state.busy = True
            try:
                result = call(*args, **kwargs)
                if result is not NotImplemented:
                    args = *args, *(kwargs.pop(name) for name in ("input", "other") if name in kwargs)
                    quietly(follow, result, *args, **kwargs)
            finally:
                state.busy = False
            return result

        return property(known) if attribute else functools.update_wrapper(known, original)  # type: ignore[return-value]

    return wrap


def around_product(
    before: Callable[..., ObservedCall | None], after: Callable[..., None]
) -> Callable[[Function], Function]:
    """Wrap a function to report what `before(*args)` makes of its arguments, before it runs, and follow its result."""

    def wrap(original: Function) -> Function:
        @functools.wraps(original)
        def multiply(*args: Any, **kwargs: Any) -> Any:
            if state.busy or not here():
                return original(*args, **kwargs)
            state.busy = True
            try:
                tell(lambda: before(*args, **kwargs))
                result = original(*args, **kwargs)
                if result is not NotImplemented:
                    quietly(after, result, *args, **kwargs)
            finally:
                state.busy = False
            return result

        return multiply

    return wrap


def surrounding(
    know: Callable[..., dict[str, Any]],
    describe: Callable[..., ObservedCall | None] | None = None,
    *,
    lift: bool = False,
) -> Callable[[Function], Function]:
    """Wrap a function that contains an observed call, and add to it what `know` returns.

    If no inner call was observed, report what `describe` makes of this one. With `lift`, none is observed.
    """

    def wrap(original: Function) -> Function:
        @functools.wraps(original)
        def around(*args: Any, **kwargs: Any) -> Any:
            if state.busy or not here():
                return original(*args, **kwargs)
            known: dict[str, Any] = {}
            try:
                known = know(*args, **kwargs)
            except Exception as error:
                trouble(error)
            state.around.append(known)
            try:
                with lifted() if lift else contextlib.nullcontext():
                    result = original(*args, **kwargs)
            finally:
                state.around.pop()
            if describe is not None and not known.get("heard"):
                state.busy = True
                try:
                    tell(lambda: describe(result, *args, **kwargs))
                finally:
                    state.busy = False
            return result

        return around

    return wrap
