"""Mixtures of experts: what the libraries do with them, and what the routing changes."""

import importlib
import json

import pytest

from trainwright.profile import store
from trainwright.profile.profile import evaluate
from trainwright.profile.spec import TraceSpec
from trainwright.profile.trace import ALLOC, FREE
from trainwright.worker import client

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.filterwarnings("ignore")

QWEN = {
    "model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"], "vocab_size": 500,
    "hidden_size": 128, "intermediate_size": 256, "moe_intermediate_size": 96,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32,
    "num_experts": 8, "num_experts_per_tok": 2, "max_position_embeddings": 256,
}  # fmt: skip
DEEPSEEK = {
    "model_type": "deepseek_v2", "architectures": ["DeepseekV2ForCausalLM"], "vocab_size": 500,
    "hidden_size": 128, "intermediate_size": 320, "moe_intermediate_size": 96,
    "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 4,
    "kv_lora_rank": 32, "q_lora_rank": None, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16,
    "v_head_dim": 32, "n_routed_experts": 8, "n_shared_experts": 2, "num_experts_per_tok": 2,
    "first_k_dense_replace": 1, "topk_method": "greedy", "max_position_embeddings": 256,
}  # fmt: skip
MODELS = {"qwen3_moe": QWEN, "deepseek_v2": DEEPSEEK}


@pytest.fixture
def programs(monkeypatch):
    """Return a function that imports one of the programs' modules."""
    monkeypatch.syspath_prepend(str(client.PROGRAMS))
    return importlib.import_module


@pytest.fixture
def built(programs, tmp_path):
    """Return a function that builds a model as the tracer does."""

    def build(config):
        path = tmp_path / "config.json"
        path.write_text(json.dumps(config), encoding="utf-8")
        return programs("models").build({"model": {"hf": str(path)}, "kernel": "eager"})

    return build


@pytest.mark.parametrize("name", MODELS)
def test_adapters_are_those_that_peft_makes_of_the_same_layers(programs, built, name):
    peft = pytest.importorskip("peft")
    ours, theirs = built(MODELS[name]), built(MODELS[name])
    count = programs("adapters").add_lora(ours.model, 4, (), ours.head)
    names = {
        place.rpartition(".")[2]
        for place, module in ours.model.named_modules()
        if type(module).__name__ == "Adapted"
    }
    config = peft.LoraConfig(r=4, target_modules=sorted(names), task_type="CAUSAL_LM")
    adapted = peft.get_peft_model(theirs.model, config)
    trained = [weight.numel() for weight in adapted.parameters() if weight.requires_grad]
    assert len(trained) == 2 * count
    assert sum(trained) == sum(
        weight.numel() for weight in ours.model.parameters() if weight.requires_grad
    )


FEW = {"num_hidden_layers": 2, "vocab_size": 500}
ALL_LINEAR = {
    "qwen3_moe": "worker.adapted-experts",
    "mixtral": "worker.adapted-experts",
    "deepseek_v2": "worker.adapted-experts",
    "longcat_flash": "worker.adapted-experts",
    "llama4_text": "worker.adapted-router",
    "phimoe": "worker.adapted-router",
    "gpt_oss": "",
    "qwen2_moe": "",
    "granitemoe": "",
    "jamba": "",
    "jetmoe": "",
}
"""Type -> why we do not plan what PEFT makes of ``all-linear``; empty where we do."""


@pytest.mark.parametrize("kind", ALL_LINEAR)
def test_all_linear_is_what_peft_makes_of_it_or_refused(programs, kind):
    """Where this fails, PEFT does something else than we say."""
    peft = pytest.importorskip("peft")
    config = transformers.AutoConfig.for_model(kind, **FEW)
    with torch.device("meta"):
        models = [transformers.AutoModelForCausalLM.from_config(config) for _ in range(2)]
        options = peft.LoraConfig(r=4, target_modules="all-linear")
        theirs = peft.get_peft_model(models[0], options)
        trained = {name for name, weight in theirs.named_parameters() if weight.requires_grad}
        head, add_lora = models[1].get_output_embeddings(), programs("adapters").add_lora
        if id := ALL_LINEAR[kind]:
            with pytest.raises(programs("refusal").Refusal) as caught:
                add_lora(models[1], 4, ("all-linear",), head)
            assert caught.value.id == id
            part = "router" if id == "worker.adapted-router" else "experts"
            assert any(f"{part}." in name for name in trained)
            return
        add_lora(models[1], 4, ("all-linear",), head)
    ours = (weight.numel() for weight in models[1].parameters() if weight.requires_grad)
    assert sum(ours) == theirs.get_nb_trainable_parameters()[0]


@pytest.mark.parametrize("name", MODELS)
def test_bitsandbytes_quantises_the_layers_that_we_take_it_to(programs, built, name):
    pytest.importorskip("bitsandbytes")
    from transformers import BitsAndBytesConfig
    from transformers.integrations.bitsandbytes import replace_with_bnb_linear

    ours, theirs = built(MODELS[name]), built(MODELS[name])
    programs("quantized").quantize(ours.model, "nf4", torch.bfloat16, ours.head)
    replace_with_bnb_linear(theirs.model, ["lm_head"], BitsAndBytesConfig(load_in_4bit=True))

    def packed(model, kind):
        found = (name for name, part in model.named_modules() if type(part).__name__ == kind)
        return set(found)

    assert packed(ours.model, "Nf4Linear") == packed(theirs.model, "Linear4bit")
    for model in (ours.model, theirs.model):
        assert {w.dtype for n, w in model.named_parameters() if "experts.gate_up" in n} == {
            torch.float32
        }


def test_adapters_on_experts_are_refused(programs, built):
    refusal = programs("refusal").Refusal
    model = built(QWEN).model
    with pytest.raises(refusal) as caught:
        programs("adapters").add_lora(model, 4, ("q_proj", "down_proj"), None)
    assert caught.value.id == "worker.adapted-experts"
    assert caught.value.values == {"targets": "down_proj"}


def test_experts_that_all_get_every_token_are_said_to(built):
    """Llama 4's module of experts takes tokens alone: the router only weighs them."""
    llama = {"model_type": "llama4_text", "architectures": ["Llama4ForCausalLM"], "head_dim": 32,
             "vocab_size": 500, "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 2,
             "intermediate_size_mlp": 64, "num_attention_heads": 2, "num_key_value_heads": 2,
             "num_local_experts": 4}  # fmt: skip
    assert built(llama).facts["experts_implementation"] == "every"
    assert built(QWEN).facts["experts_implementation"] != "every"


MIXTRAL = {
    "model_type": "mixtral", "architectures": ["MixtralForCausalLM"], "vocab_size": 500,
    "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "num_local_experts": 8,
    "num_experts_per_tok": 2, "max_position_embeddings": 256,
}  # fmt: skip


@pytest.mark.parametrize(
    ("config", "names"),
    [(MIXTRAL, ("w1", "w3", "w2")), (QWEN, ("gate_proj", "up_proj", "down_proj"))],
    ids=["mixtral", "qwen3_moe"],
)
def test_separate_experts_compute_what_the_librarys_experts_do(programs, built, config, names):
    module = programs("experts")
    with torch.device("cpu"):
        model = built(config).model.to_empty(device="cpu")
    whole = next(module.layers(model))
    torch.manual_seed(0)
    for weight in whole.parameters():
        torch.nn.init.normal_(weight, std=0.1)
    apart = module.SeparateExperts(whole)
    for number, expert in enumerate(apart.parts):
        both, down = whole.gate_up_proj[number], whole.down_proj[number]
        for name, values in zip(names, (*both.chunk(2), down), strict=True):
            getattr(expert, name).weight.data = values.data.clone()
    hidden, weights = torch.randn(24, 128), torch.rand(24, 2)
    chosen = torch.rand(24, 8).topk(2).indices
    expected = type(whole).forward(whole, hidden, chosen, weights)
    torch.testing.assert_close(apart(hidden, chosen, weights), expected)


def test_separate_experts_are_quantised_and_adapted(programs, built):
    subject = built(MIXTRAL)
    experts = programs("experts")
    count = sum(weight.numel() for weight in subject.model.parameters())
    held = experts.bytes_held(subject.model)["expert_bytes"]
    with torch.device("meta"):
        experts.separate(subject.model)
        assert sum(weight.numel() for weight in subject.model.parameters()) == count
        programs("quantized").quantize(subject.model, "nf4", torch.bfloat16, subject.head)
        added = programs("adapters").add_lora(subject.model, 4, ("w1", "w2", "w3"), None)
    assert added == 2 * 8 * 3
    assert experts.bytes_held(subject.model)["expert_bytes"] < held / 4


WRONG = {
    "more-than-there-are": (QWEN | {"num_experts_per_tok": 9}, "worker.experts-per-token"),
    "none": (QWEN | {"num_experts": 0}, "worker.experts-per-token"),
    "none-a-token": (QWEN | {"num_experts_per_tok": 0}, "worker.experts-per-token"),
    "negative": (QWEN | {"num_experts": -8}, "worker.config-field"),
    "absurd": (QWEN | {"num_experts": 10**9}, "worker.config-absurd"),
    "groups": (DEEPSEEK | {"n_group": 3, "topk_group": 1}, "worker.expert-groups"),
    "groups-too-few": (
        DEEPSEEK | {"n_group": 8, "topk_group": 1, "num_experts_per_tok": 2},
        "worker.expert-groups",
    ),
    "no-groups": (DEEPSEEK | {"n_group": 0, "topk_group": 1}, "worker.expert-groups"),
    "text": (QWEN | {"num_experts": "eight"}, "worker.config-field"),
    "truth": (QWEN | {"num_experts_per_tok": True}, "worker.config-field"),
    "list": (QWEN | {"num_experts": [8]}, "worker.config-kind"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_router_that_cannot_be_is_refused_in_a_line(programs, built, case):
    config, expected = WRONG[case]
    with pytest.raises(programs("refusal").Refusal) as caught:
        built(config)
    assert caught.value.id == expected


def test_a_mixture_without_experts_that_wants_none_is_a_dense_model(built):
    config = QWEN | {"num_experts": 0, "num_experts_per_tok": 0}
    assert "experts" not in built(config).facts


@pytest.mark.parametrize(
    ("worst", "busy", "rows"),
    [(False, 8, 24), (True, 2, 96)],
    ids=["balanced", "worst"],
)
def test_the_routing_says_who_works_on_how_much(programs, worst, busy, rows):
    routed = programs("experts").Routed(experts=8, tokens=96, each=2, worst=worst)
    assert (routed.busy, routed.rows) == (busy, rows)


def test_a_single_token_keeps_few_experts_busy(programs):
    routed = programs("experts").Routed(experts=8, tokens=1, each=2, worst=False)
    assert (routed.busy, routed.rows) == (2, 1)


@pytest.fixture(scope="module")
def prefills(tmp_path_factory):
    """Return {(implementation, routing): highest number of living bytes in a prefill}."""
    folder = tmp_path_factory.mktemp("routed")
    found = {}
    for implementation in ("eager", "grouped_mm"):
        path = folder / f"{implementation}.json"
        config = QWEN | {"moe_intermediate_size": 512, "experts_implementation": implementation}
        path.write_text(json.dumps(config), encoding="utf-8")
        for routing in ("balanced", "worst"):
            spec = TraceSpec(
                (("hf", str(path)),), "test", "infer", "bf16-mixed", "flash", routing=routing
            )
            profile = store.trace(spec, at=(4, 96), keep=False)
            found[implementation, routing] = peak(profile)
    return found


def peak(profile):
    segment = profile.segments["prefill"]
    sizes = evaluate(profile.sizes, *profile.points[0])
    births, living, highest = {}, 0, 0
    for code, storage, size in zip(segment.code, segment.a, segment.b, strict=True):
        if code == ALLOC:
            births[storage] = sizes[size]
        if code in (ALLOC, FREE):
            change = births.get(storage, 0)
            living += change if code == ALLOC else -change
        highest = max(highest, living)
    return highest


@pytest.mark.slow
def test_experts_one_by_one_take_most_where_all_tokens_choose_the_same(prefills):
    assert prefills["eager", "worst"] > prefills["eager", "balanced"]


@pytest.mark.slow
def test_grouped_experts_take_the_same_however_tokens_choose(prefills):
    assert prefills["grouped_mm", "worst"] == prefills["grouped_mm", "balanced"]
    assert prefills["grouped_mm", "balanced"] >= prefills["eager", "balanced"]


def test_grouped_products_count_the_tokens_that_are_routed(programs):
    costs = programs("costs")
    facts = costs.describe(costs.GROUPED)
    tokens, experts = 48, 8
    offsets = torch.zeros(experts, dtype=torch.int32)
    left, right = torch.zeros(tokens, 16), torch.zeros(experts, 16, 32)
    forward = (left, right, offsets)
    of_weights = (left.T, torch.zeros(tokens, 32), offsets)
    for args in (forward, of_weights):
        assert costs.flops(facts, args, {}, None) == 2 * tokens * 16 * 32

    def dims(args):
        return costs.dims(facts, args, {}, None, (), (), lambda _: False)

    assert dims(forward) == (experts, tokens, 32, 16, 1)
    assert dims(of_weights) == (experts, 16, 32, tokens, 3)
