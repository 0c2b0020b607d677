"""One call of the model that shares nothing with any other call but the weights, and that can always be
ended.

Upstream keeps the state of every call in dictionaries on the model (left behind by an error or an early end),
lets the first long stream change how all later ones are cut (`token_hop_len`), and runs the language model in
a thread whose errors never arrive: a stream then waits for tokens for ever. Each call here runs upstream's
own code on a shallow copy of its model: the weights are the same objects, everything else is the call's and
ends with it.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator
from typing import Any

from gpu_worker.engines.base import Samples
from gpu_worker.engines.cosyvoice3.features import VoiceFeatures
from gpu_worker.engines.cosyvoice3.prompt import Prompt
from gpu_worker.engines.cosyvoice3.upstream import Upstream

#: The dictionaries on upstream's model that hold the state of calls.
CALL_STATE = ("tts_speech_token_dict", "llm_end_dict", "hift_cache_dict")

#: With fewer tokens upstream's convolutions may have too little to work on.
_FEWEST_TOKENS = 4


class StoppedError(Exception):
    """The call was asked to end ("cancelled", "timeout") or goes nowhere ("empty", "endless", "loop")."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Call:
    """One run of the model. `pieces` may be iterated once; `stop` may be called from any thread at any time."""

    def __init__(
        self, upstream: Upstream, inputs: dict[str, Any], *, seed: int, speed: float, stream: bool
    ) -> None:
        """`inputs` are `CosyVoice3Model.tts`'s tensors (see `inputs_for`). Upstream ignores `speed` in a
        stream, so a call with another speed than 1 comes in one piece.
        """
        self._upstream = upstream
        self._inputs = inputs
        self._seed = seed
        self._speed = speed
        self._stream = stream and speed == 1.0
        self._reason = ""
        self._error: BaseException | None = None
        self._thread_ended = threading.Event()
        #: Most tokens of sound that the call may make; 0 for upstream's own limit of 20 for each token of
        #: text.
        self.most_tokens = 0
        #: What the language model has said so far.
        self.tokens: list[int] = []

    def stop(self, reason: str) -> None:
        """End at the next token or piece; the iterator then raises StoppedError."""
        self._reason = self._reason or reason

    def pieces(self) -> Iterator[Samples]:
        """The sound, in one piece or several. Raises StoppedError, or whatever went wrong in the language
        model's thread or after it.
        """
        model = self._own_model()
        if "text" not in self._inputs:
            # Conversion has no language model and so no thread that could be left behind.
            self._thread_ended.set()
        try:
            for output in model.tts(**self._inputs, stream=self._stream, speed=self._speed):
                self._check()
                sound = self._upstream.runtime.array(output["tts_speech"]).reshape(-1)
                del output
                if len(sound):
                    yield sound
                self._check()
        except StoppedError:
            raise
        except Exception as error:
            # What upstream says about too few tokens hides what happened in its thread.
            if self._error is not None:
                raise self._error from error
            if "text" in self._inputs and self.has_ended(0) and len(self.tokens) < _FEWEST_TOKENS:
                raise StoppedError("empty") from error
            raise
        finally:
            # An early end must also end the thread, which holds the copy of the model.
            self.stop("cancelled")

    def has_ended(self, grace: float) -> bool:
        """Whether the language model's thread is gone within `grace` seconds. If not, it hangs where Python
        cannot reach it, and this process with it. For a call whose `pieces` have been begun.
        """
        return self._thread_ended.wait(grace)

    def _check(self) -> None:
        if self._error is not None:
            raise self._error
        if self._reason:
            raise StoppedError(self._reason)

    def _own_model(self) -> Any:
        model = copy.copy(self._upstream.model)
        for name in CALL_STATE:
            setattr(model, name, {})
        model.llm = _WatchedLanguageModel(model.llm, self._count)
        model.llm_job = self._guarded(model, model.llm_job.__func__)
        model.token2wav = self._unless_over(model, model.token2wav.__func__)
        return model

    def _guarded(self, model: Any, llm_job: Callable[..., None]) -> Callable[..., None]:
        """Upstream's `llm_job` (it runs in a thread of its own) with its errors kept and its end always
        marked.
        """

        def job(text: Any, prompt_text: Any, speech_token: Any, embedding: Any, uuid: str) -> None:
            try:
                self._upstream.runtime.seed(self._seed)
                llm_job(model, text, prompt_text, speech_token, embedding, uuid)
            except BaseException as error:  # noqa: BLE001 - it is raised again in the thread that iterates
                self._error = error
            finally:
                model.llm_end_dict[uuid] = True
                self._thread_ended.set()

        return job

    def _unless_over(self, model: Any, token2wav: Callable[..., Any]) -> Callable[..., Any]:
        """Upstream's `token2wav`, not begun for a call that is over: it would work seconds for nobody."""

        def wav(**arguments: Any) -> Any:
            self._check()
            return token2wav(model, **arguments)

        return wav

    def _count(self, token: int) -> None:
        if self._reason:
            raise StoppedError(self._reason)
        self.tokens.append(token)
        if self.most_tokens and len(self.tokens) > self.most_tokens:
            raise StoppedError("endless")
        if is_loop(self.tokens):
            raise StoppedError("loop")


class _WatchedLanguageModel:
    """Upstream's language model for one call: every token passes by `watch`, which may raise."""

    def __init__(self, llm: Any, watch: Callable[[int], None]) -> None:
        self._llm = llm
        self._watch = watch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._llm, name)

    def inference(self, **arguments: Any) -> Iterator[int]:
        tokens = self._llm.inference(**arguments)
        try:
            for token in tokens:
                self._watch(token)
                yield token
        finally:
            tokens.close()
            # With vLLM a request that nobody waits for would be computed to its end, and its queue stay
            # behind.
            if hasattr(self._llm, "vllm") and arguments.get("uuid") in self._llm.vllm_output_queue:
                with self._llm.lock:
                    self._llm.vllm.abort_request([arguments["uuid"]])
                    self._llm.vllm_output_queue.pop(arguments["uuid"], None)


#: A stretch of at least 8 tokens (0.3 s) said 6 times in a row, or one token 50 times (2 s), is no speech.
_LOOP_LENGTHS = range(8, 65)
_LOOP_TIMES = 6
_SAME_TIMES = 50


def is_loop(tokens: list[int]) -> bool:
    """Whether `tokens` end in the same stretch again and again."""
    if len(tokens) < _SAME_TIMES:
        return False
    if len(set(tokens[-_SAME_TIMES:])) == 1:
        return True
    last = tokens[-1]
    for length in _LOOP_LENGTHS:
        if len(tokens) < length * _LOOP_TIMES:
            return False
        if tokens[-1 - length] != last:
            continue
        part = tokens[-length:]
        if all(tokens[-length * (n + 1) : -length * n] == part for n in range(1, _LOOP_TIMES)):
            return True
    return False


def inputs_for(upstream: Upstream, prompt: Prompt, features: VoiceFeatures) -> dict[str, Any]:
    """What `CosyVoice3Model.tts` takes to say `prompt` in a voice.

    The same tensors as upstream's front end makes, from features that were kept: upstream's own cache of
    speakers would ignore the instruction.
    """
    tensor = upstream.runtime.tensor
    speech = tensor(features.speech_tokens[None])
    embedding = tensor(features.embedding[None])
    inputs = {
        "text": upstream.frontend._extract_text_token(prompt.text)[0],
        "prompt_text": upstream.frontend._extract_text_token(prompt.before)[0],
        "flow_prompt_speech_token": speech,
        "prompt_speech_feat": tensor(features.mel[None]),
        "llm_embedding": embedding,
        "flow_embedding": embedding,
    }
    if prompt.heard:
        inputs["llm_prompt_speech_token"] = speech
    return inputs


def conversion_inputs(upstream: Upstream, source: Any, features: VoiceFeatures) -> dict[str, Any]:
    """What `CosyVoice3Model.tts` takes to say the speech tokens `source` (n,) int32 in a voice."""
    tensor = upstream.runtime.tensor
    return {
        "source_speech_token": tensor(source[None]),
        "flow_prompt_speech_token": tensor(features.speech_tokens[None]),
        "prompt_speech_feat": tensor(features.mel[None]),
        "flow_embedding": tensor(features.embedding[None]),
    }
