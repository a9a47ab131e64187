"""Lesson 1: from numbers to probabilities."""

import marimo

app = marimo.App(width="medium", app_title="softscope · 1")


@app.cell
def _():
    import marimo as mo
    import numpy as np

    import softscope as ss
    from softscope.lab.page import Page, figure, figures

    return Page, figure, figures, mo, np, ss


@app.cell
def _(mo):
    lang = mo.query_params().get("lang")
    return (lang,)


@app.cell
def _(Page, lang):
    page = Page("probabilities", lang)
    t = page.t
    return page, t


@app.cell
def _(page, t):
    page.head(t("a", "b"))
    return


if __name__ == "__main__":
    app.run()
