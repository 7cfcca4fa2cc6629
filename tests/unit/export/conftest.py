"""A model that trainers can load."""

from pathlib import Path

import pytest
from exporting import LLAMA


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A tiny language model with random weights and a tokenizer of words."""
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    words = {word: number for number, word in enumerate(["</s>", *map(str, range(1, 64))])}
    kind = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="1"))
    kind.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=kind, eos_token="</s>", pad_token="</s>"
    ).save_pretrained(tmp_path / "model")
    config = transformers.LlamaConfig.from_dict(LLAMA)
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path / "model")
    return tmp_path / "model"
