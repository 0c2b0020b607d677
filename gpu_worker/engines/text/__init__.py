"""From written text to phonemes, one module per language; `script` says which part of a text is which."""
