"""The code inside the answer's own process: a folder that Python runs as a program, importing nothing of softscope."""
