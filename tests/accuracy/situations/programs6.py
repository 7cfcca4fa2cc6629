"""The trainings of the sixth round: forecasts, depths and poses, pairs, notes, sequences, tables.

    python programs6.py run-task-by-task --fault --seconds 8 --record run.record.json

The loop, its clock and the recorder are those of ``programs.py``; models and data are in
``programs6b.py``.
"""

from collections.abc import Callable

import programs
import programs6b as made
import torch
from programs import Training
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

squared = nn.functional.mse_loss


def as_it_is(loss: Tensor, _: Tensor) -> Tensor:
    """Return the mean of losses that a model has computed itself."""
    return loss.mean()


# Input


def drawn_heatmaps(fault: bool) -> Training:
    return Training(made.posed(24), made.People(2048, prepared=not fault), batch=8, loss=squared)


def frame_windows(fault: bool) -> Training:
    data = made.Frame(8192, array=not fault)
    return Training(made.Bases(), data, batch=32, workers=1, loss=squared)


def scanned_fasta(fault: bool) -> Training:
    reads = made.Fasta(programs._folder(), 3000, indexed=not fault)
    return Training(made.Motifs(), reads, batch=16)


# Too little at once


def task_by_task(fault: bool) -> Training:
    return Training(made.Adapting(one_by_one=fault), made.curves(), batch=8, loss=as_it_is)


def fed_back_notes(fault: bool) -> Training:
    data = made.tokens(length=64, kinds=128)
    return Training(made.Melody(own=fault), data, batch=16, loss=made.next_token)


def row_by_row(fault: bool) -> Training:
    rows = made.usual(65_536)
    return Training(made.Compressed(96), rows, batch=1 if fault else 128, loss=squared)


# Untuned


def double_forecast(fault: bool) -> Training:
    dtype = torch.float64 if fault else torch.float32
    data = made.measurements(dtype=dtype)
    return Training(made.Patched().to(dtype), data, batch=4, loss=squared)


def handed_out_attention(fault: bool) -> Training:
    model = made.Residues(64, 2, handed_out=fault)
    return Training(model, made.proteins(length=320), batch=2, loss=made.each_residue)


# Memory


def recomputed_code(fault: bool) -> Training:
    return Training(made.Code(128, 4, again=fault), made.tokens(), 4, loss=made.next_token)


def teacher_from_disk(fault: bool) -> Training:
    teacher, path = made.Student(1536, 4), programs._folder() / "teacher.pt"
    torch.save(teacher.state_dict(), path)
    student = made.Student(384, 3)

    def loss(found: Tensor, spectrum: Tensor) -> Tensor:
        if fault:  # it is in memory only while it teaches
            teacher.load_state_dict(torch.load(path), assign=True)
        with torch.no_grad():
            taught = teacher(spectrum)
        if fault:
            teacher.to("meta")
        return made.softened(found, taught)

    spectra = torch.randn(8192, 300)
    return Training(student, TensorDataset(spectra, spectra), batch=64, loss=loss)


def small_mappings(_fault: bool) -> Training:
    """The variable of the launcher is put in by the generator."""
    return Training(made.Depth(16), made.rooms(), batch=8, loss=made.distances)


# Communication


def paired_ranks(fault: bool) -> Training:
    torch.set_num_threads(1)  # a core for each rank
    model: nn.Module = made.Pairs(192, words=12_000)
    if fault:
        model = nn.parallel.DistributedDataParallel(model)
    return Training(model, made.captioned(words=12_000), batch=8, loss=made.matched)


def shared_statistics(fault: bool) -> Training:
    torch.set_num_threads(1)  # a core for each rank
    model = made.Depth(8, ranks=fault)
    return Training(model, made.rooms(side=32), batch=2, loss=made.distances)


# Scheduling: all put in by the generator


def depths(_fault: bool) -> Training:
    return Training(made.Depth(24), made.rooms(side=64), batch=8, loss=made.distances)


def forecasts(_fault: bool) -> Training:
    return Training(made.Patched(96), made.measurements(), batch=4, loss=squared)


def residues(_fault: bool) -> Training:
    return Training(made.Residues(), made.proteins(), batch=4, loss=made.each_residue)


def distilled(_fault: bool) -> Training:
    teacher, student = made.Student(768, 3), made.Student(256)

    def loss(found: Tensor, spectrum: Tensor) -> Tensor:
        with torch.no_grad():
            taught = teacher(spectrum)
        return made.softened(found, taught)

    spectra = torch.randn(16_384, 300)
    return Training(student, TensorDataset(spectra, spectra), batch=128, loss=loss)


# Monitoring


def keypoint_scores(fault: bool) -> Training:
    hits = torch.zeros(17).tolist()

    def loss(found: Tensor, maps: Tensor) -> Tensor:
        if fault:  # how many keypoints are near enough
            side = maps.shape[-1]
            seen, right = (each.detach().flatten(2).argmax(-1) for each in (found, maps))
            for person in range(len(maps)):
                for point in range(17):
                    at, there = seen[person, point].item(), right[person, point].item()
                    away = (at % side - there % side) ** 2 + (at // side - there // side) ** 2
                    hits[point] += away < 4
        return squared(found, maps)

    people = TensorDataset(torch.randn(1024, 3, 64, 64), torch.rand(1024, 17, 16, 16))
    return Training(made.posed(16), people, batch=16, loss=loss)


def printed_tensors(fault: bool) -> Training:
    said = programs._folder() / "output.txt" if fault else None
    return Training(made.Compressed(256, said=said), made.usual(), batch=64, loss=squared)


def melody_each_step(fault: bool) -> Training:
    model = made.Melody(128)

    def after(step: int, _loss: Tensor) -> None:
        if fault or step % 500 == 499:
            model.played(4, 48)

    data = made.tokens(length=96, kinds=128)
    return Training(model, data, batch=8, loss=made.next_token, after=after)


def reconstructed_each_step(fault: bool) -> Training:
    model, held = made.Compressed(256), DataLoader(made.usual(1024), batch_size=128)

    def after(step: int, _loss: Tensor) -> None:
        if fault or step % 500 == 499:
            model.eval()
            with torch.no_grad():
                wrong = torch.cat([(model(row) - row).square().mean(1) for row, _ in held])
            float(wrong.quantile(0.99))
            model.train()

    return Training(model, made.usual(), batch=128, loss=squared, after=after)


# Nothing


def steady_patches(fault: bool) -> Training:
    """Nothing is wrong: without the loader it is no faster."""
    return Training(made.Patched(192), made.measurements(), 4, loss=squared, again=not fault)


def steady_residues(fault: bool) -> Training:
    """Nothing is wrong: without the loader it is no faster."""
    model, data = made.Residues(192), made.proteins()
    return Training(model, data, batch=4, loss=made.each_residue, again=not fault)


def steady_rows(fault: bool) -> Training:
    """Nothing is wrong: without the loader it is no faster."""
    return Training(made.Compressed(1024), made.usual(), 384, loss=squared, again=not fault)


SIXTH: dict[str, Callable[[bool], Training]] = {
    "run-drawn-heatmaps": drawn_heatmaps,
    "run-frame-windows": frame_windows,
    "run-scanned-fasta": scanned_fasta,
    "run-task-by-task": task_by_task,
    "run-fed-back-notes": fed_back_notes,
    "run-row-by-row": row_by_row,
    "run-double-forecast": double_forecast,
    "run-handed-out-attention": handed_out_attention,
    "run-recomputed-code": recomputed_code,
    "run-teacher-from-disk": teacher_from_disk,
    "run-small-mappings": small_mappings,
    "run-paired-ranks": paired_ranks,
    "run-shared-statistics": shared_statistics,
    "run-depth-quota": depths,
    "run-sweep-of-forecasts": forecasts,
    "run-residues-one-core": residues,
    "run-sixteen-threads": distilled,
    "run-keypoint-scores": keypoint_scores,
    "run-printed-tensors": printed_tensors,
    "run-melody-each-step": melody_each_step,
    "run-reconstructed-each-step": reconstructed_each_step,
    "run-steady-patches": steady_patches,
    "run-steady-residues": steady_residues,
    "run-steady-rows": steady_rows,
    "run-seen-distilling": distilled,
}


if __name__ == "__main__":
    programs.SITUATIONS.update(SIXTH)
    programs.main()
