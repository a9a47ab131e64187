"""The lessons as pages: run each notebook, convert what its cells show, and replay its controls."""
