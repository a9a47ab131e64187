"""How much a browser loads for a page."""

import re

MEGABYTES = 3 * 2**20


def weight_of(folder, path):
    """Bytes of a page and of the files it loads."""
    text = (folder / path).read_text("utf-8")
    loaded = re.findall(r'<(?:script src|link rel="[a-z]+" href)="([^"]+)"', text)
    assert loaded
    return len(text.encode()) + sum(((folder / path).parent / name).stat().st_size for name in loaded)
