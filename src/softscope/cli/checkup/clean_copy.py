"""A clean copy of a model's folder: the weights and vocabularies as links, the configurations vetted, nothing else.

transformers looks for much more in a folder than data: Python files named by `auto_map`, a `custom_generate/`, adapters
whose base model is somewhere else, attention kernels to download, paths of further files. Refusing each by name would
last until its next release. It only ever sees this copy, in which they do not exist.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import stat
import tempfile
from typing import TYPE_CHECKING, Any

from softscope.cli.checkup import sizes
from softscope.cli.problems import REASON, UsageError, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

CONFIG, TOKENIZER = "config.json", "tokenizer_config.json"
# In the order in which transformers looks for them; an index lists the files of weights that are split.
WEIGHTS = (
    "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json"
)  # fmt: skip
_INDEX = ".index.json"
_VOCABULARIES = (".json", ".txt", ".model", ".vocab", ".bpe", ".codes", ".tiktoken", ".tokenizer")
_OTHERS = ("adapter", "generation", "preprocessor", "processor", "image_processor", "video_preprocessor", "trainer")
# Keys that name code, other places or other implementations; so does every key that begins with an underscore.
_DROPPED = {
    "auto_map", "attn_implementation", "experts_implementation", "fusion_config", "transformers_weights",
    "custom_pipelines", "name_or_path", "chat_template",
}  # fmt: skip


@contextlib.contextmanager
def clean_copy(folder: pathlib.Path) -> Iterator[tuple[pathlib.Path, list[pathlib.Path]]]:
    """Make the copy for the duration of the context; yield it and its files of weights."""
    config = _vetted(_json(folder / CONFIG, sizes.CONFIG), CONFIG)
    sizes.check(config)
    if config.get("quantization_config") is not None:
        raise UsageError("checkup.folder.quantized", path=shown(folder))
    if (folder / "adapter_config.json").exists():  # the copy has none, so another model would be examined
        raise UsageError("checkup.folder.adapter", path=shown(folder))
    with tempfile.TemporaryDirectory(prefix="softscope-") as place:
        copy = pathlib.Path(place)
        (copy / CONFIG).write_text(json.dumps(config), "utf-8")
        weights = _weights(folder, copy)
        for path in sorted(folder.iterdir()):
            if path.name == TOKENIZER:
                vetted = _vetted(_json(path, sizes.VOCABULARY), path.name)
                kept = {key: value for key, value in vetted.items() if not key.endswith(("_file", "_files"))}
                (copy / TOKENIZER).write_text(json.dumps(kept), "utf-8")
            elif _is_vocabulary(path.name) and not (copy / path.name).exists():
                _link(path, copy, sizes.VOCABULARY)
        yield copy, weights


def regular(path: pathlib.Path, most: int) -> int:
    """Return the size of an ordinary file; refuse devices, pipes and files larger than `most` bytes."""
    try:
        found = path.stat()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise UsageError("checkup.file.unreadable", path=shown(path), reason=reason) from None
    if not stat.S_ISREG(found.st_mode):
        raise UsageError("checkup.file.kind", path=shown(path))
    if found.st_size > most:
        raise UsageError("checkup.file.large", path=shown(path), size=sizes.told(found.st_size), most=sizes.told(most))
    return found.st_size


def _weights(folder: pathlib.Path, copy: pathlib.Path) -> list[pathlib.Path]:
    """Link the files of weights that transformers would choose."""
    name = next((name for name in WEIGHTS if (folder / name).exists()), None)
    if name is None:
        return []
    if not name.endswith(_INDEX):
        return [_link(folder / name, copy)]
    listed = _json(folder / name, sizes.VOCABULARY).get("weight_map")
    parts = sorted(set(listed.values())) if isinstance(listed, dict) and _all_text(listed.values()) else []
    suffix = pathlib.PurePath(name.removesuffix(_INDEX)).suffix
    for part in parts or [""]:
        # A part lies beside its index: another path could lead anywhere.
        if os.path.basename(part) != part or not part.endswith(suffix):
            raise UsageError("checkup.folder.index", path=shown(folder / name), part=shown(part))
    _link(folder / name, copy, sizes.VOCABULARY)
    return [_link(folder / part, copy) for part in parts]


def _all_text(values: Any) -> bool:
    return all(isinstance(value, str) for value in values)


def _is_vocabulary(name: str) -> bool:
    return name.endswith(_VOCABULARIES) and name != CONFIG and not name.startswith(_OTHERS)


def _link(path: pathlib.Path, copy: pathlib.Path, most: int = sizes.WEIGHTS) -> pathlib.Path:
    regular(path, most)
    made = copy / path.name
    try:
        made.symlink_to(path.resolve())
    except OSError:  # Windows may forbid it
        shutil.copyfile(path, made)
    return made


def _json(path: pathlib.Path, most: int) -> dict[str, Any]:
    regular(path, most)
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        reason = shown(f"{type(error).__name__}: {error}", REASON)
        raise UsageError("checkup.file.unreadable", path=shown(path), reason=reason) from None
    if not isinstance(found, dict):
        raise UsageError("checkup.file.unreadable", path=shown(path), reason=f"JSON: {type(found).__name__}")
    return found


def _vetted(value: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the configuration without the keys that lead out of it, at any depth."""
    try:
        kept: dict[str, Any] = _without(value)
    except RecursionError:
        raise UsageError("checkup.file.unreadable", path=name, reason="RecursionError") from None
    return kept


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without(x) for key, x in value.items() if key not in _DROPPED and not key.startswith("_")}
    return [_without(x) for x in value] if isinstance(value, list) else value
