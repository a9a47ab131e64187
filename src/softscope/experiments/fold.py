"""Fold long tables for readers: fewer rows, or one row per value of one label and one column per value of another."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any

from softscope._text import Text, same
from softscope.experiments.table import Cell, Table

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST = 12
"""A table that readers see has at most this many rows; longer ones are `dense`: in charts and JSON, not printed."""


def part(table: Table, key: str, keep: Callable[[dict[str, Any]], bool]) -> Table:
    """Return some rows of a table.

    >>> from softscope.experiments.table import label
    >>> whole = Table("t", same("t"), (label("x", same("x")),), [(i,) for i in range(40)], dense=True)
    >>> part(whole, "some", lambda r: r["x"] % 20 == 0).rows
    [(0,), (20,)]
    """
    rows = [row for row, record in zip(table.rows, table.records(), strict=True) if keep(record)]
    return dataclasses.replace(table, key=key, rows=rows, dense=False)


def crossed(
    table: Table,
    key: str,
    title: Text,
    *,
    down: str | tuple[str, ...],
    across: str,
    values: tuple[str, ...],
    name: Callable[[Any], Text] | None = None,
    also: tuple[str, ...] = (),
) -> Table:
    """Return a table with one row per cell of the column `down`, and the `values` for each cell of the column `across`.

    Args:
        table: the long table.
        key: the new table's key.
        title: the new table's title.
        down: the label that names the rows, or several.
        across: the label that becomes columns.
        values: what each of these columns holds.
        name: names a cell of `across` in a heading; by default the cell itself.
        also: columns whose cells do not depend on `across`, such as the number of runs; they come last.

    >>> from softscope.experiments.table import Column, label
    >>> columns = label("d", same("d")), label("kind", same("kind")), Column("sd", same("sd"))
    >>> whole = Table("t", same("t"), columns, [(1, "a", 2.0), (1, "b", 3.0), (4, "a", 5.0), (4, "b", 7.0)])
    >>> made = crossed(whole, "short", same("s"), down="d", across="kind", values=("sd",))
    >>> [column.key for column in made.columns], made.rows
    (['d', 'sd_a', 'sd_b'], [(1, 2.0, 3.0), (4, 5.0, 7.0)])
    """
    by_key = {column.key: column for column in table.columns}
    cells = list(dict.fromkeys(table.column(across)))
    labels = (down,) if isinstance(down, str) else down
    columns = [by_key[one] for one in labels]
    for value in values:
        for cell in cells:
            head = name(cell) if name else cell if isinstance(cell, Text) else same(str(cell))
            if len(values) > 1:
                head = Text(en=f"{by_key[value].title.en}, {head.en}", zh=f"{by_key[value].title.zh}，{head.zh}")
            plain = re.sub(r"\W+", "_", cell.en if isinstance(cell, Text) else str(cell)).strip("_")
            columns.append(dataclasses.replace(by_key[value], key=f"{value}_{plain}", title=head))
    rows: list[tuple[Cell, ...]] = []
    groups: dict[tuple[Cell, ...], dict[Cell, dict[str, Any]]] = {}
    for record in table.records():
        groups.setdefault(tuple(record[one] for one in labels), {})[record[across]] = record
    for first, found in groups.items():
        chosen = [found[cell][value] if cell in found else None for value in values for cell in cells]
        rows.append((*first, *chosen, *(next(iter(found.values()))[more] for more in also)))
    return Table(key, title, (*columns, *(by_key[more] for more in also)), rows)
