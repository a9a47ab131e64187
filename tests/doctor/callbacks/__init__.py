"""The doctor inside other people's trainers: steps and losses are theirs, and nothing stays attached."""
