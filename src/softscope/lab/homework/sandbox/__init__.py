"""What runs in the answer's own process: a folder that Python runs as a program, with nothing of softscope imported."""
