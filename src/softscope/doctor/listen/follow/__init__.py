"""Following tensors through a forward pass: what their axes were, what they were multiplied by, what they came from."""
