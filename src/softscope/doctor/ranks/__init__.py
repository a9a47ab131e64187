"""The readings of every rank of a group, merged into one: sums and counts go up a tree to the group's first rank."""
