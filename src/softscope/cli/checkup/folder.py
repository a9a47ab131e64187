"""A Hugging Face model from a local folder: no remote code, no downloads, no pickled objects."""

from __future__ import annotations

import contextlib
import importlib
import importlib.resources
import pickle
from typing import TYPE_CHECKING, Any

from softscope.cli.problems import REASON, UsageError, shown

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Iterator

    from softscope.doctor.examine import Given

LONGEST = 128  # tokens per sequence
FEWEST = 8
SEQUENCES = 6  # two in each of three readings: a standard error needs more than one
# We download nothing, run no code from the folder, and let pickles hold only tensors.
_CLOSED = {"local_files_only": True, "trust_remote_code": False}


def given(folder: pathlib.Path, text: str | None, batch: pathlib.Path | None) -> Given:
    """Return the model with its call arguments; there is a loss if the model was made for next-token prediction."""
    from softscope._installed import missing
    from softscope.doctor.examine import Given, passes

    if missing(("transformers",)):
        raise UsageError("checkup.transformers")
    if not (folder / "config.json").is_file():
        raise UsageError("checkup.folder.config", path=shown(folder))
    with _quiet():
        model = _model(folder)
        parts = passes(_saved(batch)) if batch is not None else _sequences(_tokens(folder, text), model.config)
    return Given(model, [_named(part, model) for part in parts])


def _model(folder: pathlib.Path) -> Any:
    transformers = importlib.import_module("transformers")
    try:
        config = transformers.AutoConfig.from_pretrained(folder, **_CLOSED)
        wanted = (getattr(config, "architectures", None) or [""])[0]
        maker = getattr(transformers, wanted, None) or transformers.AutoModel
        closed = _CLOSED if maker is transformers.AutoModel else {"local_files_only": True}
        model, told = maker.from_pretrained(folder, weights_only=True, output_loading_info=True, **closed)
    except pickle.UnpicklingError:
        raise UsageError("checkup.folder.pickle", path=shown(folder)) from None
    except Exception as error:
        reason = shown(f"{type(error).__name__}: {' '.join(str(error).split())}", REASON)
        raise UsageError("checkup.folder.load", path=shown(folder), reason=reason) from None
    absent = [name for name in told["missing_keys"] if "pooler" not in name]
    if absent:
        raise UsageError("checkup.folder.weights", path=shown(folder), count=len(absent), name=shown(sorted(absent)[0]))
    return model.eval()


def _tokens(folder: pathlib.Path, text: str | None) -> tuple[list[int], Any]:
    transformers = importlib.import_module("transformers")
    if text is None:
        text = importlib.resources.files("softscope.cli.checkup").joinpath("sample.txt").read_text("utf-8")
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **_CLOSED)
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    except Exception as error:
        reason = shown(" ".join(str(error).split()), REASON)
        raise UsageError("checkup.folder.tokenizer", path=shown(folder), reason=reason) from None
    return ids, tokenizer


def _sequences(found: tuple[list[int], Any], config: Any) -> list[dict[str, Any]]:
    """Split the text into equal parts, two per reading, each with the tokens that begin and end a sequence."""
    import torch

    ids, tokenizer = found
    first = [x for x in (tokenizer.cls_token_id, tokenizer.bos_token_id) if x is not None][:1]
    last = [tokenizer.sep_token_id] if tokenizer.cls_token_id is not None and tokenizer.sep_token_id is not None else []
    room = min(LONGEST, getattr(config, "max_position_embeddings", None) or LONGEST) - len(first) - len(last)
    length = min(room, len(ids) // SEQUENCES)
    if length < FEWEST:
        raise UsageError("checkup.text.short", count=len(ids), least=FEWEST * SEQUENCES)
    rows = [first + ids[i * length : (i + 1) * length] + last for i in range(SEQUENCES)]
    return [{"input_ids": torch.tensor(rows[i : i + 2])} for i in range(0, SEQUENCES, 2)]


def _saved(path: pathlib.Path) -> Any:
    import torch

    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise UsageError("checkup.folder.pickle", path=shown(path)) from None
    except Exception as error:
        raise UsageError("checkup.batch.unreadable", path=shown(path), reason=shown(error, REASON)) from None
    if isinstance(found, torch.Tensor):
        return {"input_ids": found}
    if not isinstance(found, dict) or not all(isinstance(x, torch.Tensor) for x in found.values()):
        raise UsageError("checkup.batch.wrong", path=shown(path), came=type(found).__name__)
    return found


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
def _quiet() -> Iterator[None]:
    """Silence the loading reports and progress bars of transformers; they are not ours to show."""
    logging = importlib.import_module("transformers").utils.logging
    before = logging.get_verbosity()
    bars = logging.is_progress_bar_enabled()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(before)
        if bars:
            logging.enable_progress_bar()
