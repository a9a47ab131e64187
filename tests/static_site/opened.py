"""A page opened from a file, offline; it keeps every complaint and every request that leaves the folder."""

import contextlib


class Opened:
    def __init__(self, page, folder):
        self.page, self.folder, self.heard = page, folder, []
        page.on("console", lambda said: said.type == "error" and self.heard.append(f"console: {said.text}"))
        page.on("pageerror", lambda error: self.heard.append(f"error: {error}"))
        page.on("requestfailed", lambda asked: self.heard.append(f"failed: {asked.url}"))
        page.on("request", self._asked)

    def _asked(self, request):
        if not request.url.startswith((self.folder.as_uri() + "/", "data:")):
            self.heard.append(f"outside: {request.url}")

    def open(self, path):
        self.page.goto((self.folder / path).as_uri())
        return self.page

    def wrong(self):
        heard, self.heard = self.heard, []
        return heard


@contextlib.contextmanager
def opened(browser, folder, **options):
    context = browser.new_context(offline=True, **options)
    try:
        yield Opened(context.new_page(), folder)
    finally:
        context.close()


def pages(folder):
    """Every page of ours; the reference is pdoc's."""
    found = (path.relative_to(folder) for path in folder.rglob("*.html"))
    return sorted(str(path) for path in found if path.parts[0] != "reference")
