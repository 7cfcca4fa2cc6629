"""Print which models of the installed libraries are answered, and why the others are not.

``python scripts/coverage.py [LIBRARY ...]`` takes a seeded sample of the trainable classes of
transformers and of the denoisers of diffusers, and one model of each sampled family of timm, all
with their own default configuration, those of transformers and diffusers in two layers. Each goes
the way of a plan: resolved, traced once, and its parameters compared with those of the class on the
meta device. ``--sample 0`` takes all. ``--real N`` runs a step of N of transformers' answered
classes on the CPU, and compares its peak of memory. Exit status 1: a model ended in an error of
Python's, in a wrong count, or too many peaks differ.
"""

import argparse
import gzip
import inspect
import json
import multiprocessing
import random
import runpy
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from trainwright.messages import Message, UserError, render
from trainwright.plan.evaluate import Facts, resolve
from trainwright.plan.schema import Plan
from trainwright.profile import store
from trainwright.profile import trace as raw
from trainwright.profile.expand import training_events
from trainwright.profile.fit import fit
from trainwright.profile.profile import Profile

PROGRAMS = Path(store.__file__).parents[1] / "worker" / "programs"
LAYERS, LENGTH = 2, 64
"""Of transformers' models, to be quick: which way a model takes does not depend on them."""
DEPTHS = ("num_hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers",
          "decoder_layers", "num_encoder_layers", "num_decoder_layers")  # fmt: skip
DENOISER_DEPTHS = ("num_layers", "num_single_layers", "num_single_dit_layers", "num_mmdit_layers",
                   "num_visual_blocks", "num_text_blocks", "num_hidden_layers", "n_layers",
                   "num_double_stream_layers", "depth", "nlayers", "dit_depth")  # fmt: skip
"""Of diffusers', cut to as few layers."""
DENOISER_SIZES: dict[str, dict[str, Any]] = {
    "DreamLiteTransformer2DModel": {"in_channels": 320, "cross_attention_dim": 2048},
    "EasyAnimateTransformer3DModel": {"in_channels": 16, "out_channels": 16, "patch_size": 2},
    "HiDreamImageTransformer2DModel": {
        "in_channels": 16, "out_channels": 16, "patch_size": 2, "num_layers": 2,
        "num_single_layers": 2, "attention_head_dim": 128, "num_attention_heads": 20,
        "caption_channels": [4096, 4096], "text_emb_dim": 2048, "num_routed_experts": 4,
        "num_activated_experts": 2, "axes_dims_rope": [64, 32, 32], "max_resolution": [128, 128],
        "llama_layers": [0, 1, 2, 3],
    },
    "HunyuanDiT2DModel": {
        "in_channels": 4, "patch_size": 2, "sample_size": 128, "hidden_size": 1408,
    },
    "HunyuanVideoFramepackTransformer3DModel": {
        "has_clean_x_embedder": True, "has_image_proj": True,
        "image_condition_type": "latent_concat",
    },
    "LatteTransformer3DModel": {
        "in_channels": 4, "out_channels": 8, "patch_size": 2, "attention_head_dim": 72,
        "cross_attention_dim": 1152, "caption_channels": 4096, "norm_type": "ada_norm_single",
    },
}  # fmt: skip
"""What classes of diffusers cannot be built without, from their models' own ``config.json``."""
SHALLOW = tuple(
    f"worker.{id}" for id in ("config-key", "config-value", "config-values", "class-fails")
)
"""Answers for which the few layers may be to blame."""
PRECISION = "worker.precision-fails"
RAW = ("worker.trace-failed", "worker.class-untraced", "worker.out-of-memory")
"""Answers that name no cause, or ourselves."""


@dataclass(frozen=True, slots=True)
class Case:
    """A model to ask for."""

    library: str
    name: str


@dataclass(frozen=True, slots=True)
class Found:
    """What became of it."""

    case: Case
    kind: str
    """answered, wrong, refused, raw, slow, or library where the class fails by itself."""
    reason: str = ""
    line: str = ""


def classes() -> Iterator[str]:
    """Yield the classes of transformers with a head to train, as its auto classes list them."""
    from transformers.models.auto import modeling_auto

    left = ("MODEL_MAPPING_NAMES", "MODEL_FOR_BACKBONE_MAPPING_NAMES")
    for mapping, of_types in sorted(vars(modeling_auto).items()):
        if mapping.startswith("MODEL") and mapping.endswith("_NAMES") and mapping not in left:
            for names in of_types.values():
                yield from (names,) if isinstance(names, str) else names


def denoisers() -> Iterator[str]:
    """Yield the classes of diffusers that denoise."""
    import diffusers
    from diffusers.models import transformers, unets

    for module in (transformers, unets):
        yield from (name for name in dir(module) if hasattr(diffusers, name) and name[0].isupper())


def families() -> Iterator[str]:
    """Yield the first model of each family of timm."""
    import timm

    for module in timm.list_modules():
        yield from timm.list_models(module=module)[:1]


def of_transformers(name: str, folder: Path, whole: bool = False) -> tuple[dict[str, Any], int]:
    """Return how a plan names the class with its default configuration, and its parameters.

    With few layers, where the class can be built so and it need not be the ``whole``.
    """
    import transformers

    kind = getattr(transformers, name)
    for config in (*(() if whole else (shallow(kind.config_class()),)), kind.config_class()):
        fields = json.loads(config.to_json_string(use_diff=False)) | {"architectures": [name]}
        path = written(fields, folder)
        try:
            again = kind.config_class.from_json_file(path)
            count = parameters(lambda: kind._from_config(again))  # noqa: B023
        except Exception as error:  # some defaults only go together as they are
            wrong = error
        else:
            return {"hf": path}, count
    raise wrong


def shallow(config: Any) -> Any:
    """Return the configuration with few layers, one of each type, in its parts too."""
    types = getattr(config, "layer_types", None)
    kinds = list(dict.fromkeys(types)) if isinstance(types, list) else []
    layers = max(LAYERS, len(kinds))
    for key in DEPTHS:
        if isinstance(value := getattr(config, key, None), int) and value > layers:
            setattr(config, key, layers)
    for key, value in list(vars(config).items()):
        if key == "layer_types" and kinds:
            config.layer_types = (kinds + kinds[-1:])[:layers]
        elif key.endswith("layer_types") and isinstance(value, list):
            setattr(config, key, value[:layers])
        elif hasattr(value, "to_diff_dict"):
            shallow(value)
    return config


def of_diffusers(name: str, folder: Path) -> tuple[dict[str, Any], int]:
    """Return how a plan names the denoiser, and its parameters."""
    import diffusers
    import torch

    kind = getattr(diffusers, name)
    given = DENOISER_SIZES.get(name, {})
    usual = {key: each.default for key, each in inspect.signature(kind).parameters.items()} | given
    few = {key: LAYERS for key in DENOISER_DEPTHS if _counts(usual.get(key))}
    with torch.device("meta"):
        try:
            model = kind(**given | few)
        except Exception:  # some depths only go together as they are
            model = kind(**given)
    fields = dict(model.config) | {"_class_name": name}
    return {"hf": written(json.loads(json.dumps(fields, default=list)), folder)}, counted(model)


def _counts(value: Any) -> bool:
    """Return whether a value is a number of layers that can be cut."""
    return type(value) is int and value > LAYERS


def of_timm(name: str, _folder: Path) -> tuple[dict[str, Any], int]:
    """Return how a plan names the model, and its parameters, with a classifier as it is trained."""
    import timm

    usual = timm.get_pretrained_cfg(name)
    options = {"num_classes": 1000} if usual is not None and not usual.num_classes else {}
    return {"timm": name}, parameters(lambda: timm.create_model(name, **options))


LIBRARIES: dict[str, tuple[Callable[[], Iterator[str]], Callable[[str, Path], Any]]] = {
    "transformers": (classes, of_transformers),
    "diffusers": (denoisers, of_diffusers),
    "timm": (families, of_timm),
}


def written(fields: dict[str, Any], folder: Path) -> str:
    """Write a ``config.json``; return its path."""
    path = folder / "config.json"
    path.write_text(json.dumps(fields), encoding="utf-8")
    return str(path)


def parameters(make: Callable[[], Any]) -> int:
    """Return the parameters of what is made on the meta device."""
    import torch

    with torch.device("meta"):
        return counted(make())


def counted(model: Any) -> int:
    """Return the parameters of a model, shared ones once."""
    return sum(weight.numel() for weight in model.parameters())


def look(case: Case, limit_s: int) -> Found:
    """Return what the product says of a model, in a process of its own."""
    signal.signal(signal.SIGALRM, _stop)
    signal.alarm(limit_s)
    try:
        with tempfile.TemporaryDirectory() as folder:
            try:
                model, count = LIBRARIES[case.library][1](case.name, Path(folder))
            except Exception as error:
                return Found(case, "library", type(error).__name__, first_line(error))
            found = asked(case, model, count)
            if found.reason in SHALLOW and case.library == "transformers":
                found = asked(case, *of_transformers(case.name, Path(folder), whole=True))
            return found
    except TooSlow:
        return Found(case, "slow", f"over {limit_s} s")
    finally:
        signal.alarm(0)


class TooSlow(BaseException):
    """Time is up; no ``except Exception`` takes it for a fault of the model."""


def _stop(*_args: Any) -> None:
    raise TooSlow


def asked(case: Case, model: dict[str, Any], count: int) -> Found:
    """Return the answer to a plan of the model, compared with its parameters."""
    try:
        try:
            profile = traced(model)
        except UserError as error:
            if error.message.id != PRECISION:
                raise
            profile = traced(model, "fp32")  # as the answer says
    except UserError as error:
        id, line = error.message.id, render(error.message, "en")
        return Found(case, "raw" if id in RAW else "refused", id, line)
    except Exception as error:
        return Found(case, "raw", type(error).__name__, first_line(error))
    if named := profile.model.get("named_class"):
        return Found(case, "refused", "another class", f"{named}: {profile.model['traced_class']}")
    if profile.model["parameters"] != count:
        line = f"{profile.model['parameters']:,} parameters and not {count:,}"
        return Found(case, "wrong", "parameters", line)
    return Found(case, "answered")


def traced(model: dict[str, Any], precision: str = "bf16-mixed") -> Profile:
    """Return one traced step of a model on a GPU without a limit that matters.

    Raises:
        UserError: it is refused.
    """
    fields: dict[str, Any] = {
        "model": model,
        "workload": {"task": "full", "effective_batch": 2},
        "machine": {"gpus": [{"id": "rtx-4090"}]},
        "settings": {"precision": precision, "micro_batch": 2},
    }
    found = resolve(Plan.model_validate(fields))
    if isinstance(found, Facts):
        return found.profile
    if (found.inputs.sequence_length or 0) > LENGTH:
        fields["workload"]["inputs"] = {"sequence_length": LENGTH}
        again = resolve(Plan.model_validate(fields))
        assert not isinstance(again, Facts), "nothing was kept"
        found = again
    profile = store.trace(found.spec, at=found.point, keep=False, run=_here)
    found.answered(profile)
    return profile


def _here(_program: str, document: dict[str, Any], **_options: Any) -> None:
    """Trace in this process, with the child's own words for what goes wrong."""
    from trace import _described  # the tracer's program, which has the standard library's name

    import tracing

    for question in store.questions(document):
        try:
            result = tracing.trace(question, lambda _progress, _message: None)
        except Exception as error:
            said = _described(error)
            raise UserError(Message.of(said["id"], **said["values"])) from error
        with gzip.open(question["result_file"], "wt", encoding="utf-8", compresslevel=1) as file:
            json.dump(result, file)


TRUTH = Path(__file__).parents[1] / "tests" / "unit" / "worker" / "truth_runs.py"
"""Runs a step for real, or traces it."""
LARGEST = 40_000_000
"""Parameters of a class that is run: some 650 MB with gradients and Adam's moments, in fp32."""
TOO_LARGE = "too large"
NEAR, ALLOWED = 0.02, 0.05
"""Error of a peak that counts as right, and the share of the sample that may have a larger one."""


def peak(case: Case, of: Callable[[dict[str, Any]], int], limit_s: int) -> int | str:
    """Return the peak of two steps of a class in bytes, real or traced, or why there is none."""
    signal.signal(signal.SIGALRM, _stop)
    signal.alarm(limit_s)
    try:
        with tempfile.TemporaryDirectory() as folder:
            model, count = of_transformers(case.name, Path(folder))
            if count > LARGEST:
                return TOO_LARGE
            path = Path(model["hf"])
            path.write_text(json.dumps(undropped(json.loads(path.read_text()))), encoding="utf-8")
            return of({
                "model": model, "task": "full", "precision": "fp32", "kernel": "eager",
                "channels_last": False, "checkpointing": "none", "quantization": "none",
                "lora": [8, []], "image_size": 0, "sequence": True, "points": [(2, LENGTH)],
                "optimizers": ["adamw"],
            })  # fmt: skip
    except TooSlow:
        return f"over {limit_s} s"
    except Exception as error:
        return f"{type(error).__name__}: {first_line(error)}"
    finally:
        signal.alarm(0)


def undropped(fields: Any) -> Any:
    """Return a configuration without dropout and masks, whose kernels on the CPU are others."""
    if not isinstance(fields, dict):
        return fields
    chances = ("drop", "mask_time_prob", "mask_feature_prob")
    return {
        key: 0.0
        if isinstance(value, float) and any(word in key for word in chances)
        else undropped(value)
        for key, value in fields.items()
    }


def _real(spec: dict[str, Any]) -> int:
    import torch

    torch.backends.mkldnn.enabled = False
    torch.set_num_threads(1)
    sys.argv = [str(TRUTH), "real", str(PROGRAMS)]
    return max(runpy.run_path(str(TRUTH))["real"](spec).values())


def _traced(spec: dict[str, Any]) -> int:
    import numpy as np
    import tracing

    profile = fit(raw.parse(tracing.trace(spec, lambda _progress, _message: None)))
    setup, *steps = training_events(
        profile, *spec["points"][0], accumulation=2, checkpointing="none", optimizer="adamw"
    )
    parts = (setup, *steps)
    return int(np.cumsum([n for p in parts for n in np.sign(p.storage) * p.size]).max())


def compared(cases: list[Case], count: int, limit_s: int, processes: int) -> bool:
    """Print how near the peaks of so many classes are to a real step; return whether enough are."""
    errors: list[float] = []
    context = multiprocessing.get_context("fork")
    with context.Pool(processes, maxtasksperchild=1) as pool:
        for case in cases:
            both = pool.starmap(peak, [(case, of, limit_s) for of in (_real, _traced)], 1)
            if wrong := [each for each in both if isinstance(each, str)]:
                if wrong[0] != TOO_LARGE:
                    print(f"      {case.name}: not run: {wrong[0]}", flush=True)
                continue
            errors.append(both[1] / both[0] - 1)
            if abs(errors[-1]) > NEAR:
                print(f"      {case.name}: {errors[-1]:+.2%}", flush=True)
            if len(errors) == count:
                break
    near = sum(abs(error) <= NEAR for error in errors)
    print(f"  peak within {NEAR:.0%} of that of a real step on the CPU: {near} of {len(errors)}")
    return len(errors) - near <= ALLOWED * len(errors)


def first_line(error: Exception) -> str:
    """Return the first line of what an error says."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:160]


def looked(cases: list[Case], limit_s: int, processes: int, all_s: float) -> Iterator[Found]:
    """Yield what becomes of the cases, until the time for all of them is over."""
    end = time.monotonic() + all_s
    context = multiprocessing.get_context("fork")
    with context.Pool(processes, maxtasksperchild=1) as pool:
        for each in pool.imap_unordered(partial(look, limit_s=limit_s), cases):
            yield each
            if time.monotonic() > end:
                return


def report(library: str, of: int, found: list[Found], *, every: bool) -> bool:
    """Print what became of a library's models; return whether nothing was raw or wrong."""
    runs = [each for each in found if each.kind != "library"]
    answered = sum(each.kind == "answered" for each in runs)
    share = answered / max(len(runs), 1)
    print(f"\n{library} {version(library)}: {len(found)} of {of} models")
    print(f"  answered, with exact parameters: {answered} of {len(runs)} that run ({share:.0%})")
    reasons = Counter((each.kind, each.reason) for each in found if each.kind != "answered")
    for (kind, reason), times in reasons.most_common():
        those = [each for each in found if (each.kind, each.reason) == (kind, reason)]
        print(f"  {kind}, {reason}: {times}")
        for each in those if every or kind in ("raw", "wrong", "slow") else those[:1]:
            print(f"      {each.case.name}: {each.line}")
    return not any(each.kind in ("raw", "wrong") for each in found)


def main() -> int:
    """Look at what is asked for; print the shares and the reasons."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", nargs="*", help="of " + ", ".join(LIBRARIES))
    parser.add_argument("--sample", type=int, default=60, help="models of each library; 0: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--real", type=int, default=0, help="run a step of so many")
    parser.add_argument("--only", default="", help="models with this in their name")
    parser.add_argument("--limit", type=int, default=120, help="seconds a model")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="for each library")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--every", action="store_true", help="print the reason of every model")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    sys.path.insert(0, str(PROGRAMS))
    import tracing  # noqa: F401  # once for all forks

    good = True
    for library in options.library or LIBRARIES:
        try:
            version(library)
        except PackageNotFoundError:
            print(f"\n{library} is not installed")
            continue
        names = sorted({name for name in LIBRARIES[library][0]() if options.only in name})
        count = min(options.sample or len(names), len(names))
        chosen = random.Random(options.seed).sample(names, count)
        cases = [Case(library, name) for name in chosen]
        found = list(looked(cases, options.limit, options.processes, 60 * options.minutes))
        good = report(library, len(names), found, every=options.every) and good
        if options.real and library == "transformers":
            those = sorted((e.case for e in found if e.kind == "answered"), key=lambda c: c.name)
            random.Random(options.seed).shuffle(those)
            good = compared(those, options.real, options.limit, options.processes) and good
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
