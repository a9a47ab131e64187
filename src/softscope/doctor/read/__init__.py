"""Reading: from the rows that were kept to the readings of rows, of heads, and the snapshot of a step."""
