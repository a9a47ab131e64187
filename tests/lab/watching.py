"""A page that keeps every complaint: errors it logs, requests that fail, and requests that leave the machine."""

import re

PATIENCE = 60_000  # ms: a busy machine is slow, and a page that never loads fails anyway


class Watched:
    def __init__(self, context, running):
        self.page, self.running, self.heard = context.new_page(), running, []
        # A page requests hundreds of scripts: reading the browser's own list costs nothing, an event for each one does.
        self.page.add_init_script("performance.setResourceTimingBufferSize(5000)")
        self.page.on("console", lambda said: said.type == "error" and self.heard.append(f"console: {said.text}"))
        self.page.on("pageerror", lambda error: self.heard.append(f"error: {error}"))
        self.page.on("requestfailed", lambda asked: self.heard.append(f"failed: {asked.url} {asked.failure}"))
        self.page.on("websocket", lambda opened: self.heard.extend(self._outside(opened.url)))
        self.page.goto(running.address, wait_until="networkidle")

    def _outside(self, *urls):
        ours = rf"(http|ws)://127\.0\.0\.1:{self.running.port}/|data:|blob:"
        return [f"outside: {url}" for url in urls if not re.match(ours, url)]

    def wrong(self):
        """All complaints since the last call."""
        asked = self.page.evaluate("performance.getEntriesByType('resource').map((entry) => entry.name)")
        heard, self.heard = [*self.heard, *self._outside(*asked)], []
        return heard

    def index(self, lang="en"):
        self.page.goto(f"{self.running.origin}/?lang={lang}", wait_until="networkidle")

    def open(self, name, lang="en"):
        self.page.goto(f"{self.running.origin}/lesson/{name}/?lang={lang}")
        self.arrived()

    def arrived(self):
        self.page.wait_for_selector(".lab-next", timeout=PATIENCE)
        self.page.wait_for_load_state("networkidle")

    def answer(self, source):
        """Write an answer into the last editor on the page, press Check, and wait until the grader says something new.

        On a busy machine marimo may mount an editor a second time just after it appeared, and what was typed into the
        first one is gone. A learner types again; so do we, and an answer that was not lost is not graded twice.
        """
        told = self.page.locator(".lab-told")
        before = told.all_inner_texts()
        for waited in range(PATIENCE // 100):
            if waited % 150 == 0:
                self._write(source)
            self.page.wait_for_timeout(100)
            if told.all_inner_texts() not in ([], before):
                break
        return " ".join(told.all_inner_texts())

    def _write(self, source):
        self.page.locator("marimo-form .cm-content").last.click()
        self.page.keyboard.press("Control+a")
        self.page.keyboard.insert_text(source)
        self.page.get_by_role("button", name="Check").last.click()
