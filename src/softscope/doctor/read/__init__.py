"""Reading: from the kept rows to row readings, head readings and the snapshot of a step."""
