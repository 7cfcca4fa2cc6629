"""From paths and command lines to sources: parsed, and of a kind."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os.path import isdir
from pathlib import Path
from typing import Any

from trainwright import reading, saving
from trainwright.messages import Message, UserError
from trainwright.quoting import one_line
from trainwright.review import commands, containers, modelfile, notebook, python_script
from trainwright.review.kinds import KINDS, OF_PLANS, Kind, declared
from trainwright.review.kinds.deepspeed import SHIPPED
from trainwright.review.spans import Span, bare, json_spans, toml_spans
from trainwright.yamltext import MAX_BYTES, MAX_DEPTH, Document, Place, parse

PICKLED = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt")
SHELLS = (".sh", ".bash", ".slurm", ".sbatch", ".cmd", ".ps1", ".bat")
OF_A_RUN = (".json", ".yaml", ".yml", ".toml", *SHELLS)
OF_A_FOLDER = ("config.json", "generation_config.json", "adapter_config.json")
_LEAST = 0.3
"""Share of the first-level keys that a kind must know of a file with one mark; assumed."""
MOST_FILES = 32
"""Files of one run, with those that they name; assumed."""


@dataclass(frozen=True, slots=True)
class Source:
    """What one file, or one part of it, says."""

    name: str
    """What errors call it."""
    path: Path | None
    """None for a command line."""
    kind: Kind
    format: str
    """json, yaml, toml, or one that is not changed in place: words, python, modelfile."""
    text: str
    document: Document
    computed: tuple[tuple[str, int], ...] = ()
    """Keys of a script whose value is not written there, with their lines."""
    version: str = ""
    """Of the tool, where the source names it."""

    @property
    def tool(self) -> str:
        """What people call the tool, with its version where that is known."""
        return f"{self.kind.tool} {self.version}".rstrip()


@dataclass(frozen=True, slots=True)
class Run:
    """The sources of one run, and the files that they name and that are not here."""

    sources: tuple[Source, ...]
    absent: tuple[Message, ...]


def sources(arguments: Sequence[str]) -> Run:
    """Return what the files say, with those that they name themselves.

    Each argument is a file, a folder of a model or of a run, or a command line in one word.

    Raises:
        UserError: a file cannot be read, is a pickle, or is of no kind that is known.
    """
    found: list[Source] = []
    absent: list[Message] = []
    waiting = [*arguments]
    done: set[str] = set()
    while waiting:
        argument = waiting.pop(0)
        if argument in done:
            continue
        if len(done) >= MOST_FILES:
            raise UserError.of("review.too-many-files", limit=MOST_FILES)
        done.add(argument)
        for source in _read(argument):
            found.append(source)
            absent += _left_out(source)
            for named, given in _named(source):
                if named.is_file():
                    waiting.append(str(named))
                    continue
                found += (shipped := _shipped(given))
                id = "review.shipped-file" if shipped else "review.absent-file"
                absent.append(Message.of(id, file=source.name, path=one_line(given, 100)))
    # What a command line says holds over a file, and an export's plan.json over its launcher's.
    found.sort(key=lambda one: (one.kind.name != "exported", one.format != "words"))
    return Run(tuple(found), tuple(absent))


def _shipped(given: str) -> list[Source]:
    """Return what a tool brings under this name; nothing where it is a file of somebody's own."""
    for path, data in SHIPPED.items():
        if given.removeprefix("./").endswith(path):
            text = json.dumps(data)
            return [Source(path, None, KINDS["deepspeed"], "shipped", text, Document(data, {}))]
    return []


def _left_out(source: Source) -> Iterator[Message]:
    """Yield what a source holds or names, and no other file of the run does."""
    config = source.document.data.get("config")
    if source.kind.name == "launch" and commands.is_shipped(str(config)):
        yield Message.of("review.absent-config", file=source.name, path=one_line(config, 100))
    if source.kind.name == "torchtitan" and "model" in source.document.data:
        names = python_script.runs(source.text) if source.format == "python" else ()
        if names[1:]:
            values = {"file": source.name, "first": names[0], "others": [*names[1:]]}
            yield Message.of("review.other-configs", **values)


def _read(argument: str) -> Iterator[Source]:
    path = Path(argument)
    if commands.is_command(argument):
        yield from _of_words(commands.parsed(argument), one_line(argument, 60), None, argument)
        return
    if isdir(path):
        yield from _of_folder(path)
        return
    if path.suffix.lower() in PICKLED:
        raise UserError.of("review.pickle", file=one_line(argument, 300))
    name = reading.STDIN if argument == "-" else one_line(argument, 300)
    text = reading.text(argument, MAX_BYTES, name, or_stdin=True)
    yield from _parsed(text, name, None if argument == "-" else path)


def _of_folder(path: Path) -> Iterator[Source]:
    """Yield what a folder's own files say: those of a model, of a run, or else its scripts.

    Files of no known kind are passed over.
    """
    try:
        inside = sorted(one for one in path.iterdir() if one.is_file() and _sized(one))
    except OSError as error:
        name, reason = one_line(str(path), 300), saving.reason(error)
        raise UserError.of("reading.unreadable", file=name, reason=reason) from None
    of_model = [path / name for name in OF_A_FOLDER if path / name in inside]
    of_run = [one for one in inside if one.suffix.lower() in OF_A_RUN or _is_built(one)]
    scripts = [one for one in inside if one.suffix.lower() in (".py", ".ipynb")]
    for group in (of_model, of_run, scripts):
        if found := [source for one in group[:MOST_FILES] for source in _if_known(one)]:
            yield from found
            return
    raise UserError.of("review.empty-folder", file=one_line(str(path), 300))


def _sized(path: Path) -> bool:
    return path.stat().st_size <= MAX_BYTES


def _is_built(path: Path) -> bool:
    return _is_modelfile(path) or "dockerfile" in path.name.lower()


def _is_modelfile(path: Path) -> bool:
    return "modelfile" in path.name.lower()


def _if_known(path: Path) -> tuple[Source, ...]:
    try:
        return tuple(_read(str(path)))
    except UserError as error:
        if error.message.id in ("review.unknown-kind", "review.no-calls", "review.trains-nothing"):
            return ()
        raise


def _parsed(text: str, name: str, path: Path | None) -> Iterator[Source]:
    format = _format(text, path)
    match format:
        case "python":
            yield from _of_python(text, name, path)
        case "words":
            yield from _of_words(commands.parsed(text), name, path, text)
        case "dockerfile":
            yield from _of_words(commands.parsed(containers.of_image(text)), name, path, text)
        case "modelfile":
            document = modelfile.parsed(text, name)
            yield Source(name, path, KINDS["modelfile"], format, text, document)
        case _:
            document = _document(text, name, format)
            if not isinstance(document.data, dict):
                raise UserError.of("review.unknown-kind", file=name)
            if format == "yaml":
                _interpolated(document.data)
            if containers.describes(document):
                found = [
                    replace(command, line=line)
                    for words, line in containers.started(document)
                    for command in commands.parsed(words)
                ]
                yield from _of_words(found, name, path, text)
                return
            if (script := containers.job(document)) is not None:
                found = [replace(one, line=1) for one in commands.parsed(script)]
                yield from _of_words(found, name, path, text)
                return
            kind = kind_of(document.data, name)
            if format == "json" and kind.name != "deepspeed":  # the others refuse comments
                with _parsing(name, format):
                    json.loads(text)
            yield Source(name, path, kind, format, text, document)


def _of_python(text: str, name: str, path: Path | None) -> Iterator[Source]:
    """Yield the calls of a script, or of a notebook's cells."""
    cells = notebook.code(text) if text.lstrip().startswith("{") else None
    script, places = (text, None) if cells is None else cells
    for kind, document, computed in python_script.calls(script, name):
        if places is not None:
            lines = {key: places[line - 1] for key, line in document.lines.items()}
            document = replace(document, lines=lines)
            computed = tuple((key, places[line - 1]) for key, line in computed)
        yield Source(name, path, KINDS[kind], "python", text, document, computed)


def _of_words(
    found: Sequence[commands.Command], name: str, path: Path | None, text: str
) -> Iterator[Source]:
    if not found:
        raise UserError.of("review.unknown-kind", file=name)
    for command in found:
        lines: dict[Place, int] = {(key,): command.line for key in command.options}
        document = Document(command.options, lines)
        kind, version = KINDS[command.kind], command.version
        yield Source(name, path, kind, "words", text, document, version=version)


def _format(text: str, path: Path | None) -> str:
    suffix = path.suffix.lower() if path is not None else ""
    if suffix in (".json", ".toml", ".yaml", ".yml", ".py", ".ipynb"):
        formats = {".json": "json", ".toml": "toml", ".py": "python", ".ipynb": "python"}
        return formats.get(suffix, "yaml")
    if suffix in SHELLS:
        return "words"
    if containers.builds(text):
        return "dockerfile"
    if (path is not None and _is_modelfile(path)) or modelfile.looks_like(text):
        return "modelfile"
    if text.lstrip().startswith("{"):
        return "json"
    return "words" if commands.parsed(text) else "yaml"


def _document(text: str, name: str, format: str) -> Document:
    if format == "yaml":
        return parse(text, name, foreign=True)
    with _parsing(name, format):
        if format == "toml":
            return Document(tomllib.loads(text), _lines(text, toml_spans(text)))
        return Document(json.loads(bare(text)), _lines(text, json_spans(text)))


@contextmanager
def _parsing(name: str, format: str) -> Iterator[None]:
    """Say in one line where a file is not of its format."""
    try:
        yield
    except RecursionError:
        raise UserError.of("yaml.too-deep", where=name, limit=MAX_DEPTH) from None
    except ValueError as error:
        problem = one_line(str(error), 200)
        raise UserError.of(
            "review.not-parsed", file=name, format=format.upper(), problem=problem
        ) from None


def _lines(text: str, spans: Mapping[Place, Span]) -> dict[Place, int]:
    """Return the line of each value."""
    lines, line, last = {}, 1, 0
    for start, place in sorted((span[0], place) for place, span in spans.items()):
        line += text.count("\n", last, start)
        last = start
        lines[place] = line
    return lines


_INTERPOLATED = re.compile(r"\$\{([\w.]+)\}")
_HOPS = 4
"""Values that stand for values that stand for others, that are followed; assumed."""


def _interpolated(data: dict[str, Any]) -> None:
    """Put what OmegaConf's ``${model.name}`` names in its place, where the file says it."""
    waiting: list[Any] = [data]
    seen: set[int] = set()
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        for key, value in part.items() if isinstance(part, dict) else enumerate(part):
            if isinstance(value, (dict, list)):
                waiting.append(value)
            elif isinstance(value, str) and value.startswith("${"):
                part[key] = _followed(data, value)


def _followed(data: dict[str, Any], value: Any) -> Any:
    """Return the plain value that a reference leads to; itself where there is none."""
    found = value
    for _hop in range(_HOPS):
        use = _INTERPOLATED.fullmatch(found) if isinstance(found, str) else None
        if use is None:
            return value if isinstance(found, (dict, list)) else found
        found = data
        for name in use[1].split("."):
            found = found.get(name) if isinstance(found, dict) else None
        if found is None:
            return value
    return value


_OF_OTHER_RECIPES = frozenset({"tasks", "prompt", "max_new_tokens", "quantizer"})
"""Keys of torchtune's recipes that evaluate, generate and quantize."""


def kind_of(data: Mapping[str, Any], name: str) -> Kind:
    """Return the kind whose keys the data have most of.

    Raises:
        UserError: there is none, or nothing is trained in it.
    """
    keys = {".".join(map(str, place)) for place in _places(data)}
    if any(str(part.get("_component_")).startswith("torchtune.") for part in _sections(data)):
        if "optimizer" not in data and data.keys() & _OF_OTHER_RECIPES:
            raise UserError.of("review.trains-nothing", file=name, tool="torchtune")
        return KINDS["torchtune"]
    if (named := _by_its_sections(data, keys, name)) is not None:
        return KINDS[named]
    best, most = None, 0.0
    for kind in KINDS.values():
        marks = len(keys & kind.marks)
        if not marks:
            continue
        known = set(kind.keys) | set(kind.moved)
        if kind.listed is not None:
            known |= declared(kind.listed).keys
        # Of two kinds that know equally many, the one that has fewer others is meant.
        score = len(keys & known) - len(known) / 10_000
        top = {key.partition(".")[0] for key in known}
        sure = marks > 1 or (kind.tool == "config.json" and Path(name).name == kind.tool)
        if score > most and (sure or len(data.keys() & top) > _LEAST * len(data)):
            best, most = kind, score
    if best is None and isinstance(data.get("model_type"), str):
        return KINDS["model-config"]
    if best is None:
        raise UserError.of("review.unknown-kind", file=name)
    if best.name == "peft" and str(data.get("peft_type", OF_PLANS[0])).upper() not in OF_PLANS:
        return KINDS["peft-other"]
    return best


_IDLE = frozenset({"infer_backend", "export_dir", "export_quantization_bit", "do_predict"})
"""Keys of LLaMA-Factory's files that chat, export and predict."""
_OTHERS: Mapping[str, tuple[frozenset[str], ...]] = {
    "NeMo-RL": (frozenset({"policy.model_name", "cluster"}),),
    "GPT-NeoX": (frozenset({"pipe_parallel_size"}), frozenset({"pipe-parallel-size"})),
    "MLX": (frozenset({"lora_parameters"}), frozenset({"steps_per_eval", "iters"})),
    "oumi": (
        *(frozenset({"training.trainer_type"}), frozenset({"data.train", "training"})),
        *(frozenset({"model.model_name", name}) for name in ("engine", "generation", "tasks")),
    ),
    "SkyRL": (frozenset({"trainer.policy", "generator"}),),
    "SimpleTuner": (
        frozenset({"--model_family"}),
        frozenset({"model_family", "data_backend_config"}),
    ),
    "Nanotron": (frozenset({"tokens.micro_batch_size", "parallelism.dp"}),),
    "AutoTrain": (frozenset({"task", "base_model", "project_name"}),),
    "Ludwig": (frozenset({"input_features", "output_features"}),),
}
"""Tool whose files are not read -> keys of which all of one group are there."""


def _by_its_sections(data: Mapping[str, Any], places: Set[str], name: str) -> str | None:
    """Return the kind that a file's sections tell apart from those with keys of the same names.

    Raises:
        UserError: it trains nothing, or is of a tool whose files are not read.
    """
    keys = data.keys()
    if "actor_rollout_ref" in keys or {"data", "optim", "engine", "trainer"} <= keys:
        return "verl"
    if {"trainer", "exp_manager"} <= keys:
        return "nemo"
    if "model" in keys and keys & {"model_class", "train_dataset", "dist_config"}:
        return "llamafactory-v1"
    peft = data.get("peft_config")
    exports = isinstance(peft, dict) and "export_dir" in peft
    if exports or (not data.get("do_train") and (keys & _IDLE or _only_talks(data))):
        raise UserError.of("review.trains-nothing", file=name, tool="LLaMA-Factory")
    for tool, groups in _OTHERS.items():
        if any(group <= places for group in groups):
            raise UserError.of("review.other-tool", file=name, tool=tool)
    return None


def _only_talks(data: Mapping[str, Any]) -> bool:
    """Return whether a file of LLaMA-Factory holds a model and a template, and no training."""
    trains = ("output_dir", "dataset", "stage", "learning_rate", "cutoff_len")
    return {"model_name_or_path", "template"} <= data.keys() and not data.keys() & {*trains}


def _sections(data: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    return (part for part in data.values() if isinstance(part, dict))


def _places(data: Mapping[str, Any], above: Place = ()) -> Iterator[Place]:
    for key, value in data.items():
        yield (*above, key)
        if isinstance(value, dict) and len(above) < 2:
            yield from _places(value, (*above, key))


_NAMED = (".json", ".yaml", ".yml", ".toml", ".conf", ".py")


def _named(source: Source) -> Iterator[tuple[Path, str]]:
    """Yield the files of the same run that a source names, as paths and as written."""
    data = source.document.data
    folder = source.path.parent if source.path is not None else Path()
    inner = data.get("deepspeed_config") if isinstance(data.get("deepspeed_config"), dict) else {}
    names = (
        *("deepspeed", "config_file", "job.config_file", "config", "deepspeed_config"),
        "deepspeed_config_file",
    )
    given = [
        *(data.get(key) for key in names),
        (inner or {}).get("deepspeed_config_file"),
        (shared if isinstance(shared := data.get("dist_config"), dict) else {}).get("config_file"),
    ]
    if source.kind.name == "training-arguments" or source.format == "words":
        given.append(data.get("fsdp_config"))
    for text in given:
        if isinstance(text, str) and text.endswith(_NAMED):
            yield folder / Path(text), text
