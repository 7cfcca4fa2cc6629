"""The class of transformers that a ``config.json`` names; never another without a word."""

import inspect
from typing import Any

import speech
from refusal import Refusal

OF_IMAGES = (
    "ForImageClassification", "ForSemanticSegmentation", "ForMaskedImageModeling",
    "ForVideoClassification", "ForDepthEstimation", "ForObjectDetection",
)  # fmt: skip
"""Ends of the names of classes that are fed images or videos alone."""
OF_SOUNDS = (
    "ForCTC", "ForSequenceClassification", "ForAudioClassification", "ForXVector",
    "ForAudioFrameClassification",
)  # fmt: skip
"""Ends of the names of classes that are fed waveforms or their spectra alone."""
OF_TEXT = ("ForMultipleChoice", "ForNextSentencePrediction", "ForQuestionAnsweringSimple")
"""Ends of the names of classes that are fed tokens, and that no ``AutoModel`` is asked for."""
OWN = "ForPreTraining"
"""End of the names of classes whose loss is the sum of several, which they compute themselves."""
_AUTO = {
    "ForCausalLM": "AutoModelForCausalLM",
    "LMHeadModel": "AutoModelForCausalLM",
    "ForMaskedLM": "AutoModelForMaskedLM",
    "ForPreTraining": "AutoModelForMaskedLM",
    "ForSequenceClassification": "AutoModelForSequenceClassification",
    "ForTokenClassification": "AutoModelForTokenClassification",
    "ForQuestionAnswering": "AutoModelForQuestionAnswering",
    "ForImageClassification": "AutoModelForImageClassification",
    "ForSemanticSegmentation": "AutoModelForSemanticSegmentation",
    "WithLMHeadModel": "AutoModelForSeq2SeqLM",
    "ForConditionalGeneration": "AutoModelForSeq2SeqLM",
}
"""End of a class's name -> where the library keeps its kin, for names that it does not have."""
_SCORES = ("score", "classifier")
"""PEFT 0.21, ``utils/constants.py``, SEQ_CLS_HEAD_NAMES."""
PIXELS = ("pixel_values", "pixel_values_videos")
SOUNDS = ("input_values", "input_features")
"""Main inputs of classes that see, and of those that hear."""
_EMBEDS = "Model"
"""End of the names of classes without a head, which are trained to embed text."""
_GIVEN = {"decoder_input_ids", "bool_masked_pos", "self"}
"""Parameters of forward that a batch may have beside the main input."""
_SEEN = ("pixel_values", "input_features", "input_values", "spatial_shapes")
"""Inputs of a class that embeds texts and what belongs to them: CLIP's, CLAP's."""


def find(transformers: Any, config: Any) -> Any:
    """Return the class that the configuration names, or the usual one where it names none.

    Where the library lacks the name, or has it for another type of model, the class of the same
    kind for this type is returned, as the library's own ``AutoModel`` does.

    Raises:
        Refusal: how the class is trained is not known here.
    """
    name = next(iter(getattr(config, "architectures", None) or ()), "")
    exact = getattr(transformers, name, None) if name else None
    if getattr(exact, "config_class", None) is not type(config):
        exact = None
    ending = ending_of(name)
    embeds = not ending and name.endswith(_EMBEDS)
    both = exact is not None and answers(exact)
    if exact is not None and not (embeds and both) and not _as_speech(config, ending):
        return exact
    both = both or bool(getattr(config, "is_encoder_decoder", False))
    if config.model_type in speech.AUTO:
        return _of_speech(transformers, config, name)
    if not name:
        return _usual(transformers, config)
    kin = _AUTO.get(ending) or ("AutoModelForSeq2SeqLM" if embeds and both else "")
    found = _mapped(transformers, kin, config) if kin else None
    if found is None:
        raise Refusal("worker.class-untrained", name=name)
    return found


def scoring(transformers: Any, config: Any) -> Any:
    """Return the class of the configuration's type that gives a sequence one score.

    Raises:
        Refusal: the library has none.
    """
    found = _mapped(transformers, "AutoModelForSequenceClassification", config)
    if found is None:
        raise Refusal("worker.reward-class", family=str(config.model_type))
    config.num_labels = 1
    return found


def score_of(model: Any) -> Any:
    """Return the layer that makes a classifier's scores, under one of PEFT's names for it.

    Raises:
        Refusal: it has another name.
    """
    found = [getattr(model, name) for name in _SCORES if hasattr(model, name)]
    if not found:
        raise Refusal("worker.reward-class", family=str(model.config.model_type))
    return found[0]


def ending_of(name: str) -> str:
    """Return the end of a class's name that tells how it is trained; empty where none is known."""
    known = (*_AUTO, *OF_IMAGES, *OF_SOUNDS, *OF_TEXT)
    return max((end for end in known if name.endswith(end)), key=len, default="")


def _as_speech(config: Any, ending: str) -> bool:
    """Return whether a class of a speech model stands for the usual training of its type."""
    return config.model_type in speech.AUTO and ending not in OF_SOUNDS


def _encodes_images(found: Any) -> bool:
    """Return whether a class is among those that the library's ``AutoModel`` has for images."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_MAPPING_NAMES

    return found.__name__ in MODEL_FOR_IMAGE_MAPPING_NAMES.values()


def bare(model: Any) -> bool:
    """Return whether a model has no head."""
    name = type(model).__name__
    return name.endswith(_EMBEDS) and not ending_of(name)


def missing(found: Any, ending: str) -> str:
    """Return what a class of an ending wants beside what its kind is fed; empty for nothing."""
    main = getattr(found, "main_input_name", "input_ids")
    if found.config_class.model_type in speech.AUTO:
        return ""
    known = ending or found.__name__.endswith(_EMBEDS)
    if not known or not _fed(found, main, ending):
        return str(main)
    parameters = inspect.signature(found.forward).parameters.values()
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    asked = [e.name for e in parameters if e.default is e.empty and e.kind not in variable]
    given = {main, *_GIVEN} | ({"input_ids", "pixel_values"} if pairs(found) else set())
    wanted = [name for name in asked if name not in given]
    if not ending:
        also = [each.name for each in parameters if each.name in _SEEN and each.name != main]
        if not pairs(found) or also != ["pixel_values"]:
            wanted += [name for name in also if name not in wanted]
    elif ending == OWN and main == "input_ids":
        names = [each.name for each in parameters if each.name.endswith(("labels", "_positions"))]
        wanted += names if "labels" not in names else []
    return ", ".join(wanted)


def answers(model: Any) -> bool:
    """Return whether a model, or its class, has a decoder that is fed by itself."""
    return "decoder_input_ids" in inspect.signature(model.forward).parameters


def pairs(model: Any) -> bool:
    """Return whether a model, or its class, is trained on texts and images that belong together."""
    taken = inspect.signature(model.forward).parameters
    return "return_loss" in taken and "input_ids" in taken


def _fed(found: Any, main: str, ending: str) -> bool:
    """Return whether a class of an ending is trained on its main input alone."""
    if main in PIXELS:
        return ending in (*OF_IMAGES, OWN) or (not ending and _encodes_images(found))
    if main in SOUNDS:
        return ending in OF_SOUNDS
    return main == "input_ids" and ending not in OF_IMAGES


def _of_speech(transformers: Any, config: Any, name: str) -> Any:
    """Return the class of a speech model's usual training, from the weights of a bare one too.

    Raises:
        Refusal: it names another training.
    """
    found = _mapped(transformers, speech.AUTO[config.model_type], config)
    if name and name != found.__name__ and not name.endswith(("Model", "ForPreTraining")):
        raise Refusal("worker.class-untrained", name=name)
    return found


def _usual(transformers: Any, config: Any) -> Any:
    for kind in ("Seq2SeqLM", "MaskedLM", "CausalLM", "ImageClassification"):
        if (found := _mapped(transformers, f"AutoModelFor{kind}", config)) is not None:
            ending = OF_IMAGES[0] if kind == "ImageClassification" else kind
            if not missing(found, ending):
                return found
    raise Refusal("worker.class-untrained", name=str(config.model_type))


def _mapped(transformers: Any, auto: str, config: Any) -> Any:
    """Return the class of a kind for a configuration's type, None where there is none."""
    found = getattr(transformers, auto)._model_mapping.get(type(config), None)
    return found[0] if isinstance(found, tuple) else found
