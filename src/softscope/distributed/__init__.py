"""The softmax family where a row does not fit one process: partitions of its parts merge over `torch.distributed`."""
