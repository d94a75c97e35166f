"""The vision tower and its first training: dense reading, against the language model's input embeddings."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import Idefics3Config, Idefics3ImageProcessorPil, Idefics3VisionConfig
from transformers.models.idefics3.modeling_idefics3 import Idefics3Connector, Idefics3VisionTransformer

from models.eyes.shape import HEADS, IMAGE_PX, INNER, JOINED, LAYERS, MEAN, PATCH_PX, PATCHES, SHUFFLE, STD, WIDTH
from models.eyes.targets import place_code
from models.training import multiplies_bfloat16

CONNECTOR = "connector.modality_projection.proj.weight"
_SHARPNESS = 10.0  # the logit of a cell that says one fact exactly
_BLANK_WEIGHT = 0.1  # most cells show nothing
_PLACE_SHARE = 0.7  # of a cell's length that the code of a place has beside a word


def vision_config() -> dict[str, int | str]:
    """The tower's part of the base's configuration."""
    return {
        "hidden_size": WIDTH,
        "intermediate_size": INNER,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "image_size": IMAGE_PX,
        "patch_size": PATCH_PX,
    }


def image_processor() -> Idefics3ImageProcessorPil:
    """What makes a screenshot the tower's input: one scaling to a square, and paper near zero."""
    return Idefics3ImageProcessorPil(
        do_resize=False,  # it would scale twice
        do_image_splitting=False,
        max_image_size={"longest_edge": IMAGE_PX},
        image_mean=[MEAN] * 3,
        image_std=[STD] * 3,
    )


class Tower(nn.Module):
    """Tower and connector."""

    def __init__(self, width_of_words: int) -> None:
        super().__init__()
        config = Idefics3Config(vision_config=vision_config(), scale_factor=SHUFFLE)
        config.text_config.hidden_size = width_of_words
        vision = Idefics3VisionConfig(**vision_config())
        vision._attn_implementation = "sdpa"
        self.vision_model = Idefics3VisionTransformer(vision)
        self.connector = Idefics3Connector(config)
        look_beside(self.vision_model)
        _begin_idle(self.vision_model.encoder.layers[BESIDE_LAYERS:])

    def forward(self, pixels: Tensor, places: Tensor) -> Tensor:
        """What the cells say (batch, cells, width of words).

        ``pixels`` is a square part of each picture, ``places`` the numbers of its patches (batch, patches).
        """
        embeddings = self.vision_model.embeddings
        patches = embeddings.patch_embedding(pixels).flatten(2).transpose(1, 2)
        patches = patches + embeddings.position_embedding(places)
        for layer in self.vision_model.encoder.layers:
            patches = layer(patches, None)
        patches = self.vision_model.post_layernorm(patches)
        said: Tensor = self.connector(patches)
        return said


def joined(weight: Tensor) -> Tensor:
    """The connector's weight (width, patches * WIDTH) for tokens of JOINED by JOINED cells: each the mean of theirs."""
    said = weight.view(-1, SHUFFLE, SHUFFLE, WIDTH) / JOINED**2
    return said.tile(1, JOINED, JOINED, 1).flatten(1)


@torch.no_grad()
def _begin_idle(layers: Iterable[Any]) -> None:
    """Make layers pass on what they are given, so that they can be added to those that have learnt already."""
    for layer in layers:
        for last in (layer.self_attn.out_proj, layer.mlp.fc2):
            last.weight.zero_()
            last.bias.zero_()


BESIDE_LAYERS = 2
_BESIDE_SHARPNESS = 3.0  # of the heads' first look
_BESIDE = ((0, -1), (0, 1), (-1, 0), (1, 0))  # rows and columns away, one for each head


@torch.no_grad()
def look_beside(vision: Idefics3VisionTransformer) -> None:
    """Begin with heads that attend to the patches beside: letters straddle patches, and finding that out takes long.

    The position embeddings become sines and cosines of row and column; queries read them as they are and keys turned
    by one place, so that a query fits best the key one place away (as ConViT does, arXiv:2103.10697, by other means).
    """
    pairs = WIDTH // 4
    waves = torch.logspace(math.log10(0.15), math.log10(2.5), pairs)
    angles = torch.arange(PATCHES)[:, None] * waves
    turns = torch.stack([angles.cos(), angles.sin()], dim=-1).flatten(1)  # (places a side, half of the width)
    rows, columns = turns[:, None].expand(-1, PATCHES, -1), turns[None].expand(PATCHES, -1, -1)
    vision.embeddings.position_embedding.weight.copy_(torch.cat([rows, columns], dim=-1).flatten(0, 1) / 2)
    for layer in vision.encoder.layers[:BESIDE_LAYERS]:
        for projection in (layer.self_attn.q_proj, layer.self_attn.k_proj):
            projection.weight.mul_(0.1)
        for head, beside in enumerate(_BESIDE):
            _attend(layer.self_attn, head, beside, waves)


def _attend(attention: Any, head: int, beside: tuple[int, int], waves: Tensor) -> None:
    """Make a head's queries fit the keys ``beside``: every second wave of rows and of columns."""
    size, half = WIDTH // HEADS, WIDTH // 2
    for axis, step in enumerate(beside):
        for number in range(size // 4):
            wave = 4 * number % len(waves) + 4 * number // len(waves)
            at, row = half * axis + 2 * wave, size * head + size // 2 * axis + 2 * number
            cosine, sine = math.cos(waves[wave] * step), math.sin(waves[wave] * step)
            attention.q_proj.weight[row : row + 2, at : at + 2] += _BESIDE_SHARPNESS * torch.eye(2)
            turned = torch.tensor([[cosine, sine], [-sine, cosine]])
            attention.k_proj.weight[row : row + 2, at : at + 2] += _BESIDE_SHARPNESS * turned


@dataclass(frozen=True, slots=True)
class Meanings:
    """The language model's input embeddings of the facts (facts, width), and of an empty cell (width,)."""

    facts: Tensor
    blank: Tensor

    @property
    def length(self) -> Tensor:
        """Of the mean fact."""
        mean: Tensor = self.facts.norm(dim=-1).mean()
        return mean

    def of(self, told: Tensor, centres: Tensor) -> Tensor:
        """What cells (cells, told) with centres (cells, 2) are to say (cells, width)."""
        there = (told >= 0)[..., None]
        said = (self.facts[told.clamp(min=0)] * there).sum(-2) / there.sum(-2).clamp(min=1).sqrt()
        code = place_code(centres, self.facts.shape[-1]) * self.length * _PLACE_SHARE
        said = said + code * (centres[..., :1] >= 0)
        return torch.where(there.any(-2), said, self.blank)

    def chances(self, said: Tensor) -> Tensor:
        """Logits (..., facts): how far what is said goes in each fact's own direction."""
        own = self.facts - self.facts.mean(0)
        return _SHARPNESS * (said.float() @ own.T) / own.square().sum(-1).mean()


def things_loss(said: Tensor, told: Tensor, centres: Tensor, meanings: Meanings) -> Tensor:
    """How far cells are from what they are to say, plus the cross-entropy of their facts, shared evenly.

    Args:
        said: what the cells say, (batch, cells, width).
        told: facts (batch, cells, told), -1 for none.
        centres: (batch, cells, 2) in CSS pixels, negative for none.
    """
    some = (told >= 0).any(-1)
    weight = torch.where(some, 1.0, _BLANK_WEIGHT)
    apart = (said.float() - meanings.of(told, centres)).square().sum(-1) / meanings.length**2
    told = told[some]
    share = (told >= 0) / (told >= 0).sum(-1, keepdim=True)
    chances = meanings.chances(said[some]).log_softmax(-1)
    missed = -(chances.gather(-1, told.clamp(min=0)) * share).sum()
    return (apart * weight).sum() / weight.sum() + missed / max(1, len(told))


def optimizers(tower: nn.Module, rate: float) -> list[torch.optim.Optimizer]:
    """Muon for the matrices inside the layers, at four times the rate, AdamW for the rest.

    Muon works in bfloat16; on a machine that does not multiply it AdamW has them all.
    """
    device = next(tower.parameters()).device.type
    inner = [p for name, p in tower.named_parameters() if p.ndim == 2 and ".layers." in name]
    chosen = {id(parameter) for parameter in inner} if multiplies_bfloat16(device) else set()
    rest = [p for p in tower.parameters() if id(p) not in chosen]
    adam = torch.optim.AdamW(rest, lr=rate, betas=(0.9, 0.98), weight_decay=0.01)
    if not chosen:
        return [adam]
    return [torch.optim.Muon(inner, lr=4 * rate, weight_decay=0.01, adjust_lr_fn="match_rms_adamw"), adam]
