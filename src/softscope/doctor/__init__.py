"""The doctor: attaches to a PyTorch transformer unchanged, reads its attention, and tells which heads starve."""
