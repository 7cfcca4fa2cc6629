"""Runs the loop of each recipe for real on the CPU, by the library itself; started as a program.

    python recipe_runs.py PROGRAMS_FOLDER < cases.json > peaks.json

Nothing of the tracer runs here: torch's profiler logs what its CPU allocator gives out and takes
back.
"""

import gc
import json
import os
import sys
import tempfile
import warnings
from bisect import bisect_right
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import version
from types import ModuleType, SimpleNamespace

warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])
answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)

VERSION = tuple(map(int, version("transformers").split(".")[:2]))
if VERSION < (4, 10):
    sys.modules["tokenizers"] = None  # today's would be refused, and it does without

import torch  # noqa: E402
import transformers  # noqa: E402
from memorylog import HostLog  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812

STEPS = 3
autocasting = torch.is_autocast_enabled


def config_of(case):
    fields = dict(case["config"])
    known = transformers.models.auto.configuration_auto.CONFIG_MAPPING
    return known[fields["model_type"]].from_dict(fields)


def model_of(case, dtype=torch.float32):
    auto = transformers.AutoModelForCausalLM
    model = auto.from_config(config_of(case), **loading(case, dtype))
    model.config.use_cache = False
    return model


def loading(case, dtype):
    """Return how a model's type and attention are asked for, which early versions do not know."""
    if VERSION < (4, 36):
        return {}
    name = "dtype" if VERSION >= (5, 0) else "torch_dtype"
    return {name: dtype, "attn_implementation": case["attention"]}


def tokens_of(case):
    return torch.zeros((case["batch"], case["sequence"]), dtype=torch.int64)


def hf_trainer(case, model=None):
    """The Trainer of transformers, with labels in its inputs."""
    model = model_of(case) if model is None else model
    if case["input_gradients"]:
        model.enable_input_require_grads()
    if case["task"] != "full":
        model = adapted(model)
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(folder, **arguments_of(case))
        transformers.Trainer(model=model, args=arguments, train_dataset=rows_of(case)).train()


def rows_of(case):
    row = torch.zeros(case["sequence"], dtype=torch.int64)
    return [{"input_ids": row, "labels": row}] * (case["batch"] * STEPS)


def arguments_of(case):
    """Return the arguments of a Trainer, as far as its version knows them."""
    found = {
        "per_device_train_batch_size": case["batch"], "max_steps": STEPS, "disable_tqdm": True,
        "report_to": "none", "save_strategy": "no", "logging_strategy": "no",
        "gradient_accumulation_steps": case["accumulation"],
    }  # fmt: skip
    if VERSION < (4, 36):
        return found | {"no_cuda": True, "report_to": []}
    return found | {
        "use_cpu": True,
        "bf16": case["precision"] == "bf16-mixed",
        "gradient_checkpointing": case["checkpointing"] == "full",
        "gradient_checkpointing_kwargs": {"use_reentrant": case["reentrant"]},
    }


def hf_trainer_43(case):
    """The Trainer of early transformers, where torch before 2.0 left gradients as zeros."""
    torch.nn.Module.zero_grad.__defaults__ = (False,)
    hf_trainer(case)


def adapted(model):
    import peft

    return peft.get_peft_model(model, peft.LoraConfig(r=8, target_modules="all-linear")).train()


def llama_factory(case):
    """LLaMA-Factory's own ``load_model`` and trainer, with rows of tokens for its data."""
    sys.modules["torchaudio"] = ModuleType("torchaudio")  # imported for sound alone
    sys.modules["torchaudio"].__spec__ = ModuleSpec("torchaudio", None)
    os.environ["DISABLE_VERSION_CHECK"] = "1"
    from llamafactory.hparams import get_train_args
    from llamafactory.model import load_model
    from llamafactory.train.sft.trainer import CustomSeq2SeqTrainer

    mixed, full = case["precision"] == "bf16-mixed", case["task"] == "full"
    with tempfile.TemporaryDirectory() as folder:
        half = mixed and not full
        model_of(case, torch.bfloat16 if half else torch.float32).save_pretrained(folder)
        arguments, _, trainer, tuning, _ = get_train_args(
            {
                "model_name_or_path": folder, "do_train": True, "use_cpu": True,
                "dataset": "none", "template": "llama3", "output_dir": f"{folder}/out",
                "finetuning_type": "full" if full else "lora",
                "per_device_train_batch_size": case["batch"], "max_steps": STEPS,
                "report_to": "none", "save_strategy": "no", "logging_strategy": "no",
                "flash_attn": "disabled", "use_reentrant_gc": case["reentrant"],
                "quantization_bit": 4 if case["task"] == "qlora" else None, "bf16": mixed,
            }
        )  # fmt: skip
        model = load_model(tokenizer(), arguments, tuning, is_trainable=True)
        own_buffers(model)
        CustomSeq2SeqTrainer(
            model=model, args=trainer, finetuning_args=tuning, processor=None, gen_kwargs={},
            train_dataset=rows_of(case), tokenizer=tokenizer(),
            data_collator=transformers.default_data_collator,
        ).train()  # fmt: skip


def axolotl(case):
    """axolotl's own loader of models and builder of trainers, with rows of tokens for its data."""
    sys.meta_path.append(Unused())
    os.environ["AXOLOTL_DO_NOT_TRACK"] = "1"
    import datasets
    from axolotl.core.builders.causal import HFCausalTrainerBuilder
    from axolotl.loaders.model import ModelLoader
    from axolotl.utils.dict import DictDefault
    from axolotl.utils.schemas.config import AxolotlInputConfig

    # It says nothing of the CPU to TrainingArguments, which look for a GPU that has bf16.
    transformers.training_args.is_torch_bf16_gpu_available = lambda: True
    qlora = case["task"] == "qlora"
    dtype = torch.bfloat16 if qlora else torch.float32
    adapters = {"adapter": case["task"], "lora_r": 8, "lora_alpha": 16, "lora_target_linear": True}
    with tempfile.TemporaryDirectory() as folder:
        model_of(case, dtype).save_pretrained(folder)
        asked = AxolotlInputConfig(
            base_model=folder, sequence_len=case["sequence"], micro_batch_size=case["batch"],
            gradient_accumulation_steps=1, max_steps=STEPS, num_epochs=1, learning_rate=1e-4,
            optimizer="adamw_torch_fused", lr_scheduler="cosine", output_dir=f"{folder}/out",
            save_strategy="no", attn_implementation=case["attention"], load_in_4bit=qlora,
            datasets=[{"path": "none", "type": "alpaca"}], bf16=case["precision"] == "bf16-mixed",
            **({} if case["task"] == "full" else adapters),
        ).model_dump(exclude_none=True)  # fmt: skip
        # What its command finds out of the machine and of the model.
        found = {
            "base_model_config": folder, "tokenizer_config": folder, "model_config_type": "llama",
            "is_llama_derived_model": True, "device": "cpu", "device_map": "cpu", "world_size": 1,
            "local_rank": 0, "batch_size": case["batch"], "eval_batch_size": case["batch"],
            "torch_dtype": dtype, "use_cpu": True,
        }  # fmt: skip
        settings = DictDefault(asked | found)
        model, _ = ModelLoader(settings, tokenizer()).load()
        own_buffers(model)
        builder = HFCausalTrainerBuilder(settings, model, tokenizer(), None)
        rows = [[0] * case["sequence"]] * (case["batch"] * STEPS)
        builder.train_dataset = datasets.Dataset.from_dict({"input_ids": rows, "labels": rows})
        trainer = builder.build(STEPS)
        trainer.data_collator = transformers.default_data_collator
        trainer.train()


class Unused(MetaPathFinder, Loader):
    """Finds libraries that axolotl imports for other runs than these."""

    names = ("triton", "evaluate", "wandb", "numba", "fastcore")

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            return ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return Named(spec.name)

    def exec_module(self, module):
        pass


class Named(ModuleType):
    """Has any name that is asked for; as a decorator it leaves a function as it is."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Named(name)

    def __call__(self, *given, **options):
        return given[0] if len(given) == 1 and callable(given[0]) else self

    def __getitem__(self, key):
        return self

    def __mro_entries__(self, bases):
        return (object,)

    __or__ = __ror__ = __getitem__


def trl_sft(case):
    """TRL's SFTTrainer as it runs on a GPU: the kernels of Triton take no memory of torch's.

    ``tokens`` are those of a tile, for a micro-batch that needs several.
    """
    import datasets
    import peft
    import trl

    as_with_triton(case["tile"] or 4096)
    qlora = case["task"] == "qlora"
    model = quantized(case, nested=False) if qlora else model_of(case)
    rows = datasets.Dataset.from_dict(
        {"input_ids": [[0] * case["sequence"]] * (case["batch"] * STEPS)}
    )
    adapters = peft.LoraConfig(r=8, target_modules="all-linear", task_type="CAUSAL_LM")
    with tempfile.TemporaryDirectory() as folder:
        arguments = trl.SFTConfig(folder, **arguments_of(case), optim="adamw_torch_fused")
        trl.SFTTrainer(
            model, arguments, train_dataset=rows, processing_class=tokenizer(),
            peft_config=None if case["task"] == "full" else adapters,
        ).train()  # fmt: skip


def trl_dpo(case):
    """TRL's DPOTrainer as it runs on a GPU, with a prompt of one token."""
    import datasets
    import peft
    import trl

    as_with_triton(case["tile"] or 4096)
    with tempfile.TemporaryDirectory() as folder:
        model_of(case).save_pretrained(folder)  # the reference is loaded from there
        model = quantized(case, nested=False) if case["task"] == "qlora" else folder
        answer = " a" * (case["sequence"] - 2)  # TRL ends it with a token of its own
        pair = {"prompt": "a", "chosen": answer, "rejected": answer}
        rows = datasets.Dataset.from_list([pair] * (case["batch"] * STEPS))
        adapters = peft.LoraConfig(r=8, target_modules="all-linear", task_type="CAUSAL_LM")
        arguments = trl.DPOConfig(
            folder, **arguments_of(case), optim="adamw_torch_fused",
            precompute_ref_log_probs=case["reference"] == "precomputed",
            model_init_kwargs=loading(case, torch.float32) if model is folder else None,
        )  # fmt: skip
        apart = case["reference"] == "model" and case["task"] != "full"
        trl.DPOTrainer(
            model, model_of(case) if apart else None, arguments, train_dataset=rows,
            processing_class=tokenizer(),
            peft_config=None if case["task"] == "full" else adapters,
        ).train()  # fmt: skip


def trl_reward(case):
    """TRL's RewardTrainer; its model is scored by one layer, which PEFT trains whole."""
    import datasets
    import peft
    import trl

    answer = " a" * (case["sequence"] - 2)
    pair = {"prompt": "a", "chosen": answer, "rejected": answer}
    rows = datasets.Dataset.from_list([pair] * (case["batch"] * STEPS))
    config = config_of(case)
    config.num_labels, config.pad_token_id = 1, 1
    auto = transformers.AutoModelForSequenceClassification
    model = auto.from_config(config, **loading(case, torch.float32))
    adapters = peft.LoraConfig(r=8, target_modules="all-linear", task_type="SEQ_CLS")
    with tempfile.TemporaryDirectory() as folder:
        arguments = trl.RewardConfig(folder, **arguments_of(case), optim="adamw_torch_fused")
        trl.RewardTrainer(
            model, arguments, train_dataset=rows, processing_class=tokenizer(),
            peft_config=None if case["task"] == "full" else adapters,
        ).train()  # fmt: skip


def trl_grpo(case):
    """TRL's GRPOTrainer as it runs on a GPU; no answer ends before its last token."""
    import datasets
    import peft
    import trl

    as_with_triton(case["tile"] or 4096)
    rollout = case["rollout"]
    with tempfile.TemporaryDirectory() as folder:
        model_of(case).save_pretrained(folder)  # the reference is loaded from there
        prompt = {"prompt": " ".join("a" * case["prompt"])}
        adapters = peft.LoraConfig(r=8, target_modules="all-linear", task_type="CAUSAL_LM")
        arguments = trl.GRPOConfig(
            folder, **arguments_of(case), optim="adamw_torch_fused",
            beta=0.04 if case["reference"] else 0.0, num_generations=rollout["generations"],
            max_completion_length=case["sequence"] - case["prompt"],
            steps_per_generation=rollout["updates"] * case["accumulation"],
            num_iterations=rollout["iterations"],
            model_init_kwargs=loading(case, torch.float32),
        )  # fmt: skip
        trainer = trl.GRPOTrainer(
            folder, lambda completions, **columns: [0.0] * len(completions), arguments,
            train_dataset=datasets.Dataset.from_list([prompt] * 64), processing_class=tokenizer(),
            peft_config=None if case["task"] == "full" else adapters,
        )  # fmt: skip
        trainer.eos_token_ids, trainer.generation_config.eos_token_id = [-1], None
        trainer.model.generation_config.eos_token_id = None
        mixin = transformers.GenerationMixin
        mixin.generate = marked("writing", mixin.generate)
        trainer._generate_and_score_completions = marked(
            "scoring", trainer._generate_and_score_completions
        )
        trainer.train()


def marked(name, function):
    """Return the function, whose calls are found in the log by a name."""

    def call(*given, **options):
        with torch.profiler.record_function(name):
            return function(*given, **options)

    return call


def trl_sft_09(case):
    """TRL's SFTTrainer before it had losses of its own."""
    import datasets
    import peft
    import trl

    qlora = case["task"] == "qlora"
    model = as_on_a_gpu(quantized(case, nested=False)) if qlora else model_of(case)
    rows = datasets.Dataset.from_dict(
        {"input_ids": [[3] * case["sequence"]] * (case["batch"] * STEPS)}
    )
    adapters = peft.LoraConfig(r=8, target_modules="all-linear", task_type="CAUSAL_LM")
    with tempfile.TemporaryDirectory() as folder:
        arguments = trl.SFTConfig(
            folder, **arguments_of(case), max_seq_length=case["sequence"],
            dataset_kwargs={"skip_prepare_dataset": True},
        )  # fmt: skip
        trl.SFTTrainer(
            model, arguments, train_dataset=rows, tokenizer=tokenizer(),
            peft_config=None if case["task"] == "full" else adapters,
        ).train()  # fmt: skip


def as_on_a_gpu(model):
    """Rename the class of 4-bit weights: TRL takes those on the CPU for FSDP's, and casts none."""
    from bitsandbytes.nn import Params4bit

    kind = type("Weights", (Params4bit,), {})
    for parameter in model.parameters():
        if isinstance(parameter, Params4bit):
            parameter.__class__ = kind
    return model


def as_with_triton(tile):
    """Let TRL's fused head take the memory that it takes on a GPU."""
    from trl.kernels import chunked_logprob
    from trl.trainer import utils

    chunked_logprob._use_triton = utils._use_triton = lambda device: True
    chunked_logprob.triton = SimpleNamespace(cdiv=lambda whole, part: -(-whole // part))
    chunked_logprob._forward_kernel = chunked_logprob._backward_kernel = NoKernel()
    chunked_logprob._addmm_fp32 = in_fp32
    chunked_logprob.TOKEN_CHUNK_SIZE = tile


class NoKernel:
    """Stands for a kernel of Triton, which works in place."""

    def __getitem__(self, grid):
        return lambda *given, **options: None


def in_fp32(total, left, right):
    """What trl's ``_addmm_fp32`` does on a GPU: it adds the product in place."""
    if left.dtype == torch.float32:
        total.addmm_(left, right)


def tokenizer():
    from tokenizers import Tokenizer, models, pre_tokenizers

    vocabulary = {"<s>": 0, "</s>": 1, "<unk>": 2, "a": 3}
    words = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, eos_token="</s>", pad_token="</s>"
    )


def accelerate_loop(case):
    """The loop of accelerate's ``examples/complete_nlp_example.py``."""
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    model = model_of(case)
    foreach = case["optimizer_implementation"] == "foreach"
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=foreach, fused=False)
    model, optimizer = accelerator.prepare(model, optimizer)
    model.train()
    for _ in range(STEPS):
        tokens = tokens_of(case)
        outputs = model(input_ids=tokens, labels=tokens)
        loss = outputs.loss
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()


def quantized(case, *, nested):
    """Return the model with weights in 4 bits, as transformers loads it."""
    if VERSION < (5, 0):  # it knows no bitsandbytes that runs on any CPU
        from transformers.quantizers.quantizer_bnb_4bit import Bnb4BitHfQuantizer

        Bnb4BitHfQuantizer.validate_environment = lambda *given, **options: None
    with tempfile.TemporaryDirectory() as folder:
        model_of(case, torch.bfloat16).save_pretrained(folder)
        model = transformers.AutoModelForCausalLM.from_pretrained(
            folder, **loading(case, torch.bfloat16), device_map="cpu",
            quantization_config=transformers.BitsAndBytesConfig(
                load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=nested,
                bnb_4bit_compute_dtype=torch.bfloat16,
            ),
        )  # fmt: skip
    model.config.use_cache = False
    own_buffers(model)
    return model


def own_buffers(model):
    """Copy weights that on the CPU lie in one buffer of the file, which lives as long as any."""
    for parameter in model.parameters():
        if parameter.dtype == torch.bfloat16:
            parameter.data = parameter.data.clone()


def peft_loop(case):
    """The guides of PEFT, with a loop of one's own."""
    import peft

    again = {"use_reentrant": False}
    if case["task"] == "qlora":
        model = quantized(case, nested=False)
        model = peft.prepare_model_for_kbit_training(model, gradient_checkpointing_kwargs=again)
    else:
        model = model_of(case)
        if case["checkpointing"] == "full":
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=again)
    model.enable_input_require_grads()
    model = adapted(model)
    optimizer = torch.optim.AdamW(
        (p for p in model.parameters() if p.requires_grad), lr=1e-4, foreach=True
    )
    for _ in range(STEPS):
        tokens = tokens_of(case)
        outputs = model(input_ids=tokens, labels=tokens)
        outputs.loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def torchvision_loop(case):
    """The loop of torchvision's ``references/classification/train.py``."""
    model = model_of(case).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(STEPS):
        tokens, target = tokens_of(case), tokens_of(case)
        output = model(input_ids=tokens).logits
        loss = F.cross_entropy(output.flatten(0, 1), target.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def nanogpt_loop(case):
    """The loop of nanoGPT's ``train.py``: the model returns scores and loss."""
    model = model_of(case).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    for _ in range(STEPS):
        tokens = tokens_of(case)
        loss, logits = model(input_ids=tokens, labels=tokens, return_dict=False)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    del logits


def plain_loop(case):
    """The step that the plain export embeds."""
    from step import Batch, StepSettings, make_optimizer, next_token_loss, train_step

    model = model_of(case).train()
    settings = StepSettings(precision="fp32")
    optimizer = make_optimizer(model, settings)
    for _ in range(STEPS):
        batch = Batch({"input_ids": tokens_of(case)}, tokens_of(case))
        train_step(model, optimizer, [batch], next_token_loss, settings, "cpu")


def diffusers_loop(case):
    """The loop of diffusers' ``train_text_to_image.py``, its latents and texts made before."""
    import diffusers
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    unet = diffusers.UNet2DConditionModel.from_config(case["config"])
    unet.set_attn_processor(diffusers.models.attention_processor.AttnProcessor())
    optimizer = torch.optim.AdamW(unet.parameters(), lr=1e-4, foreach=True)
    unet, optimizer = accelerator.prepare(unet.train(), optimizer)
    side, width = unet.config.sample_size, unet.config.cross_attention_dim
    for _ in range(STEPS):
        noise = torch.zeros(case["batch"], unet.config.in_channels, side, side)
        times = torch.zeros(case["batch"], dtype=torch.int64)
        texts = torch.zeros(case["batch"], 77, width)
        model_pred = unet(noise.clone(), times, texts, return_dict=False)[0]
        loss = F.mse_loss(model_pred.float(), noise.float(), reduction="mean")
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(unet.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()


def zeroing_loop(case):
    """A loop that sets gradients to zero, as torch before 2.0 did."""
    model = model_of(case).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    for _ in range(STEPS):
        loss_of(model, tokens_of(case)).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)


def lightning_loop(case):
    """The Trainer of Lightning."""
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = model_of(case)

        def training_step(self, batch, number):
            return loss_of(self.model, batch)

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=1e-4, foreach=True)

    rows = [torch.zeros(case["sequence"], dtype=torch.int64)] * (case["batch"] * STEPS)
    loader = torch.utils.data.DataLoader(rows, batch_size=case["batch"])
    trainer = lightning.Trainer(
        accelerator="cpu", max_steps=STEPS, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(Module(), loader)


def loss_of(model, tokens):
    logits = model(input_ids=tokens).logits
    return F.cross_entropy(logits.flatten(0, 1), tokens.flatten())


LOOPS = {
    "hf-trainer": hf_trainer,
    "hf-trainer-4.46": hf_trainer,
    "hf-trainer-4.41": hf_trainer,
    "hf-trainer-4.30": hf_trainer,
    "hf-trainer-4.3": hf_trainer_43,
    "trl-sft-0.9": trl_sft_09,
    "llama-factory": llama_factory,
    "axolotl": axolotl,
    "trl-sft": trl_sft,
    "trl-dpo": trl_dpo,
    "trl-reward": trl_reward,
    "trl-grpo": trl_grpo,
    "accelerate": accelerate_loop,
    "peft-script": peft_loop,
    "torchvision": torchvision_loop,
    "nanogpt": nanogpt_loop,
    "lightning": lightning_loop,
    "plain": plain_loop,
    "zeroing": zeroing_loop,
    "diffusers-script": diffusers_loop,
}


class Sum(torch.autograd.Function):
    """Adds two types of numbers as a GPU does it: the CPU would make a copy of one first."""

    @staticmethod
    def forward(ctx, left, right):
        ctx.types = left.dtype, right.dtype
        total = torch.empty(left.shape, dtype=torch.promote_types(*ctx.types))
        rows = (each.flatten(0, -2) for each in (left, right, total))
        for one, other, out in zip(*rows, strict=True):
            torch.add(one, other, out=out)
        return total

    @staticmethod
    def backward(ctx, grad):
        return tuple(map(grad.to, ctx.types))


def added(left, right):
    tensors = isinstance(right, torch.Tensor) and left.shape == right.shape and left.dim() > 1
    if tensors and left.dtype != right.dtype:
        return Sum.apply(left, right)
    return torch.add(left, right)


def peaks(case):
    """Return the most bytes that lived, at all and in each phase of the steps after the first."""
    torch.manual_seed(0)
    # PEFT and transformers ask whether CUDA's autocast is on.
    torch.is_autocast_enabled = lambda device="cpu": autocasting(device)
    torch.Tensor.__add__ = added
    # On a GPU torch takes foreach by itself, and on the CPU a loop.
    foreach = case["optimizer_implementation"] == "foreach"
    torch.optim.AdamW.__init__.__kwdefaults__["foreach"] = foreach
    gc.collect()
    with HostLog() as log:
        LOOPS[case["loop"]](case)
    events = log._profile.profiler.kineto_results.events()
    backward = spans(events, "autograd::engine::evaluate_function")
    update = [after(backward, *call) for call in spans(events, "Optimizer.step#")]
    begin, end = update[0][1], update[-1][1]
    # An inner call comes first: answers are written where they are then scored.
    within = {"backward": backward, "optimizer": update}
    within |= {name: found for name in ("writing", "scoring") if (found := spans(events, name))}
    highest = dict.fromkeys(("all", "forward", *within), 0)
    before = 0
    for moment, living in log.between_convolutions():
        old, before = before, living
        if moment >= backward[0][0]:  # what loads a model on the CPU is not a part of its step
            highest["all"] = max(highest["all"], living)
        if begin < moment <= end:
            phase = next((name for name, all in within.items() if inside(moment, all)), "forward")
            # A fused optimizer takes nothing: what lives is seen where it ends.
            most = max(old, living) if phase == "optimizer" else living if living > old else 0
            highest[phase] = max(highest[phase], most)
    return highest


def after(backward, begin, end):
    """Return an update without the forward and backward pass that Lightning runs within it."""
    return max([begin, *(last for _, last in backward if last < end)]), end


def spans(events, name):
    """Return when the outermost calls whose name starts so began and ended, in order."""
    found = []
    calls = ((e.start_ns(), e.end_ns()) for e in events if e.name().startswith(name))
    for begin, end in sorted(calls):
        if not found or begin > found[-1][1]:
            found.append((begin, end))
    return found


def inside(moment, spans):
    place = bisect_right(spans, (moment, float("inf"))) - 1
    return place >= 0 and moment <= spans[place][1]


if __name__ == "__main__":
    torch.backends.mkldnn.enabled = False
    torch.set_num_threads(1)
    json.dump({name: peaks(case) for name, case in json.load(sys.stdin).items()}, answers)
    answers.flush()
    os._exit(0)
