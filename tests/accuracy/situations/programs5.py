"""The trainings of the fifth batch: graphs, clouds of points, policies, tags and texts.

    python programs5.py run-crf-sentences --fault --seconds 8 --record run.record.json

The loop, its clock and the recorder are those of ``programs.py``.
"""

import gc
import io
import json
import os
import random
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import programs
import torch
import torch.distributed as dist
from programs import Item, Training
from torch import Tensor, nn
from torch.utils.data import Dataset, TensorDataset

# Models


class Cloud(nn.Module):
    """A classifier of clouds of points: each point alone, then the largest of all."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.points = nn.Sequential(
            nn.Linear(3, width),
            nn.ReLU(),
            nn.Linear(width, 2 * width),
            nn.ReLU(),
            nn.Linear(2 * width, 4 * width),
        )
        self.head = nn.Linear(4 * width, 16)

    def forward(self, points: Tensor) -> Tensor:
        return self.head(self.points(points).amax(1))


class Neighbours(nn.Module):
    """A classifier of clouds whose points look at the nearest ones in each layer's own space."""

    def __init__(self, width: int = 48, depth: int = 3, written: bool = False) -> None:
        super().__init__()
        self.written = written
        self.enter, self.head = nn.Linear(3, width), nn.Linear(width, 16)
        self.layers = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(depth))

    def distances(self, x: Tensor) -> Tensor:
        """Return the squared distance of each two points."""
        if self.written:
            return (x[:, :, None] - x[:, None]).pow(2).sum(-1)
        squares = x.square().sum(-1)
        return squares[:, :, None] + squares[:, None] - 2 * x @ x.transpose(1, 2)

    def forward(self, points: Tensor) -> Tensor:
        x = self.enter(points)
        each = torch.arange(len(x))[:, None, None]
        for layer in self.layers:
            near = self.distances(x).topk(8, largest=False).indices
            around = x[each, near]
            here = x[:, :, None].expand_as(around)
            x = torch.relu(layer(torch.cat([around - here, here], -1))).amax(2)
        return self.head(x.amax(1))


class Tagger(nn.Module):
    """Scores of a tag for each word of a sentence, which is read both ways."""

    def __init__(self, words: int = 5000, width: int = 64, tags: int = 9) -> None:
        super().__init__()
        self.table = nn.Embedding(words, width)
        self.both = nn.LSTM(width, width, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * width, tags)
        self.moves = nn.Parameter(torch.zeros(tags, tags))

    def forward(self, words: Tensor) -> Tensor:
        return self.head(self.both(self.table(words))[0])

    def surprise(self, scores: Tensor, tags: Tensor) -> Tensor:
        """Return the negative logarithm of the tags' likelihood as a chain, mean of sentences."""
        said = scores.gather(2, tags[..., None]).sum((1, 2))
        said = said + self.moves[tags[:, :-1], tags[:, 1:]].sum(1)
        total = scores[:, 0]
        for position in range(1, scores.shape[1]):
            total = (total[:, :, None] + self.moves).logsumexp(1) + scores[:, position]
        return (total.logsumexp(1) - said).mean()


def word_by_word(scores: Tensor, tags: Tensor) -> Tensor:
    """Return the loss of tags that do not look at each other."""
    return nn.functional.cross_entropy(scores.flatten(0, 1), tags.flatten())


def sounds(channels: int = 32) -> nn.Module:
    """Return a tagger of sounds as they were recorded; a sound may have many tags."""
    blocks: list[nn.Module] = []
    for inside, outside in ((1, channels), (channels, channels), (channels, 2 * channels)):
        blocks += [nn.Conv1d(inside, outside, 9, stride=2, padding=4), nn.BatchNorm1d(outside)]
        blocks += [nn.ReLU(), nn.MaxPool1d(2)]
    return nn.Sequential(
        *blocks, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(2 * channels, 40)
    )


class Sampled(nn.Module):
    """A node's kind from the nodes that were met on walks from it, and how often."""

    def __init__(self, width: int = 128) -> None:
        super().__init__()
        self.own, self.met = nn.Linear(32, width), nn.Linear(32, width)
        self.mixed = nn.Linear(2 * width, width)
        self.head = nn.Linear(width, 16)

    def forward(self, nodes: Tensor) -> Tensor:
        often, features = nodes[:, 1:, :1], nodes[..., 1:]
        near = (often * torch.relu(self.met(features[:, 1:]))).sum(1)
        both = torch.cat([torch.relu(self.own(features[:, 0])), near], 1)
        return self.head(torch.relu(self.mixed(both)))


class Balancing(nn.Module):
    """A policy that balances poles on carts, in as many environments as a batch has."""

    def __init__(self, width: int = 64, moments: int = 16, read_every: int = 0) -> None:
        super().__init__()
        self.policy = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 2))
        self.moments, self.read_every, self.updates = moments, read_every, 0
        self.returns: list[float] = []

    def forward(self, state: Tensor) -> Tensor:
        chosen, rewards = [], []
        for _ in range(self.moments):
            said = torch.distributions.Categorical(logits=self.policy(state))
            action = said.sample()
            chosen.append(said.log_prob(action))
            state, reward = self.stepped(state, action)
            rewards.append(reward)
        self.updates += 1
        if self.read_every and self.updates % self.read_every == 0:
            self.returns = [
                sum(rewards[moment][number].item() for moment in range(self.moments))
                for number in range(len(state))
            ]
        later = torch.stack(rewards).flip(0).cumsum(0).flip(0)
        return -(torch.stack(chosen) * (later - later.mean())).mean()

    @staticmethod
    @torch.no_grad()
    def stepped(state: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """Return the next state of each environment and what it was worth."""
        place, speed, angle, turning = state.unbind(1)
        force = 20.0 * action - 10.0
        sine, cosine = angle.sin(), angle.cos()
        pushed = (force + 0.05 * turning.square() * sine) / 1.1
        faster = (9.8 * sine - cosine * pushed) / (0.5 * (4 / 3 - 0.1 * cosine.square() / 1.1))
        moved = pushed - 0.05 * faster * cosine / 1.1
        state = torch.stack(
            [place + 0.02 * speed, speed + 0.02 * moved, angle + 0.02 * turning,
             turning + 0.02 * faster], 1,
        )  # fmt: skip
        fallen = (state[:, 2].abs() > 0.21) | (state[:, 0].abs() > 2.4)
        again = torch.where(fallen[:, None], 0.05 * torch.randn_like(state), state)
        return again, 1.0 - 1.0 * fallen


def as_it_is(loss: Tensor, _: Tensor) -> Tensor:
    """Return the loss that a model has computed itself."""
    return loss


class Worth(nn.Module):
    """What each action is worth in a state, apart from what the state is worth."""

    def __init__(self, width: int = 256, depth: int = 3) -> None:
        super().__init__()
        hidden: list[nn.Module] = [nn.Linear(24, width), nn.ReLU()]
        for _ in range(depth - 1):
            hidden += [nn.Linear(width, width), nn.ReLU()]
        self.seen = nn.Sequential(*hidden)
        self.state, self.action = nn.Linear(width, 1), nn.Linear(width, 8)

    def forward(self, state: Tensor) -> Tensor:
        seen = self.seen(state)
        action = self.action(seen)
        return self.state(seen) + action - action.mean(1, keepdim=True)


def worth_of_first(worth: Tensor, reward: Tensor) -> Tensor:
    """Return the loss against rewards of the action that was taken, the first."""
    return nn.functional.smooth_l1_loss(worth[:, 0], reward)


class Reviewed(nn.Module):
    """A user's rating of a thing, from the words that were written of it."""

    def __init__(self, users: int = 4000, words: int = 20_000, width: int = 64) -> None:
        super().__init__()
        self.users, self.words = nn.Embedding(users, width), nn.EmbeddingBag(words, width)
        self.mixed = nn.Sequential(nn.Linear(2 * width, 256), nn.ReLU(), nn.Linear(256, width))
        self.head = nn.Linear(width, 1)

    def forward(self, review: Tensor) -> Tensor:
        user, text = self.users(review[:, 0]), self.words(review[:, 1:])
        return self.head(self.mixed(torch.cat([user, text], 1)) * user)[:, 0]


# Data


def clouds(count: int = 1024, points: int = 256) -> TensorDataset:
    """Return clouds of points with their kinds, in memory."""
    return TensorDataset(torch.randn(count, points, 3), torch.randint(16, (count,)))


def sentences(count: int = 4096, length: int = 24, words: int = 5000) -> TensorDataset:
    """Return sentences with a tag for each word."""
    return TensorDataset(torch.randint(words, (count, length)), torch.randint(9, (count, length)))


def recorded(count: int = 512, dtype: torch.dtype = torch.float32) -> TensorDataset:
    """Return half a second of sound each, with its tags."""
    tags = torch.rand(count, 40).lt(0.1).to(dtype)
    return TensorDataset(torch.randn(count, 1, 8000, dtype=dtype), tags)


def starts(count: int = 8192) -> TensorDataset:
    """Return states in which the environments start."""
    return TensorDataset(0.05 * torch.randn(count, 4), torch.zeros(count))


def transitions(count: int = 16_384) -> TensorDataset:
    """Return states with the reward of what was done in them."""
    return TensorDataset(torch.randn(count, 24), torch.randn(count))


def reviews(count: int = 8192, length: int = 60) -> TensorDataset:
    """Return a user and the words of a review each, with the rating."""
    users, words = torch.randint(4000, (count, 1)), torch.randint(20_000, (count, length))
    return TensorDataset(torch.cat([users, words], 1), torch.rand(count))


class Scans(Dataset[Item]):
    """Scans of which points far from each other are drawn, or were drawn before."""

    def __init__(self, count: int, prepared: bool, kept: int = 128) -> None:
        self.scan = np.random.default_rng(0).standard_normal((1024, 3)).astype(np.float32)
        self.count, self.kept, self.ready = count, kept, None
        if prepared:
            self.ready = self.drawn(0)

    def drawn(self, index: int) -> Tensor:
        """Return points of which each is farthest from those before it."""
        turned = np.roll(self.scan, index % 3, 1)
        nearest = np.full(len(turned), np.inf, np.float32)
        chosen = [index % len(turned)]
        for _ in range(self.kept - 1):
            away = np.square(turned - turned[chosen[-1]]).sum(1)
            np.minimum(nearest, away, out=nearest)
            chosen.append(int(nearest.argmax()))
        return torch.from_numpy(turned[chosen])

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        points = self.drawn(index) if self.ready is None else self.ready.clone()
        return points, torch.tensor(index % 16)


class Walks(Dataset[Item]):
    """Nodes of a graph with those that short walks from them meet most, or that they met before."""

    def __init__(self, count: int, prepared: bool) -> None:
        chance = random.Random(0)
        self.around = [chance.choices(range(count), k=12) for _ in range(count)]
        self.features = torch.randn(count, 32)
        self.count, self.ready = count, None
        if prepared:
            self.ready = self.met(0)

    def met(self, index: int) -> Tensor:
        """Return a node's features, then those of 20 nodes with the share of visits before."""
        chance, visits = random.Random(index), Counter[int]()
        for _ in range(120):
            node = index
            for _ in range(3):
                node = chance.choice(self.around[node])
                visits[node] += 1
        often = visits.most_common(20)
        nodes = [index, *(node for node, _ in often)]
        share = torch.tensor([0.0, *(count / 360 for _, count in often)])
        return torch.cat([share[:, None], self.features[nodes]], 1)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        nodes = self.met(index) if self.ready is None else self.ready.clone()
        return nodes, torch.tensor(index % 16)


class Archive(Dataset[Item]):
    """Reviews in an archive, one file each; it stays open, or is opened for each of them."""

    def __init__(self, folder: Path, count: int, reopened: bool) -> None:
        self.path, self.count, self.reopened = folder / "reviews.zip", count, reopened
        self.open: dict[int, zipfile.ZipFile] = {}
        words = np.random.default_rng(0).integers(0, 4000, (count, 61), np.int64)
        with zipfile.ZipFile(self.path, "w", zipfile.ZIP_DEFLATED) as made:
            for number, row in enumerate(words):
                made.writestr(f"reviews/{number:05d}.bin", row.tobytes())

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        name, mine = f"reviews/{index:05d}.bin", os.getpid()
        if self.reopened:
            with zipfile.ZipFile(self.path) as archive:
                raw = archive.read(name)
        else:
            if mine not in self.open:
                self.open[mine] = zipfile.ZipFile(self.path)
            raw = self.open[mine].read(name)
        return torch.frombuffer(bytearray(raw), dtype=torch.int64), torch.tensor(index % 5 / 5)


# The situations


def farthest_points(fault: bool) -> Training:
    return Training(Cloud(32), Scans(2048, prepared=not fault), batch=8, workers=1)


def ego_graphs(fault: bool) -> Training:
    return Training(Sampled(), Walks(8192, prepared=not fault), batch=32, workers=1)


def reopened_archive(fault: bool) -> Training:
    archive = Archive(programs._folder(), 200, reopened=fault)
    return Training(Reviewed(), archive, batch=16, loss=nn.functional.mse_loss)


def crf_sentences(fault: bool) -> Training:
    model = Tagger()

    def loss(scores: Tensor, tags: Tensor) -> Tensor:
        if fault:
            each = [
                model.surprise(scores[number : number + 1], tags[number : number + 1])
                for number in range(len(tags))
            ]
            return torch.stack(each).mean()
        return model.surprise(scores, tags)

    return Training(model, sentences(), batch=8, loss=loss)


def single_environment(fault: bool) -> Training:
    return Training(Balancing(), starts(32_768), batch=1 if fault else 64, loss=as_it_is)


def written_distances(fault: bool) -> Training:
    return Training(Neighbours(written=fault), clouds(points=192), batch=4)


def double_sounds(fault: bool) -> Training:
    dtype = torch.float64 if fault else torch.float32
    loss = nn.functional.binary_cross_entropy_with_logits
    return Training(sounds().to(dtype), recorded(dtype=dtype), batch=8, loss=loss)


def paged_activations(fault: bool) -> Training:
    training, folder = Training(Cloud(48), clouds(), batch=8), programs._folder()
    if fault:
        numbers = iter(range(1 << 40))

        def out(values: Tensor) -> Tensor | Path:
            if values.numel() < 1 << 14:
                return values
            path = folder / f"{next(numbers)}.pt"
            torch.save(values, path)
            return path

        def back(kept: Tensor | Path) -> Tensor:
            if isinstance(kept, Tensor):
                return kept
            values: Tensor = torch.load(kept)
            kept.unlink()
            return values

        training.around = torch.autograd.graph.saved_tensors_hooks(out, back)
    return training


def collected_replay(fault: bool) -> Training:
    replay = [([0.1 * number, 0.2], number % 8, [0.3]) for number in range(25_000)]

    def after(_step: int, _loss: Tensor) -> None:
        assert replay
        if fault:
            gc.collect()

    return Training(Worth(), transitions(), batch=64, loss=worth_of_first, after=after)


def tagger_gradients(fault: bool) -> Training:
    torch.set_num_threads(1)  # a core for each rank
    model: nn.Module = Tagger(words=30_000, width=96)
    if fault:
        model = nn.parallel.DistributedDataParallel(model, find_unused_parameters=True)
    return Training(model, sentences(words=30_000), batch=4, loss=word_by_word)


def averaged_policies(fault: bool) -> Training:
    torch.set_num_threads(1)  # a core for each rank
    model = Worth(width=512, depth=5)

    def after(_step: int, _loss: Tensor) -> None:
        if fault:  # the two learners stay one
            with torch.no_grad():
                for parameter in model.parameters():
                    dist.all_reduce(parameter)
                    parameter /= 2

    return Training(model, transitions(), batch=16, loss=worth_of_first, after=after)


def tagged_sounds(_fault: bool) -> Training:
    """The quota is put in by the generator."""
    loss = nn.functional.binary_cross_entropy_with_logits
    return Training(sounds(), recorded(), batch=4, loss=loss)


def many_points(_fault: bool) -> Training:
    """Other programs are put in by the generator."""
    return Training(Cloud(96), clouds(points=512), batch=8)


def long_sentences(_fault: bool) -> Training:
    """The one core is put in by the generator."""
    data = sentences(length=40)
    return Training(Tagger(width=192), data, batch=32, loss=word_by_word)


def episode_reads(fault: bool) -> Training:
    model = Balancing(read_every=1 if fault else 50)
    return Training(model, starts(), batch=128, loss=as_it_is)


def ranked_each_step(fault: bool) -> Training:
    model = Reviewed()
    things, asking = torch.randint(20_000, (3000, 60)), torch.arange(128)

    def after(step: int, _loss: Tensor) -> None:
        if fault or step % 200 == 199:
            model.eval()
            with torch.no_grad():
                texts, users = model.words(things), model.users(asking)
                best = (users @ texts.T).topk(10).indices
                sum(float(number in row) for number, row in enumerate(best.tolist()))
            model.train()

    loss = nn.functional.mse_loss
    return Training(model, reviews(), batch=64, loss=loss, after=after)


def gradient_log(fault: bool) -> Training:
    model = Sampled()
    log = (programs._folder() / "gradients.jsonl").open("w")

    def after(step: int, loss: Tensor) -> None:
        if fault or step % 50 == 0:
            line: dict[str, object] = {"step": step, "loss": float(loss.detach())}
            for name, parameter in model.named_parameters():
                values = parameter.grad.numpy()
                counts, edges = np.histogram(values, 50)
                line[name] = [float(np.abs(values).mean()), counts.tolist(), edges.tolist()]
            text = io.StringIO()
            json.dump(line, text)
            log.write(text.getvalue() + "\n")
            log.flush()

    nodes = TensorDataset(torch.rand(4096, 21, 33), torch.randint(16, (4096,)))
    return Training(model, nodes, batch=32, after=after)


def steady_points(fault: bool) -> Training:
    """Nothing is wrong: without the loader it is no faster."""
    return Training(Neighbours(width=96), clouds(points=320), batch=4, again=not fault)


def steady_tagger(fault: bool) -> Training:
    """Nothing is wrong: without the loader it is no faster."""
    data = sentences(length=40)
    return Training(Tagger(width=256), data, batch=32, loss=word_by_word, again=not fault)


def policy(_fault: bool) -> Training:
    return Training(Balancing(), starts(), batch=64, loss=as_it_is)


FIFTH: dict[str, Callable[[bool], Training]] = {
    "run-farthest-points": farthest_points,
    "run-ego-graphs": ego_graphs,
    "run-reopened-archive": reopened_archive,
    "run-crf-sentences": crf_sentences,
    "run-single-environment": single_environment,
    "run-written-distances": written_distances,
    "run-double-sounds": double_sounds,
    "run-paged-activations": paged_activations,
    "run-collected-replay": collected_replay,
    "run-tagger-gradients": tagger_gradients,
    "run-averaged-policies": averaged_policies,
    "run-third-core": tagged_sounds,
    "run-busy-simulators": many_points,
    "run-pinned-tagger": long_sentences,
    "run-episode-reads": episode_reads,
    "run-ranked-each-step": ranked_each_step,
    "run-gradient-log": gradient_log,
    "run-steady-points": steady_points,
    "run-steady-tagger": steady_tagger,
    "run-seen-policy": policy,
}


if __name__ == "__main__":
    programs.SITUATIONS.update(FIFTH)
    programs.main()
