"""What a plan's trace assumed, and what its optimizer's library does."""

from collections.abc import Iterator

from trainwright.messages import Message
from trainwright.profile.profile import Profile
from trainwright.workload import FullSettings


def update_notes(settings: FullSettings, profile: Profile) -> Iterator[Message]:
    """Yield what the optimizer's library does differently than one might think."""
    known = profile.model
    if "prefill" in profile.segments:
        return
    if settings.optimizer == "muon":
        moved, trained = known.get("muon", 0), known.get("trainable", 0)
        yield Message.of("plan.note.muon", moved=moved, rest=trained - moved)
    if settings.optimizer_in_backward or settings.optimizer_offload == "cpu":
        yield Message.of("plan.note.no-clipping")
    embeddings = known.get("vocabulary", 0) * known.get("hidden", 0)
    whole = known.get("trainable", 0) == known.get("parameters")
    if settings.optimizer in ("adamw-8bit", "paged-adamw-8bit") and embeddings and whole:
        more = (8 - 2 * (1 + 4 / 256)) * embeddings
        yield Message.of("plan.note.fp32-embeddings", more=more)


def trace_notes(profile: Profile) -> Iterator[Message]:
    """Yield what the trace assumed."""
    yield from profile.stated
    for assumed, times in profile.guessed.items():
        yield Message.of("plan.note.assumption", question=assumed, times=times)
    if path := profile.versions.get("interpreter"):
        names = ("torch", "transformers", "timm", "diffusers")
        libraries = [f"{n} {profile.versions[n]}" for n in names if n in profile.versions]
        yield Message.of("plan.note.interpreter", path=path, libraries=libraries)
    model = profile.model
    if named := model.get("named_class"):
        yield Message.of("plan.note.other-class", named=named, traced=model["traced_class"])
    for part in ("inputs", "loss"):
        if guessed := model.get(f"guessed_{part}"):
            name, shape = model.get("guessed_name", ""), model.get("guessed_shape", "")
            yield Message.of(f"plan.note.guessed-{guessed}", name=name, shape=shape)
    batch, sequence = profile.points[0]
    if not profile.repeats:
        yield Message.of("plan.note.no-repeat")
    if not profile.exact:
        id = "plan.note.one-point" if sequence else "plan.note.one-batch"
        yield Message.of(id, batch=batch, sequence=sequence)
    if sequence and "prefill" in profile.segments and "decode" not in profile.segments:
        yield Message.of("plan.note.one-pass")
