"""Independent oracles: the mathematics at high precision, importing nothing from the package under test."""
