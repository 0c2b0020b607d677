"""Engines by name. Nothing of an engine is imported before it is asked for."""

from __future__ import annotations

from importlib import import_module

from gpu_worker.engines.base import Engine, EngineUnavailable

#: name (as in `synthesis.engines.ENGINES`) → "module:class".
ENGINE_PATHS: dict[str, str] = {
    "kokoro": "gpu_worker.engines.kokoro:Kokoro",
    "hibari": "gpu_worker.engines.hibari:Hibari",
    "cosyvoice3": "gpu_worker.engines.cosyvoice3:CosyVoice3",
    "remote": "gpu_worker.engines.remote:Remote",
}


def create_engine(name: str) -> Engine:
    """The engine called `name`, not loaded yet; EngineUnavailable for a name that does not exist."""
    try:
        module, _, attribute = ENGINE_PATHS[name].partition(":")
    except KeyError:
        known = ", ".join(sorted(ENGINE_PATHS))
        raise EngineUnavailable(
            f"there is no engine called {name!r}; CHORUS_ENGINE may be one of: {known}"
        ) from None
    engine: Engine = getattr(import_module(module), attribute)()
    return engine


def load_engine(name: str) -> Engine:
    """The engine called `name`, ready to speak. Raises EngineUnavailable. (`load()` again does nothing.)"""
    engine = create_engine(name)
    engine.load()
    return engine
