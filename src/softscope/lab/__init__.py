"""The course in the browser: a local server, ten lessons, and pictures you can drag.

`softscope lab` starts it. Importing this package needs only NumPy; the server needs the extra `lab`.
"""
