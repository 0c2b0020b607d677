"""A CosyVoice3 that fits in a test: the official classes, shrunken, with random weights.

It says nothing that anybody could understand. What it shares with the real model is everything that our
engine touches: the loader, the tokenizer's special tokens, the language model's cache, the flow's and the
vocoder's streaming, the two ONNX models of the front end, and every trap. Needs torch, onnx and the official
checkout on `sys.path`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

#: Qwen2's own vocabulary ends here; the front end's first added token after three of Qwen's must become
#: 151646, which upstream's language model has written into its code as `<|endofprompt|>`.
BASE_VOCABULARY = 151_643
HIDDEN = 32
SPEECH_TOKENS = 6_561

YAML = """\
__set_seed: !apply:torch.manual_seed [1986]
sample_rate: 24000
qwen_pretrain_path: ''
llm: !new:cosyvoice.llm.llm.CosyVoice3LM
    llm_input_size: 32
    llm_output_size: 32
    speech_token_size: 6561
    mix_ratio: [5, 15]
    llm: !new:cosyvoice.llm.llm.Qwen2Encoder
        pretrain_path: !ref <qwen_pretrain_path>
    sampling: !name:cosyvoice.utils.common.ras_sampling
        top_p: 0.8
        top_k: 25
        win_size: 10
        tau_r: 0.1
flow: !new:cosyvoice.flow.flow.CausalMaskedDiffWithDiT
    input_size: 80
    output_size: 80
    spk_embed_dim: 192
    vocab_size: 6561
    input_frame_rate: 25
    token_mel_ratio: 2
    pre_lookahead_len: 3
    pre_lookahead_layer: !new:cosyvoice.transformer.upsample_encoder.PreLookaheadLayer
        in_channels: 80
        channels: 32
        pre_lookahead_len: 3
    decoder: !new:cosyvoice.flow.flow_matching.CausalConditionalCFM
        in_channels: 240
        n_spks: 1
        spk_emb_dim: 80
        cfm_params: !new:omegaconf.DictConfig
            content:
                sigma_min: 1e-06
                solver: 'euler'
                t_scheduler: 'cosine'
                training_cfg_rate: 0.2
                inference_cfg_rate: 0.7
                reg_loss_type: 'l1'
        estimator: !new:cosyvoice.flow.DiT.dit.DiT
            dim: 64
            depth: 1
            heads: 1
            dim_head: 64
            ff_mult: 1
            mel_dim: 80
            mu_dim: 80
            spk_dim: 80
            out_channels: 80
            static_chunk_size: 50
            num_decoding_left_chunks: -1
hift: !new:cosyvoice.hifigan.generator.CausalHiFTGenerator
    in_channels: 80
    base_channels: 16
    nb_harmonics: 8
    sampling_rate: 24000
    nsf_alpha: 0.1
    nsf_sigma: 0.003
    nsf_voiced_threshold: 10
    upsample_rates: [8, 5, 3]
    upsample_kernel_sizes: [16, 11, 7]
    istft_params:
        n_fft: 16
        hop_len: 4
    resblock_kernel_sizes: [3]
    resblock_dilation_sizes: [[1, 3, 5]]
    source_resblock_kernel_sizes: [7, 7, 11]
    source_resblock_dilation_sizes: [[1, 3, 5], [1, 3, 5], [1, 3, 5]]
    lrelu_slope: 0.1
    audio_limit: 0.99
    conv_pre_look_right: 4
    f0_predictor: !new:cosyvoice.hifigan.f0_predictor.CausalConvRNNF0Predictor
        num_class: 1
        in_channels: 80
        cond_channels: 16
get_tokenizer: !name:cosyvoice.tokenizer.tokenizer.get_qwen_tokenizer
    token_path: !ref <qwen_pretrain_path>
    skip_special_tokens: True
    version: cosyvoice3
allowed_special: 'all'
feat_extractor: !name:matcha.utils.audio.mel_spectrogram
    n_fft: 1920
    num_mels: 80
    sampling_rate: 24000
    hop_size: 480
    win_size: 1920
    fmin: 0
    fmax: null
    center: False
"""


def build(folder: Path) -> Path:
    """Write the model into `folder` (about 80 MB, a few seconds) and return it."""
    import torch
    from hyperpyyaml import load_hyperpyyaml

    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(7)
    _write_language_model(folder / "CosyVoice-BlankEN")
    _write_speech_tokenizer(folder / "speech_tokenizer_v3.onnx")
    _write_speaker_model(folder / "campplus.onnx")
    yaml = folder / "cosyvoice3.yaml"
    yaml.write_text(YAML, encoding="utf-8")
    with yaml.open(encoding="utf-8") as file:
        parts = load_hyperpyyaml(file, overrides={"qwen_pretrain_path": str(folder / "CosyVoice-BlankEN")})
    torch.manual_seed(11)
    for name in ("llm", "flow", "hift"):
        module = parts[name]
        _shake(module)
        torch.save(module.state_dict(), folder / f"{name}.pt")
    return folder


def _shake(module: Any) -> None:
    """Make random weights matter: fresh ones are so small, or zero, that prompt and speaker leave no
    trace."""
    import torch

    with torch.no_grad():
        for name, weight in module.named_parameters():
            if weight.dim() >= 2 and "original" not in name:
                weight.normal_(0, 1.5 / weight.shape[-1] ** 0.5)
            if name == "llm_decoder.weight":
                # Of a random model's tokens 200 in 6,761 end the speech; a little less likely, it lasts some
                # seconds.
                weight[SPEECH_TOKENS:] *= 0.9


def _write_language_model(folder: Path) -> None:
    from transformers import Qwen2Config, Qwen2ForCausalLM

    folder.mkdir(parents=True, exist_ok=True)
    config = Qwen2Config(
        vocab_size=BASE_VOCABULARY + 293,
        hidden_size=HIDDEN,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
    )
    Qwen2ForCausalLM(config).save_pretrained(folder)
    vocabulary = {symbol: index for index, symbol in enumerate(_byte_symbols())}
    vocabulary |= {f"<unused{index}>": index for index in range(len(vocabulary), BASE_VOCABULARY)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False), encoding="utf-8")
    (folder / "merges.txt").write_text("#version: 0.2\n", encoding="utf-8")
    specials = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    plain = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True}
    settings = {
        "add_prefix_space": False,
        "added_tokens_decoder": {
            str(BASE_VOCABULARY + offset): {"content": token, **plain}
            for offset, token in enumerate(specials)
        },
        "eos_token": "<|endoftext|>",
        "pad_token": "<|endoftext|>",
        "tokenizer_class": "Qwen2Tokenizer",
        "model_max_length": 32768,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")


def _byte_symbols() -> list[str]:
    """GPT-2's printable stand-ins for the 256 bytes."""
    ranges = [("!", "~"), ("¡", "¬"), ("®", "ÿ")]
    printable = {byte for first, last in ranges for byte in range(ord(first), ord(last) + 1)}
    others = iter(range(256, 512))
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]


def _write_speech_tokenizer(path: Path) -> None:
    """(1, 128, frames) log-mel at 100 Hz and its length → (1, frames / 4) tokens that depend on the sound."""
    from onnx import TensorProto, helper

    nodes = [
        helper.make_node("AveragePool", ["feats"], ["pooled"], kernel_shape=[4], strides=[4]),
        helper.make_node("ReduceMean", ["pooled"], ["level"], axes=[1], keepdims=0),
        helper.make_node("Mul", ["level", "scale"], ["scaled"]),
        helper.make_node("Abs", ["scaled"], ["positive"]),
        helper.make_node("Cast", ["positive"], ["whole"], to=TensorProto.INT32),
        helper.make_node("Mod", ["whole", "size"], ["tokens"]),
    ]
    graph = helper.make_graph(
        nodes,
        "speech_tokenizer",
        [
            helper.make_tensor_value_info("feats", TensorProto.FLOAT, [1, 128, "frames"]),
            helper.make_tensor_value_info("feats_length", TensorProto.INT32, [1]),
        ],
        [helper.make_tensor_value_info("tokens", TensorProto.INT32, [1, "tokens"])],
        [
            helper.make_tensor("scale", TensorProto.FLOAT, [1], [100_000.0]),
            helper.make_tensor("size", TensorProto.INT32, [1], [SPEECH_TOKENS]),
        ],
    )
    _save(graph, path)


def _write_speaker_model(path: Path) -> None:
    """(1, frames, 80) filter bank → (1, 192), different for every voice."""
    import numpy as np
    from onnx import TensorProto, helper

    weights = np.random.default_rng(3).normal(size=(80, 192)).astype(np.float32)
    nodes = [
        helper.make_node("Abs", ["fbank"], ["magnitude"]),
        helper.make_node("ReduceMean", ["magnitude"], ["mean"], axes=[1], keepdims=0),
        helper.make_node("MatMul", ["mean", "weights"], ["embedding"]),
    ]
    graph = helper.make_graph(
        nodes,
        "speaker",
        [helper.make_tensor_value_info("fbank", TensorProto.FLOAT, [1, "frames", 80])],
        [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, [1, 192])],
        [helper.make_tensor("weights", TensorProto.FLOAT, [80, 192], weights.flatten().tolist())],
    )
    _save(graph, path)


def _save(graph: Any, path: Path) -> None:
    import onnx
    from onnx import helper

    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, str(path))
