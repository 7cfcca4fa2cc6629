"""Methods of training other than the plain ones: as many weights as the libraries' own."""

import gzip
import json

import pytest

from trainwright.messages import UserError
from trainwright.profile import trace
from trainwright.worker import client

LLAMA = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 200,
    "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 256,
}  # fmt: skip
GPT = {
    "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 200, "n_embd": 64,
    "n_layer": 2, "n_head": 4, "n_positions": 128,
}  # fmt: skip

BERT = {
    "model_type": "bert", "architectures": ["BertForMaskedLM"], "vocab_size": 200,
    "hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4,
    "intermediate_size": 128,
}  # fmt: skip
GEMMA = {
    "model_type": "gemma2", "architectures": ["Gemma2ForCausalLM"], "vocab_size": 200,
    "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "head_dim": 16,
    "num_key_value_heads": 2, "intermediate_size": 128,
}  # fmt: skip


def traced(folder, config, **options):
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    spec = {
        "model": {"hf": str(folder / "config.json")}, "task": "lora", "precision": "bf16-mixed",
        "kernel": "flash", "channels_last": False, "checkpointing": "none",
        "quantization": "none", "lora": [8, []], "image_size": 0, "points": [(2, 64)],
        "optimizers": ["adamw"], "result_file": str(folder / "trace.json.gz"),
    } | options  # fmt: skip
    client.run("trace", spec, timeout_s=300)
    with gzip.open(spec["result_file"], "rt", encoding="utf-8") as file:
        return trace.parse(json.load(file))


def trained_by_peft(config, kind="LoraConfig", **options):
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    peft = pytest.importorskip("peft")
    family = transformers.AutoConfig.for_model(config["model_type"])
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(family.from_dict(config))
        model = peft.get_peft_model(model, getattr(peft, kind)(**options))
    return model.get_nb_trainable_parameters()[0]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning")  # PEFT asks transformers by an older name
@pytest.mark.parametrize("config", [LLAMA, GPT], ids=["llama", "gpt"])
@pytest.mark.parametrize("dora", [False, True])
def test_adapters_have_as_many_weights_as_those_of_peft(tmp_path, config, dora):
    names = ["q_proj", "v_proj"] if config is LLAMA else ["c_attn"]
    result = traced(tmp_path, config, lora=[8, names], method={"dora": dora})
    options = {"target_modules": names, "use_dora": dora, "fan_in_fan_out": config is GPT, "r": 8}
    theirs = trained_by_peft(config, **options)
    assert result.model["trainable"] == theirs


HYBRID = {
    "vocab_size": 200, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "mamba_n_heads": 8, "mamba_d_head": 16,
    "mamba_d_state": 16, "mamba_n_groups": 1, "mamba_chunk_size": 32,
}  # fmt: skip
FALCON = HYBRID | {
    "model_type": "falcon_h1", "architectures": ["FalconH1ForCausalLM"], "mamba_d_ssm": 128,
}  # fmt: skip
BAMBA = HYBRID | {
    "model_type": "bamba", "architectures": ["BambaForCausalLM"], "mamba_expand": 2,
    "attn_layer_indices": [1],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize(
    ("config", "names"), [(BAMBA, []), (FALCON, ["in_proj", "q_proj", "down_proj"]), (FALCON, [])]
)
def test_adapters_of_hybrids_have_as_many_weights_as_those_of_peft(tmp_path, config, names):
    result = traced(tmp_path, config, lora=[8, names])
    options = {"exclude_modules": ["out_proj"]} if config is FALCON else {}
    theirs = trained_by_peft(config, target_modules=names or "all-linear", r=8, **options)
    assert result.model["trainable"] == theirs


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_layers_that_peft_refuses_to_adapt_are_refused_with_those_that_it_takes(tmp_path):
    with pytest.raises(ValueError, match="out_proj"):
        trained_by_peft(FALCON, target_modules="all-linear")
    with pytest.raises(UserError) as caught:
        traced(tmp_path, FALCON, lora=[8, ["all-linear"]])
    assert caught.value.message.id == "worker.adapted-by-weight"
    rest = caught.value.message.values["rest"].split(", ")
    assert trained_by_peft(FALCON, target_modules=rest) > 0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("config", [LLAMA, GPT], ids=["llama", "gpt"])
@pytest.mark.parametrize(
    ("task", "kind"), [("prompt", "PromptTuningConfig"), ("prefix", "PrefixTuningConfig")]
)
def test_virtual_tokens_have_as_many_weights_as_those_of_peft(tmp_path, config, task, kind):
    result = traced(tmp_path, config, task=task, method={"virtual_tokens": 12})
    theirs = trained_by_peft(config, kind, task_type="CAUSAL_LM", num_virtual_tokens=12)
    assert result.model["trainable"] == theirs


@pytest.mark.slow
def test_virtual_tokens_take_positions_and_need_a_decoder(tmp_path):
    with pytest.raises(UserError) as caught:
        traced(tmp_path, GPT, task="prompt", points=[(2, 120)], method={"virtual_tokens": 12})
    assert caught.value.message.id == "worker.sequence-too-long"
    for method in ({"virtual_tokens": 12}, {"cross_entropy": "chunked"}):
        with pytest.raises(UserError) as caught:
            traced(tmp_path, BERT, task="prefix" if "virtual_tokens" in method else "full",
                   method=method)  # fmt: skip
        assert caught.value.message.id in ("worker.prompt-needs-decoder", "worker.chunked-loss")
        assert "\n" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "id"),
    [(["embed_token"], "worker.frozen-unknown"), (["transformer"], "worker.frozen-everything")],
)
def test_frozen_names_that_cannot_be_are_refused_in_one_line(tmp_path, names, id):
    with pytest.raises(UserError) as caught:
        traced(tmp_path, GPT, task="full", method={"frozen": names})
    assert caught.value.message.id == id
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_dropout_makes_a_copy_of_each_input_and_a_byte_a_value(tmp_path):
    result = traced(tmp_path, LLAMA, precision="fp32", method={"dropout": True})
    (point,) = result.traces
    micro = point.segments["micro"]
    made = [
        size
        for code, size, op in zip(micro.code, micro.b, micro.c, strict=True)
        if code == trace.ALLOC
        and op >= 0
        and point.rows[micro.ops[op]].name == "aten.native_dropout.default"
    ]
    inputs = 2 * 64 * 2 * (6 * 64 + 128)  # samples, tokens, layers, inputs of the seven products
    assert sum(made) == (4 + 1) * inputs


@pytest.mark.slow
def test_8_bit_weights_take_a_byte_and_their_rows_a_scale(tmp_path):
    result = traced(tmp_path, LLAMA, task="qlora", quantization="int8")
    plain = traced(tmp_path, LLAMA)
    weights = 2 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 128)
    rows = 2 * (64 + 32 + 32 + 64 + 128 + 128 + 64)
    spared = plain.model["frozen_bytes"] - result.model["frozen_bytes"]
    assert spared == weights - 4 * rows  # 2 bytes of bf16 become 1
    assert result.model["trainable"] == plain.model["trainable"]


@pytest.mark.slow
def test_a_reference_is_held_whole_beside_the_policy_and_not_trained(tmp_path):
    """A pair is two rows; what is compared with is a copy, the base model or numbers."""
    pairs = {"cross_entropy": "tiled"}
    kinds = ("model", "adapter-off", "precomputed")
    held = {
        kind: traced(tmp_path, LLAMA, method=pairs | {"reference": kind}).model["frozen_bytes"]
        for kind in kinds
    }
    rows = traced(tmp_path, LLAMA, method=pairs, points=[(4, 64)])
    alone = rows.model["frozen_bytes"]
    assert held == {"model": 2 * alone, "adapter-off": alone, "precomputed": alone}
    method = pairs | {"reference": "adapter-off"}
    with pytest.raises(UserError) as caught:  # TRL refuses it too
        traced(tmp_path, LLAMA, lora=[8, ["q_proj", "lm_head"]], method=method)
    assert caught.value.message.id == "worker.adapted-head"
    gemma = GEMMA | {"final_logit_softcapping": 30.0}
    for config, id in ((BERT, "worker.preference-head"), (gemma, "worker.preference-scores")):
        with pytest.raises(UserError) as caught:
            traced(tmp_path, config, task="full", method=pairs | {"reference": "model"})
        assert caught.value.message.id == id


@pytest.mark.slow
@pytest.mark.parametrize("written", [{}, {"prompt": 16}], ids=["dpo", "grpo"])
def test_a_packed_reference_asks_for_no_gradients(tmp_path, written):
    """torch gives whole numbers none, and transformers quantises both models alike."""
    pairs = {"cross_entropy": "tiled"} | written
    quantized = {"task": "qlora", "quantization": "nf4", "points": [(4, 64)]}
    alone, both = (
        traced(tmp_path, LLAMA, method=pairs | more, **quantized).model["frozen_bytes"]
        for more in ({}, {"reference": "model"})
    )
    assert both == 2 * alone


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_reward_model_has_one_score_in_place_of_the_head(tmp_path):
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    peft = pytest.importorskip("peft")
    config = transformers.LlamaConfig.from_dict(LLAMA | {"num_labels": 1})
    with torch.device("meta"):
        model = transformers.AutoModelForSequenceClassification.from_config(config)
        whole = model.num_parameters()
        adapters = peft.LoraConfig(task_type="SEQ_CLS", r=8, target_modules="all-linear")
        model = peft.get_peft_model(model, adapters)
    result = traced(tmp_path, LLAMA, task="full", method={"rewards": True})
    assert result.model["parameters"] == result.model["trainable"] == whole
    adapted = traced(tmp_path, LLAMA, method={"rewards": True})
    assert adapted.model["trainable"] == model.get_nb_trainable_parameters()[0]
    seen = {"model_type": "mamba", "vocab_size": 200, "hidden_size": 64, "num_hidden_layers": 1}
    with pytest.raises(UserError) as caught:
        traced(tmp_path, seen, method={"rewards": True})
    assert caught.value.message.id == "worker.reward-class"
