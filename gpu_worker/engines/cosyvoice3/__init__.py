"""CosyVoice3 by its official package.

The official classes do the work; what this package adds is everything that a service needs and a demo does
not. It enters them one level below `inference_zero_shot` and its sisters, at `CosyVoice3Model.tts`, because
those functions normalise and split text in ways that cannot be switched off one by one, log every user's
words, keep speakers in a global dictionary and, for a kept speaker, ignore the instruction.

- `prompt`: which mode a job is, and the special tokens, which are always ours;
- `features`: what is worked out from a voice's clip once per version; as bytes; a cache with a bound;
- `calls`: one call of the model with nothing shared but the weights, watched and stoppable;
- `checks`: whether what came out can be what was asked for;
- `engine`: jobs in, events out: retries, running out of memory, several at once;
- `official`: finds the checkout and the weights, imports and patches them. The only module that imports
  torch.
"""

from gpu_worker.engines.cosyvoice3.engine import CosyVoice3

__all__ = ["CosyVoice3"]
