"""The simulated device knows what torch does, and adapters do what PEFT does."""

import importlib
import re
from pathlib import Path

import pytest
import yaml

from trainwright.worker import client

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def programs(monkeypatch):
    """Return a function that imports one of the programs' modules."""
    monkeypatch.syspath_prepend(str(client.PROGRAMS))
    return importlib.import_module


def test_autocast_lists_are_those_of_the_installed_torch(programs):
    autocast = programs("autocast")
    header = autocast.installed_header()
    if not header.is_file():
        pytest.skip("this build of torch has no headers")
    installed = autocast.header_lists(header)
    assert installed.keys() == autocast.LISTS.keys()
    if torch.__version__.startswith("2.13."):
        assert {name: set(ops) for name, ops in installed.items()} == {
            name: set(ops) for name, ops in autocast.LISTS.items()
        }


def test_operators_with_a_cuda_kernel_and_a_body_are_all_known(programs):
    simdevice = programs("simdevice")
    torchgen = pytest.importorskip("torchgen")
    path = Path(torchgen.__file__).parent / "packaged/ATen/native/native_functions.yaml"
    functions = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    found = set()
    for function in functions:
        keys = {key.strip() for keys in function.get("dispatch", {}) for key in keys.split(",")}
        real = "CUDA" in keys or "structured_delegate" in function
        if "CompositeImplicitAutograd" in keys and real:
            found.add(re.split(r"[.(]", function["func"])[0])
    assert found == set(simdevice.OWN_KERNEL)


def test_every_block_of_known_networks_is_found(programs):
    step = programs("step")
    timm = pytest.importorskip("timm")
    expected = {
        "resnet18": 8,
        "resnet50": 16,
        "convnext_tiny": 18,
        "efficientnet_b0": 16,
        "vit_small_patch16_224": 12,
        "swin_tiny_patch4_window7_224": 12,
    }
    with torch.device("meta"):
        models = {name: timm.create_model(name) for name in expected}
    assert {name: len(step.blocks(model)) for name, model in models.items()} == expected


@pytest.mark.parametrize("split", [(8,), (4, 4), (2, 6), (1, 3, 4)])
def test_any_split_into_micro_batches_gives_the_same_gradients(programs, split):
    step = programs("step")
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Embedding(50, 16), torch.nn.Linear(16, 50)).double()

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model

        def forward(self, tokens):
            return self.inner(tokens)

    net = Net()
    tokens = torch.randint(0, 50, (8, 12))
    labels = tokens.clone()
    for row in range(8):
        labels[row, 12 - row :] = step.IGNORED  # ragged lengths
    settings = step.StepSettings(precision="fp32")

    def gradients(parts):
        net.zero_grad()
        batches = [
            step.Batch({"tokens": x}, y)
            for x, y in zip(tokens.split(parts), labels.split(parts), strict=True)
        ]
        count = step.counted(batches, step.next_token_loss)
        for batch in batches:
            step.micro_step(net, batch, count, step.next_token_loss, settings)
        return [parameter.grad.clone() for parameter in net.parameters()]

    for whole, parts in zip(gradients((8,)), gradients(split), strict=True):
        torch.testing.assert_close(parts, whole, rtol=1e-6, atol=1e-9)


PATHS = (
    "model.embed_tokens.weight",
    *(f"model.layers.{n}.self_attn.{p}.weight" for n in range(12) for p in ("q_proj", "k_proj")),
    "model.norm.weight",
    "lm_head.weight",
)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("embed_tokens", 1), ("layers.0-3", 8), ("layers.10-11", 4), ("layers.1", 2),
        ("q_proj", 12), ("model.layers.2.self_attn.q_proj.weight", 1), ("model", 26),
        ("layers", 24),
    ],
)  # fmt: skip
def test_a_frozen_name_stands_for_successive_parts_of_a_path(programs, name, count):
    assert len(programs("freezing").frozen(PATHS, [name])) == count


@pytest.mark.parametrize(
    ("name", "near"),
    [("embed_token", "embed_tokens"), ("layer.0", "layers.0"), ("layers.12", "layers.1"),
     ("q_prj", "q_proj"), ("zzz", "model")],
)  # fmt: skip
def test_a_frozen_name_that_stands_for_nothing_is_refused_with_the_nearest(programs, name, near):
    freezing = programs("freezing")
    with pytest.raises(freezing.UnknownNameError) as caught:
        freezing.frozen(PATHS, ["lm_head", name])
    assert near in caught.value.near


class Chunkable(torch.nn.Module):
    """A language model as far as its loss sees it."""

    def __init__(self, bias):
        super().__init__()
        self.embedding = torch.nn.Embedding(50, 16)
        self.head = torch.nn.Linear(16, 50, bias=bias)

    def forward(self, tokens):
        return self.head(self.embedding(tokens))


def _gradients(step, loss_of, bias):
    torch.manual_seed(0)
    net = Chunkable(bias)
    tokens = torch.randint(0, 50, (3, 13))  # in no number of equal chunks
    labels = tokens.clone()
    labels[1, 5:] = step.IGNORED
    batch = step.Batch({"tokens": tokens}, labels)
    loss = loss_of(net.head)
    count = step.counted([batch], loss)
    value = step.micro_step(net, batch, count, loss, step.StepSettings(precision="fp32"))
    return count, value, [parameter.grad for parameter in net.parameters()]


@pytest.mark.parametrize("bias", [False, True])
def test_a_loss_in_chunks_has_the_gradients_of_the_whole(programs, bias):
    step = programs("step")
    whole = _gradients(step, lambda head: step.next_token_loss, bias)
    parts = _gradients(step, step.ChunkedLoss, bias)
    torch.testing.assert_close(parts, whole, rtol=1e-5, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("bias", [False, True])
def test_the_fused_loss_has_the_gradients_of_the_whole(programs, bias):
    step, fused = programs("step"), programs("fused")

    def in_place(logits, labels, losses):
        counted = labels != step.IGNORED
        losses.copy_(torch.nn.functional.cross_entropy(logits, labels, reduction="none"))
        logits.copy_(logits.softmax(dim=1))
        logits[counted, labels[counted]] -= 1
        logits[~counted] = 0

    library = torch.library.Library("trainwright", "IMPL")
    library.impl("cross_entropy_in_place", in_place, "CPU")
    whole = _gradients(step, lambda head: step.next_token_loss, bias)
    parts = _gradients(step, fused.FusedLoss, bias)
    torch.testing.assert_close(parts, whole, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    ("tokens", "vocabulary", "width"),
    [(2048, 128_256, 4096), (4096, 151_936, 3584), (16_384, 32_000, 4096), (8192, 50_257, 1600)],
)
def test_the_fused_loss_has_as_many_chunks_as_liger_makes(programs, tokens, vocabulary, width):
    # ops/fused_linear_cross_entropy.py of liger-kernel 0.8.5, with its triton.cdiv written out.
    rows = -(-tokens // -(-vocabulary // width))
    theirs = -(-tokens // (1 << (rows - 1).bit_length()))
    assert programs("fused").chunks(tokens, width, vocabulary) == theirs


def test_a_model_that_changes_its_scores_is_not_cut_into_chunks(programs):
    step = programs("step")
    net = Chunkable(bias=False)
    loss = step.ChunkedLoss(net.head)
    tokens = torch.zeros((2, 8), dtype=torch.int64)
    with pytest.raises(ValueError, match="after the head"):
        loss(net(tokens) * 0.5, tokens, 1.0)


def test_next_token_loss_is_that_of_transformers(programs):
    step = programs("step")
    loss_utils = pytest.importorskip("transformers.loss.loss_utils")
    torch.manual_seed(0)
    logits = torch.randn(2, 7, 11, dtype=torch.bfloat16)
    labels = torch.randint(0, 11, (2, 7))
    labels[0, 4:] = step.IGNORED
    theirs = loss_utils.ForCausalLMLoss(logits, labels, 11, num_items_in_batch=9)
    assert step.next_token_loss(logits, labels, 9.0) == theirs


@pytest.mark.slow
@pytest.mark.parametrize("dora", [False, True])
@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_adapter_computes_and_saves_what_peft_does(programs, autocast, dtype, dora):
    adapters = programs("adapters")
    peft = pytest.importorskip("peft")
    torch.manual_seed(0)
    base = torch.nn.Sequential(torch.nn.Linear(24, 40)).to(getattr(torch, dtype))
    ours = adapters.Adapted(base[0], 4, scaling=2.0, dora=dora)
    config = peft.LoraConfig(r=4, lora_alpha=8, target_modules=["0"], use_dora=dora)
    theirs = peft.get_peft_model(base, config).base_model.model[0]
    with torch.no_grad():
        theirs.lora_B["default"].weight.normal_()
        ours.lora_A.weight.copy_(theirs.lora_A["default"].weight)
        ours.lora_B.weight.copy_(theirs.lora_B["default"].weight)
        if dora:
            ours.magnitude.weight.copy_(theirs.lora_magnitude_vector["default"].weight)
    assert theirs.lora_A["default"].weight.dtype == ours.lora_A.weight.dtype == torch.float32

    def run(layer):
        x = torch.linspace(-1, 1, 6 * 24).view(6, 24).to(base[0].weight.dtype).requires_grad_()
        saved = []

        def pack(tensor):
            saved.append((tensor.shape, tensor.dtype))
            return tensor

        with (
            torch.autocast("cpu", torch.bfloat16, enabled=autocast),
            torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor),
        ):
            result = layer(x)
        result.float().sum().backward()
        return result, x.grad, saved

    mine, peft_result = run(ours), run(theirs)
    assert torch.equal(mine[0], peft_result[0])
    assert torch.equal(mine[1], peft_result[1])
    assert mine[2] == peft_result[2]


@pytest.mark.slow
def test_4_bit_weights_take_what_bitsandbytes_keeps(programs):
    quantized = programs("quantized")
    bitsandbytes = pytest.importorskip("bitsandbytes")
    layer = bitsandbytes.nn.Linear4bit(
        512, 768, bias=False, compute_dtype=torch.bfloat16, quant_type="nf4",
        compress_statistics=True,
    ).to("cpu")  # fmt: skip
    state = layer.weight.quant_state
    kept = [layer.weight, state.absmax, state.state2.absmax, state.state2.code, state.offset]
    ours = quantized.Nf4Linear(512, 768, None, torch.bfloat16)
    assert sorted(p.nbytes for p in ours.parameters()) == sorted(t.nbytes for t in kept)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_8_bit_layer_computes_and_keeps_what_that_of_bitsandbytes_does(programs, dtype):
    quantized = programs("quantized")
    bitsandbytes = pytest.importorskip("bitsandbytes")
    from bitsandbytes.autograd._functions import MatMul8bitLt

    torch.manual_seed(0)
    theirs = bitsandbytes.nn.Linear8bitLt(
        64, 48, bias=True, has_fp16_weights=False, threshold=quantized.THRESHOLD
    ).to("cpu")
    theirs.init_8bit_state()
    codes, scales = theirs.state.CB, theirs.state.SCB
    bias = theirs.bias.detach().to(dtype)
    ours = quantized.Int8Linear(64, 48, bias)
    kept = [codes, scales, bias]
    assert sorted(p.nbytes for p in ours.parameters()) == sorted(t.nbytes for t in kept)
    ours.weight = torch.nn.Parameter(codes, requires_grad=False)
    ours.scales = torch.nn.Parameter(scales, requires_grad=False)
    outlying = list(range(0, 63, 9))  # as many columns as are assumed
    library = torch.library.Library("trainwright", "IMPL")
    kernels = {
        "quantize_rows": lambda x: bitsandbytes.functional.int8_vectorwise_quant(x, 6.0)[:2],
        "outlier_columns": lambda outliers, most: outliers.any(dim=0).nonzero().view(-1),
        "dequantize_product": lambda product, rows, columns, bias: (
            torch.ops.bitsandbytes.int8_mm_dequant(product, rows, columns, bias=bias)
        ),
    }
    for name, kernel in kernels.items():
        library.impl(name, kernel, "CPU")

    def run(layer):
        x = torch.linspace(-2, 2, 3 * 8 * 64).view(3, 8, 64).to(dtype)
        x[..., outlying] *= 10
        x.requires_grad_()
        result = layer(x)
        held = [t for t in result.grad_fn.tensors if t is not None]
        result.float().square().sum().backward()
        return result.detach(), x.grad, sorted((*t.shape, str(t.dtype)) for t in held[:2])

    assert len(outlying) == quantized.OUTLIERS
    mine = run(ours)
    real = run(lambda x: MatMul8bitLt.apply(x, theirs.weight, None, bias, theirs.state))
    exact = {"rtol": 0.01, "atol": 0.05} if dtype != torch.float32 else {"rtol": 1e-3, "atol": 0.02}
    torch.testing.assert_close(mine[0], real[0], **exact)
    torch.testing.assert_close(mine[1], real[1], **exact)
    assert mine[2] == real[2]


@pytest.mark.parametrize("groups", [1, 2, 8])
def test_both_gradients_of_a_convolution_cost_what_its_forward_does(programs, groups):
    costs, aten = programs("costs"), torch.ops.aten
    x, weight = torch.empty(2, 8, 10, 10), torch.empty(8, 8 // groups, 3, 3)
    rest = ([1, 1], [1, 1], [1, 1], False, [0, 0], groups)
    y = aten.convolution.default(x, weight, None, *rest)
    backward = (y, x, weight, [0], *rest, [True, True, False])
    gradients = aten.convolution_backward.default(*backward)
    forward = costs.flops(costs.describe(aten.convolution.default), (x, weight, None, *rest), {}, y)
    assert forward == 2 * y.numel() * weight[0].numel()  # a multiplication and an addition
    facts = costs.describe(aten.convolution_backward.default)
    assert costs.flops(facts, backward, {}, gradients) == 2 * forward


def test_what_must_stay_in_fp32_is_not_quantised(programs):
    adapters, quantized, nn = programs("adapters"), programs("quantized"), torch.nn

    class Block(nn.Module):
        _keep_in_fp32_modules = ("wo",)

        def __init__(self):
            super().__init__()
            self.wi, self.wo = nn.Linear(64, 64), nn.Linear(64, 64)

    model = Block()
    quantized.quantize(model, "nf4", torch.bfloat16, None)
    adapters.add_lora(model, 4, (), None)
    assert model.wi.weight.dtype == torch.uint8  # an adapted layer has its base's weight
    assert model.wo.weight.dtype == torch.float32


@pytest.mark.parametrize(
    ("pixels", "threads"), [(2, 1), (2, 4), (16, 1), (16, 4)], ids=lambda value: str(value)
)
def test_what_convolutions_take_while_they_compute_is_told_from_tensors(programs, pixels, threads):
    """Pictures that are smaller than the kernel make oneDNN take several times the weights."""
    conv = torch.nn.Conv2d(64, 64, 3, padding=1, bias=False)
    x = torch.randn(4, 64, pixels, pixels, requires_grad=True)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with programs("memorylog").HostLog() as log:
            y = conv(x)
            seed = torch.ones_like(y)
            grads = torch.autograd.grad(y, (x, conv.weight), seed)
    finally:
        torch.set_num_threads(before)
    tensors = sum(each.nbytes for each in (y, seed, *grads))
    assert log.peak_between_convolutions() == tensors
    assert log.peak() >= tensors
