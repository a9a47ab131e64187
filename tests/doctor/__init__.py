"""The doctor: what it reads, keeps and says."""
