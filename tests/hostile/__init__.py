"""Attacks on everything that takes a stranger's input: files, answers, arguments, memory, derivatives."""
