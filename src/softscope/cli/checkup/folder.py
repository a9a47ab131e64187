"""A Hugging Face model from a local folder, which may be a stranger's: no code of it runs and nothing is downloaded.

transformers gets a clean copy of the folder (`clean_copy`). A process of its own (`apart`) first reads the
configuration, the weights' headers and the tokenizer, builds the model without memory and compares its size with that
of the weights (`sizes`). Only then is anything allocated here.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.resources
import json
import pickle
import zipfile
from typing import TYPE_CHECKING, Any

from softscope.cli.checkup import sizes
from softscope.cli.checkup.apart import apart, reason
from softscope.cli.checkup.batch_file import check_stored, saved_batch
from softscope.cli.checkup.clean_copy import CONFIG, WEIGHTS, clean_copy
from softscope.cli.checkup.surroundings import closed, quiet
from softscope.cli.problems import UsageError, shown

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Iterator

    from softscope.doctor.examine import Given

LONGEST = 128  # tokens per sequence
FEWEST = 8
SEQUENCES = 6  # two in each of three readings: a standard error needs more than one
_READ = 2**20  # characters of a text, far more than are needed
# We download nothing and run no code from the folder.
_CLOSED = {"local_files_only": True, "trust_remote_code": False}


def given(folder: pathlib.Path, text: str | None, batch: pathlib.Path | None) -> Given:
    """Return the model with its call arguments; there is a loss if the model was made for next-token prediction."""
    from softscope._installed import missing
    from softscope.doctor.examine import Given, passes

    if missing(("transformers",)):
        raise UsageError("checkup.transformers")
    if not (folder / "config.json").is_file():
        raise UsageError("checkup.folder.config", path=shown(folder))
    saved = None if batch is None else saved_batch(batch)
    if text is None:
        text = importlib.resources.files("softscope.cli.checkup").joinpath("sample.txt").read_text("utf-8")
    with closed(), clean_copy(folder) as (copy, weights), _plain(copy, folder), quiet():
        if not weights:
            raise UsageError("checkup.folder.load", path=shown(folder), reason=f"no {WEIGHTS[0]}, no {WEIGHTS[2]}")
        words = None if saved is not None else text[:_READ]
        with contextlib.suppress(Exception):  # import once, not in each process; what fails here is told there
            _named_class(json.loads((copy / CONFIG).read_text("utf-8"))["architectures"])
        tokens = apart(lambda: _rehearsed(copy, weights, words), shown(folder))
        parts = _sequences(tokens) if saved is None else passes(saved)
        model = _model(copy)
    return Given(model, [_named(part, model) for part in parts])


def _rehearsed(copy: pathlib.Path, weights: list[pathlib.Path], text: str | None) -> dict[str, Any]:
    """Read all but the weights' numbers, build the model on the meta device, and return the tokens of the text."""
    torch = importlib.import_module("torch")
    maker, config = _maker(copy)
    for path in weights:
        _check_weights(path)
    with sizes.counted(sum(path.stat().st_size for path in weights)), contextlib.ExitStack() as stack:
        for context in _contexts(maker, torch):
            stack.enter_context(context)
        maker(config)
    if text is None:
        return {}
    try:
        return _tokens(copy, text, config)
    except Exception as error:
        raise UsageError("checkup.folder.tokenizer", path=str(copy), reason=reason(error)) from None


def _contexts(maker: Any, torch: Any) -> list[Any]:
    """Return the contexts in which `from_pretrained` builds: some models read numbers from what they make there."""
    try:
        made: list[Any] = maker.get_init_context(torch.float32, False, False, None)
    except (AttributeError, TypeError):  # another version of transformers
        return [torch.device("meta")]
    return made


def _maker(copy: pathlib.Path) -> tuple[Any, Any]:
    """Return the class that config.json names, if it is a model of transformers for this model_type, and its config.

    Not whatever transformers has under the name: its Auto classes, pipelines and trainers load code, or worse.
    """
    transformers = importlib.import_module("transformers")
    config = transformers.AutoConfig.from_pretrained(copy, **_CLOSED)
    if not config.architectures:
        return transformers.MODEL_MAPPING[type(config)], config
    name, found = _named_class(config.architectures)
    for fitting in (config, config.get_text_config()):
        if (
            isinstance(found, type)
            and issubclass(found, transformers.PreTrainedModel)
            and found.__module__.startswith("transformers.models.")
            and getattr(found, "config_class", None) is type(fitting)
        ):
            return found, fitting
    raise UsageError("checkup.folder.class", name=shown(name), kind=shown(config.model_type))


def _named_class(named: Any) -> tuple[Any, Any]:
    """Return the first name and what transformers has under it; looking it up imports nothing but transformers."""
    transformers = importlib.import_module("transformers")
    name = named[0] if isinstance(named, list) else named
    return name, getattr(transformers, name, None) if isinstance(name, str) and not name.startswith("_") else None


def _check_weights(path: pathlib.Path) -> None:
    """Refuse a file that promises more than it holds, or a pickle with more than tensors; no number of it is read."""
    torch = importlib.import_module("torch")
    size = path.stat().st_size
    if path.suffix == ".safetensors":
        with importlib.import_module("safetensors").safe_open(path, framework="pt") as file:
            file.keys()
        return
    if not zipfile.is_zipfile(path):
        return  # the old form of torch.save, which cannot be read without its numbers
    check_stored(path)
    try:
        found = torch.load(path, map_location="meta", weights_only=True)
    except pickle.UnpicklingError:
        raise UsageError("checkup.folder.pickle", path=path.name) from None
    if not isinstance(found, dict):
        raise UsageError("checkup.folder.weights.kind", path=path.name, came=type(found).__name__)
    claimed = sum(x.numel() * x.element_size() for x in found.values() if isinstance(x, torch.Tensor))
    if claimed > 2 * size:  # tied weights may be listed twice
        raise UsageError("checkup.folder.size", need=sizes.told(claimed), have=sizes.told(size))


def _model(copy: pathlib.Path) -> Any:
    try:
        maker, config = _maker(copy)
        model, told = maker.from_pretrained(copy, config=config, weights_only=True, output_loading_info=True, **_CLOSED)
    except pickle.UnpicklingError:
        raise UsageError("checkup.folder.pickle", path=str(copy)) from None
    except (UsageError, KeyboardInterrupt):
        raise
    except BaseException as error:  # a panic of a Rust library is no Exception
        raise UsageError("checkup.folder.load", path=str(copy), reason=reason(error)) from None
    absent = [name for name in told["missing_keys"] if "pooler" not in name]
    if absent:
        raise UsageError("checkup.folder.weights", path=str(copy), count=len(absent), name=shown(sorted(absent)[0]))
    return model.eval()


def _tokens(copy: pathlib.Path, text: str, config: Any) -> dict[str, Any]:
    """Return the ids of the text and what a sequence of them needs."""
    transformers = importlib.import_module("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(copy, config=config, **_CLOSED)
    if not isinstance(tokenizer, transformers.PreTrainedTokenizerBase):
        raise TypeError(f"{type(tokenizer).__name__} is no tokenizer")
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    first = [x for x in (tokenizer.cls_token_id, tokenizer.bos_token_id) if x is not None][:1]
    last = [tokenizer.sep_token_id] if tokenizer.cls_token_id is not None and tokenizer.sep_token_id is not None else []
    room = getattr(config, "max_position_embeddings", None)
    room = room if isinstance(room, int) and room > 0 else LONGEST
    return {"ids": ids[: LONGEST * SEQUENCES], "count": len(ids), "first": first, "last": last, "room": room}


def _sequences(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Split the text into equal parts, two per reading, each with the tokens that begin and end a sequence."""
    import torch

    ids, first, last = found["ids"], found["first"], found["last"]
    room = min(LONGEST, found["room"]) - len(first) - len(last)
    length = min(room, len(ids) // SEQUENCES)
    if length < FEWEST:
        raise UsageError("checkup.text.short", count=found["count"], least=FEWEST * SEQUENCES)
    rows = [first + ids[i * length : (i + 1) * length] + last for i in range(SEQUENCES)]
    return [{"input_ids": torch.tensor(rows[i : i + 2])} for i in range(0, SEQUENCES, 2)]


def _named(batch: dict[str, Any], model: Any) -> dict[str, Any]:
    """Add labels if the model predicts the next token, and a decoder input if it has a decoder."""
    if "input_ids" not in batch:
        return batch
    if model.config.is_encoder_decoder:
        return {"decoder_input_ids": batch["input_ids"]} | batch
    if type(model).__name__.endswith(("ForCausalLM", "LMHeadModel")):
        return {"labels": batch["input_ids"], "use_cache": False} | batch
    return batch


@contextlib.contextmanager
def _plain(copy: pathlib.Path, folder: pathlib.Path) -> Iterator[None]:
    """Say the folder's name in every complaint; the copy's means nothing to the user."""
    try:
        yield
    except UsageError as problem:
        own = {
            name: value.replace(str(copy), shown(folder)) if isinstance(value, str) else value
            for name, value in problem.values.items()
        }
        raise UsageError(problem.key, **own) from None
