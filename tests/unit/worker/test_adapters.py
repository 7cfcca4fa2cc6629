"""Adapters have as many weights as those of PEFT's own get_peft_model, or both refuse them."""

import importlib
import json

import pytest

from trainwright.worker import client

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
peft = pytest.importorskip("peft")
pytestmark = pytest.mark.filterwarnings("ignore")

TYPES = (
    "bert", "bigbird_pegasus", "biogpt", "bloom", "cohere", "codegen", "deepseek_v3", "electra",
    "ernie4_5", "exaone4", "falcon", "gemma2", "gemma3_text", "glm4", "gpt2", "gpt_bigcode",
    "gpt_neox", "gpt_oss", "granite", "granitemoe", "llama", "mistral", "mixtral", "mpt", "olmo2",
    "olmoe", "opt", "phi", "phi3", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "smollm3", "t5",
    "xglm",
)  # fmt: skip
SIZES = {
    "vocab_size": 128, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
    "num_layers": 2, "n_layer": 2, "n_layers": 2, "encoder_layers": 2, "decoder_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "pad_token_id": 0,
    "moe_intermediate_size": 32, "num_experts": 4, "num_local_experts": 4, "n_routed_experts": 8,
    "num_experts_per_tok": 2, "shared_expert_intermediate_size": 64, "first_k_dense_replace": 1,
}  # fmt: skip
"""Small, where a type has the key; the others are its own defaults."""


def small(kind):
    """Return the default configuration of a type, in two small layers."""
    made = transformers.AutoConfig.for_model(kind)
    keys = {key: value for key, value in SIZES.items() if getattr(made, key, None) is not None}
    if kind == "falcon":  # its heads divide the width by themselves
        del keys["head_dim"]
    if kind == "deepseek_v3":  # all heads have latent keys of their own, and experts no groups
        keys |= {"num_key_value_heads": 4, "n_group": 1, "topk_group": 1}
    return transformers.AutoConfig.for_model(kind, **keys)


@pytest.fixture
def both(monkeypatch, tmp_path):
    """Return a function for the trained weights of PEFT's adapters and of ours; None: refused."""
    monkeypatch.syspath_prepend(str(client.PROGRAMS))
    models, adapters, refusal = map(importlib.import_module, ("models", "adapters", "refusal"))
    path = tmp_path / "config.json"

    def of(kind, targets):
        config = small(kind)
        spec = {"model": {"hf": str(path)}, "kernel": "efficient", "image_size": 0}
        path.write_text(json.dumps(config.to_diff_dict() | {"model_type": kind}, default=str))
        subject = models.build(spec)
        model = subject.model
        if targets is None:
            targets = peft.utils.TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING.get(kind)
        targets = targets or ["q_proj", "v_proj", "qkv_proj", "q_b_proj"]  # no line there
        with torch.device("meta"):
            try:
                theirs = peft.LoraConfig(r=8, target_modules=targets)
                own = type(model)(model.config)
                theirs = peft.get_peft_model(own, theirs).get_nb_trainable_parameters()[0]
            except ValueError:
                theirs = None
            try:
                names = [targets] if isinstance(targets, str) else targets
                adapters.add_lora(model, 8, tuple(names), subject.head)
            except refusal.Refusal as refused:
                return theirs, refused.id
        return theirs, sum(p.numel() for p in model.parameters() if p.requires_grad)

    return of


@pytest.mark.parametrize("kind", TYPES)
def test_the_targets_of_pefts_own_table_make_as_many_weights_as_there(both, kind):
    theirs, ours = both(kind, None)
    assert ours == theirs


@pytest.mark.parametrize("kind", TYPES)
def test_all_linear_makes_as_many_weights_as_peft_or_says_why_not(both, kind):
    theirs, ours = both(kind, "all-linear")
    if isinstance(ours, str):  # PEFT takes all experts of a layer, at a cost that is refused here
        assert ours == "worker.adapted-experts"
        assert kind in ("mixtral", "qwen2_moe", "qwen3_moe", "olmoe", "deepseek_v3", "ernie4_5_moe")
    else:
        assert ours == theirs
