"""Targets ``vllm``, ``sglang`` and ``ollama``: the command, or the file, that serves a plan."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from trainwright.export import configs
from trainwright.export.comments import comment
from trainwright.export.header import Reasons
from trainwright.export.write import Files
from trainwright.messages import Language, Message, UserError, render
from trainwright.plan.report import Report
from trainwright.plan.schema import Plan
from trainwright.plan.serving import SHARE_SMALL
from trainwright.plan.serving_gpus import copies_on
from trainwright.profile.presets import find
from trainwright.quoting import one_line, shell_word
from trainwright.workload import FullSettings

DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "tf32": "float32"}
CACHES: Mapping[str, Mapping[str, str]] = {
    "vllm": {"fp8": "fp8", "int8": "int8"},
    "sglang": {"fp8": "fp8_e4m3"},
}
"""The engines' own words for a cache: of vLLM 0.33 and SGLang 0.5.23, which knows no int8."""
WEIGHTS: Mapping[str, Mapping[str, str]] = {
    "vllm": {"fp8": "fp8", "nf4": "bitsandbytes"},
    "sglang": {"fp8": "fp8"},
}
"""Weights that the engine makes itself from whole ones; others are a checkpoint of their own."""


@dataclass(frozen=True, slots=True)
class Server:
    """A target that serves."""

    engine: str
    made_for: Mapping[str, str]
    name: str
    write: Callable[[Plan, FullSettings], str]

    def files(
        self, plan: Plan, settings: FullSettings, reasons: Reasons, language: Language
    ) -> Files:
        """Return the one file.

        Raises:
            UserError: the plan trains, or its model has no published name.
        """
        if plan.workload.trains:
            raise UserError.of("export.only-inference", target=self.engine)
        versions = [f"{library} {version}" for library, version in self.made_for.items()]
        lines = [(0, render(Message.of("export.header.made-for", versions=versions), language))]
        lines += [(2, f"- {render(one, language)}") for one in self.not_expressible(plan, settings)]
        if "memory_share" in reasons:
            lines.append((0, render(reasons["memory_share"], language)))
        return {self.name: comment(lines) + self.write(plan, settings)}

    def not_expressible(self, plan: Plan, settings: FullSettings) -> tuple[Message, ...]:
        """Return what the file leaves out, one message each."""
        found = []
        if settings.engine != self.engine:
            values = {"value": settings.engine, "instead": self.engine}
            found.append(Message.of("export.lost.replaced", setting="engine", **values))
        published = find(plan.model.preset).packed if plan.model.preset is not None else None
        known = {"none", published, *WEIGHTS.get(self.engine, {})}
        if self.engine != "ollama" and settings.quantization not in known:
            found.append(Message.of("export.lost.checkpoint", value=settings.quantization,
                                    setting="quantization"))  # fmt: skip
        return tuple(found)


def refusal(report: Report) -> Reasons:
    """Return why the engine does not start with its share of the memory; empty where it does."""
    found = next((note for note in report.notes if note.id == SHARE_SMALL), None)
    return {} if found is None else {"memory_share": found}


def _context(plan: Plan) -> int:
    inputs = plan.workload.inputs
    return (inputs.prompt_tokens or 512) + (inputs.new_tokens or 128)


def _command(words: list[str], options: Mapping[str, object]) -> str:
    lines = [" ".join(map(shell_word, words))]
    lines += [f"  --{key} {shell_word(str(value))}" for key, value in options.items()]
    return " \\\n".join(lines) + "\n"


def _shared(plan: Plan, settings: FullSettings, engine: str) -> dict[str, object]:
    found: dict[str, object] = {}
    if settings.precision in DTYPES:
        found["dtype"] = DTYPES[settings.precision]
    if (weights := WEIGHTS[engine].get(settings.quantization)) is not None:
        found["quantization"] = weights
    if (cache := CACHES[engine].get(settings.kv_cache)) is not None:
        found["kv-cache-dtype"] = cache
    return found


def _requests(plan: Plan, settings: FullSettings, most: str) -> dict[str, object]:
    """Return how many requests run at once on each copy, how many there are, and on what."""
    copies = copies_on(settings, plan.machine)
    found: dict[str, object] = {most: max(1, -(-settings.micro_batch // copies))}
    if settings.tensor_degree is not None:
        found["tensor-parallel-size"] = settings.tensor_degree
    return found if copies == 1 else found | {"data-parallel-size": copies}


def _vllm(plan: Plan, settings: FullSettings) -> str:
    options: dict[str, object] = {"max-model-len": _context(plan)}
    options |= _requests(plan, settings, "max-num-seqs")
    if settings.memory_share is not None:
        options["gpu-memory-utilization"] = settings.memory_share
    options |= _shared(plan, settings, "vllm")
    return _command(["vllm", "serve", configs.model_name(plan)], options)


def _sglang(plan: Plan, settings: FullSettings) -> str:
    options: dict[str, object] = {"model-path": configs.model_name(plan)}
    options["context-length"] = _context(plan)
    options |= _requests(plan, settings, "max-running-requests")
    if settings.memory_share is not None:
        options["mem-fraction-static"] = settings.memory_share
    options |= _shared(plan, settings, "sglang")
    return _command(["python", "-m", "sglang.launch_server"], options)


def _ollama(plan: Plan, settings: FullSettings) -> str:
    source = plan.model.preset or configs.model_name(plan)
    quantization = "" if settings.quantization == "none" else f"-{settings.quantization}"
    lines = [
        f"FROM ./{one_line(source.rpartition('/')[2], None)}{quantization}.gguf",
        f"PARAMETER num_ctx {_context(plan)}",
    ]
    if plan.workload.inputs.new_tokens:
        lines.append(f"PARAMETER num_predict {plan.workload.inputs.new_tokens}")
    return "\n".join(lines) + "\n"


VLLM = Server("vllm", {"vllm": ">=0.10"}, "serve.sh", _vllm)
SGLANG = Server("sglang", {"sglang": ">=0.5"}, "serve.sh", _sglang)
OLLAMA = Server("ollama", {"ollama": ">=0.6"}, "Modelfile", _ollama)
