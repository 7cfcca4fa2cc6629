"""Packed checkpoints: what quantization_config settles, what is refused, and the bytes it takes."""

import importlib
import json

import pytest

from trainwright.estimate.serving import weights
from trainwright.messages import LANGUAGES, UserError, render
from trainwright.plan.checkpoint import honoured
from trainwright.plan.evaluate import resolve
from trainwright.plan.packing import packing
from trainwright.plan.schema import Plan
from trainwright.profile import presets
from trainwright.worker import client

LLAMA = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 512,
    "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 4, "max_position_embeddings": 256,
}  # fmt: skip
NF4 = {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4",
       "bnb_4bit_use_double_quant": False, "llm_int8_skip_modules": ["lm_head"]}  # fmt: skip
INT8 = {"quant_method": "bitsandbytes", "load_in_8bit": True}
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True, "desc_act": False}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 64, "zero_point": True}
FP8 = {"quant_method": "fp8", "weight_block_size": [128, 128],
       "modules_to_not_convert": ["lm_head", "model.layers.0.input_layernorm"]}  # fmt: skip
MXFP4 = {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn"]}


def compressed(**scheme):
    groups = {"group_0": {"targets": ["Linear"], "weights": scheme}}
    return {"quant_method": "compressed-tensors", "ignore": ["lm_head"], "config_groups": groups}


W4A16 = compressed(type="int", num_bits=4, strategy="group", group_size=128, symmetric=True)
W8A8 = compressed(type="float", num_bits=8, strategy="channel", symmetric=True)


@pytest.fixture
def plan(tmp_path):
    """Return a function that makes a plan of a task on a packed Llama."""

    def make(packed, task, **settings):
        path = tmp_path / "config.json"
        path.write_text(json.dumps(LLAMA | {"quantization_config": packed}))
        inputs = {"prompt_tokens": 64} if task == "infer" else {"sequence_length": 64}
        batch = {} if task == "infer" else {"effective_batch": 2}
        return Plan.model_validate(
            {
                "model": {"hf": str(path)},
                "workload": {"task": task, "inputs": inputs, **batch},
                "machine": {"gpus": [{"id": "rtx-4090"}]},
                "settings": settings,
            }
        )

    return make


@pytest.mark.parametrize(
    ("packed", "task", "quantization", "engine", "note"),
    [
        (NF4, "qlora", "nf4", "transformers", "packed"),
        (INT8, "qlora", "int8", "transformers", "packed"),
        (NF4, "infer", "nf4", "transformers", "packed"),
        (GPTQ, "infer", "int4", "vllm", "packed"),
        (GPTQ | {"bits": 8}, "infer", "int8", "vllm", "packed"),
        (AWQ, "infer", "int4", "vllm", "packed"),
        (FP8, "infer", "fp8", "vllm", "packed"),
        (W4A16, "infer", "int4", "vllm", "packed"),
        (MXFP4, "infer", "mxfp4", "vllm", "packed"),
        (MXFP4, "lora", "none", "transformers", "packed-unpacked"),
        (FP8, "full", "none", "transformers", "packed-unpacked"),
        ({"quant_method": "hqq"}, "pretrain", "none", "transformers", "packed-pretrain"),
    ],
)
def test_a_packed_checkpoint_settles_weights_and_says_so(
    plan, packed, task, quantization, engine, note
):
    found = resolve(plan(packed, task))
    assert (found.settings.quantization, found.settings.engine) == (quantization, engine)
    (said,) = (each for each in found.notes if each.id.startswith("plan.note.packed"))
    assert said.id == f"plan.note.{note}"
    assert all(render(said, language) for language in LANGUAGES)


def test_scales_of_4_bits_are_nested_where_the_checkpoint_says_so(plan):
    for nested in (False, True):
        found = resolve(plan(NF4 | {"bnb_4bit_use_double_quant": nested}, "qlora"))
        assert found.settings.double_quantization is nested


@pytest.mark.parametrize(
    ("packed", "task", "settings", "id", "says"),
    [
        (NF4, "lora", {}, "plan.packing-qlora", "qlora"),
        (INT8, "full", {}, "plan.packing-qlora", "qlora"),
        (GPTQ, "qlora", {}, "plan.packing-original", "gptq"),
        (MXFP4, "qlora", {}, "plan.packing-original", "mxfp4"),
        (NF4, "qlora", {"quantization": "int8"}, "plan.packing-differs", "int8"),
        (FP8, "infer", {"engine": "transformers"}, "plan.packing-differs", "vllm"),
        ({"quant_method": "hqq"}, "infer", {}, "plan.packing-unknown", "hqq"),
        (GPTQ | {"bits": 3}, "infer", {}, "plan.packing-unknown", "bits: 3"),
        (GPTQ | {"group_size": 0}, "infer", {}, "plan.packing-unknown", "group_size: 0"),
        (AWQ | {"modules_to_not_convert": ["model.layers.1.mlp"]}, "infer", {},
         "plan.packing-unknown", "model.layers.1.mlp"),
        (NF4 | {"llm_int8_skip_modules": ["(a+)+$"]}, "qlora", {}, "plan.packing-unknown", "(a+)"),
        (NF4 | {"llm_int8_skip_modules": 5}, "qlora", {}, "plan.packing-unknown", "5"),
    ],
)  # fmt: skip
def test_what_no_library_does_with_packed_weights_is_refused(
    plan, packed, task, settings, id, says
):
    with pytest.raises(UserError) as caught:
        honoured(plan(packed, task, **settings))
    assert caught.value.message.id == id
    for language in LANGUAGES:
        line = render(caught.value.message, language)
        assert says in line
        assert "config.json" in line
        assert "\n" not in line


def test_gpt_oss_takes_the_bytes_of_its_published_files():
    """``total_size`` of model.safetensors.index.json of openai/gpt-oss-20b."""
    config = json.loads(presets.find("gpt-oss-20b").definition())
    model = weights.inventory(config, 20_914_757_184)
    packed = packing(config | {"quantization_config": MXFP4})
    assert weights.quantized(model, packed.format, packed.scheme).nbytes == 13_761_264_768


@pytest.mark.parametrize(
    ("packed", "of_a_matrix"),
    [
        (GPTQ, 512 * 256 // 2 + 512 * 2 * (2 + 0.5)),  # fp16 scales and 4-bit zeros
        (AWQ, 512 * 256 // 2 + 512 * 4 * (2 + 0.5)),
        (W4A16, 512 * 256 // 2 + 512 * 2 * 2),  # symmetric: no zeros
        (FP8, 512 * 256 + 4 * 2 * 4),  # an fp32 scale for 128 x 128
        (W8A8, 512 * 256 + 512 * 4),
    ],
)
def test_scales_are_counted_as_the_checkpoint_has_them(packed, of_a_matrix):
    found = packing({"quantization_config": packed})
    assert found.scheme.nbytes(weights.Matrix("up", 0, 512, 256)) == of_a_matrix


@pytest.mark.filterwarnings("ignore")
def test_modules_that_bitsandbytes_skips_are_those_that_transformers_skip(monkeypatch):
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    from transformers.quantizers.quantizers_utils import should_convert_module

    monkeypatch.syspath_prepend(str(client.PROGRAMS))
    quantized = importlib.import_module("quantized")
    kept = ["lm_head", "model.layers.1.mlp", "v_proj", "layers.0"]
    with torch.device("meta"):
        fields = {key: value for key, value in LLAMA.items() if key != "architectures"}
        model = transformers.AutoModelForCausalLM.from_config(
            transformers.LlamaConfig.from_dict(fields)
        )
        names = [name for name, each in model.named_modules() if isinstance(each, torch.nn.Linear)]
        quantized.quantize(model, "nf4", torch.bfloat16, model.lm_head, unpacked=kept)
    left = [name for name, each in model.named_modules() if isinstance(each, torch.nn.Linear)]
    assert left == [name for name in names if not should_convert_module(name, kept)]
    assert 0 < len(left) < len(names)
