"""Where the weights of presets are published on the Hugging Face hub."""

from collections.abc import Mapping

HUB: Mapping[str, str] = {
    "bert-base": "google-bert/bert-base-uncased",
    "bert-large": "google-bert/bert-large-uncased",
    "deepseek-v2-lite": "deepseek-ai/DeepSeek-V2-Lite",
    "deberta-v3-base": "microsoft/deberta-v3-base",
    "deberta-v3-large": "microsoft/deberta-v3-large",
    "falcon-7b": "tiiuae/falcon-7b",
    "falcon-h1-0.5b": "tiiuae/Falcon-H1-0.5B-Base",
    "gpt-oss-20b": "openai/gpt-oss-20b",
    "gpt2": "openai-community/gpt2",
    "gpt2-xl": "openai-community/gpt2-xl",
    "lfm2-1.2b": "LiquidAI/LFM2-1.2B",
    "minicpm3-4b": "openbmb/MiniCPM3-4B",
    "mistral-7b": "mistralai/Mistral-7B-v0.3",
    "mixtral-8x7b": "mistralai/Mixtral-8x7B-v0.1",
    "modernbert-base": "answerdotai/ModernBERT-base",
    "modernbert-large": "answerdotai/ModernBERT-large",
    "olmoe-1b-7b": "allenai/OLMoE-1B-7B-0924",
    "phi-3.5-mini": "microsoft/Phi-3.5-mini-instruct",
    "phi-4": "microsoft/phi-4",
    "roberta-base": "FacebookAI/roberta-base",
    "roberta-large": "FacebookAI/roberta-large",
    "tinyllama-1.1b": "TinyLlama/TinyLlama-1.1B-Chat-v1.0",
    **{f"llama-3.1-{size}b": f"meta-llama/Llama-3.1-{size}B" for size in (8, 70)},
    **{f"llama-3.2-{size}b": f"meta-llama/Llama-3.2-{size}B" for size in (1, 3)},
    **{f"qwen-2.5-{s}b": f"Qwen/Qwen2.5-{s}B" for s in ("0.5", "1.5", "3", "7", "14", "32")},
    **{f"qwen-3-{s}b": f"Qwen/Qwen3-{s}B" for s in ("0.6", "1.7", "4", "8", "14", "32")},
    **{f"gemma-2-{size}b": f"google/gemma-2-{size}b" for size in (2, 9, 27)},
    **{f"gemma-3-{size}b": f"google/gemma-3-{size}b-pt" for size in (1, 4, 12, 27)},
    **{f"smollm2-{s}": f"HuggingFaceTB/SmolLM2-{s.upper()}" for s in ("135m", "360m", "1.7b")},
}
"""Preset -> where its weights are published."""
