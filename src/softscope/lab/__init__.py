"""The course in the browser: a server on this machine, ten lessons, pictures that can be dragged.

`softscope lab` starts it. Importing this package needs NumPy alone; the server needs the extra `lab`.
"""
