"""Speech by any server that has OpenAI's `/v1/audio/speech`: vLLM-Omni, another Chorus, a commercial service."""

from gpu_worker.engines.remote.engine import Remote

__all__ = ["Remote"]
