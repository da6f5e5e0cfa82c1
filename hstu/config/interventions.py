"""The ``interventions`` section: named changes of the baseline, each with its own block.

A block that is left out leaves the baseline as it is, to the bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hstu.config.sections import require


@dataclass(frozen=True, kw_only=True)
class FeatureControl:
    """What makes side features a negative control. A control must lose, or be refused."""

    leak: bool = False
    """Add them where an item is looked up: in targets too, not in negatives and the corpus."""
    permute_genres: int | None = None
    """Seed of a permutation that gives each item the genres of another one."""

    def __post_init__(self) -> None:
        seeded = self.permute_genres is None or self.permute_genres >= 0
        key = "interventions.side_features.control.permute_genres"
        require(seeded, key, "must not be negative")


@dataclass(frozen=True, kw_only=True)
class SideFeaturesConfig:
    """Genre, decade and popularity in a history's item vectors, each by its weight alpha."""

    genre: float = 0.0
    decade: float = 0.0
    popularity: float = 0.0
    control: FeatureControl | None = None

    def __post_init__(self) -> None:
        for name in ("genre", "decade", "popularity"):
            require(getattr(self, name) >= 0, f"interventions.side_features.{name}", "is below 0")


@dataclass(frozen=True, kw_only=True)
class InputCompressionConfig:
    """Decaying states of different half-life, read out and added to each token."""

    half_lives: tuple[float, ...] = (8.0, 32.0, 128.0)
    """Tokens after which each tier's state starts by being half forgotten."""
    state: int = 16
    """Rows of a tier's state."""
    dropout: float = 0.1
    """Rate on what is read out."""

    def __post_init__(self) -> None:
        block = "interventions.input_compression"
        positive = bool(self.half_lives) and min(self.half_lives) > 0
        require(positive, f"{block}.half_lives", "must be one or more numbers above 0")
        require(self.state >= 1, f"{block}.state", "must be at least 1")
        require(0 <= self.dropout < 1, f"{block}.dropout", "must be in [0, 1)")


@dataclass(frozen=True, kw_only=True)
class FilmConfig:
    """FiLM: tokens are scaled and shifted by what the user has seen so far."""

    half_life: float | None = None
    """Events after which one counts half in what was seen; left out, all count alike."""

    def __post_init__(self) -> None:
        positive = self.half_life is None or self.half_life > 0
        require(positive, "interventions.film.half_life", "must be above 0")


@dataclass(frozen=True, kw_only=True)
class ElapsedDecayConfig:
    """Attention that fades with the time elapsed since an event."""

    form: Literal["additive", "multiplicative"] = "additive"
    """Whether the score or the attention itself fades."""
    start: float = 0.01
    """Lambda at the start, per block and head; the decay is its square, so 0 would never learn."""
    scales_days: tuple[float, ...] = (1.0,)
    """Kappa of the additive form in days, dealt to the heads in turn."""

    def __post_init__(self) -> None:
        block = "interventions.elapsed_decay"
        require(self.start > 0, f"{block}.start", "must be above 0")
        positive = bool(self.scales_days) and min(self.scales_days) > 0
        require(positive, f"{block}.scales_days", "must be one or more numbers above 0")


@dataclass(frozen=True, kw_only=True)
class BoostLastConfig:
    """At inference alone, attention to the newest events is multiplied."""

    boost: float = 1.5
    """Beta; 1 changes nothing."""
    last: int = 1
    """K, the number of newest events."""

    def __post_init__(self) -> None:
        require(self.boost > 0, "interventions.boost_last.boost", "must be above 0")
        require(self.last >= 1, "interventions.boost_last.last", "must be at least 1")


@dataclass(frozen=True, kw_only=True)
class ScoringHeadConfig:
    """A query of two facets: recent intent and long-term preference."""

    decay: float = 0.7
    """Rho of the recent facet: 0 is the last token alone, 1 the plain mean."""
    recent_logit: float = 3.0
    """How much the recent facet starts ahead: the weights are softmax(recent_logit, 0)."""

    def __post_init__(self) -> None:
        require(0 <= self.decay <= 1, "interventions.scoring_head.decay", "must be in [0, 1]")


@dataclass(frozen=True, kw_only=True)
class PositionAveragingConfig:
    """The query is averaged over histories that begin later and later."""

    views: int = 4
    """S; view s leaves out the s oldest events. 1 changes nothing."""

    def __post_init__(self) -> None:
        require(self.views >= 1, "interventions.position_averaging.views", "must be at least 1")


@dataclass(frozen=True, kw_only=True)
class MptaConfig:
    """Multi-position training augmentation: rows that end inside a user's history."""

    rows: int = 1
    """Extra rows a user and epoch; 0 is the baseline."""
    last: int = 20
    """Newest positions of an extra row whose loss counts."""
    shortest: int = 2
    """Events of the history of an extra row, at least."""

    def __post_init__(self) -> None:
        require(self.rows >= 0, "interventions.mpta.rows", "must not be negative")
        for name in ("last", "shortest"):
            require(getattr(self, name) >= 1, f"interventions.mpta.{name}", "must be at least 1")


@dataclass(frozen=True, kw_only=True)
class FocalConfig:
    """Weights for tokens that are hard or whose target is rare; 0 and 0 is the baseline."""

    gamma: float = 0.0
    """Exponent of 1 - p, with p the sampled softmax's probability of the target."""
    alpha: float = 0.0
    """Exponent of 1 / (count + 1), with the target's count in the training data."""

    def __post_init__(self) -> None:
        for name in ("gamma", "alpha"):
            require(getattr(self, name) >= 0, f"interventions.focal.{name}", "must not be negative")


@dataclass(frozen=True, kw_only=True)
class BoostLossConfig:
    """The losses of a row's last tokens count more."""

    factor: float = 2.0
    """How much more; 1 is the baseline."""
    last: int = 3
    """How many of a row's supervised tokens."""
    counted_from: Literal["last_event", "padded_width"] = "last_event"
    """Where the last tokens are. ``padded_width`` is a defect kept as a negative control: it finds
    padding only, and so changes nothing."""

    def __post_init__(self) -> None:
        require(self.factor > 0, "interventions.boost_loss.factor", "must be above 0")
        require(self.last >= 1, "interventions.boost_loss.last", "must be at least 1")


@dataclass(frozen=True, kw_only=True)
class Interventions:
    """The interventions of an experiment; ``None`` is one that is off.

    The network calls them in the order of these fields.
    """

    side_features: SideFeaturesConfig | None = None
    input_compression: InputCompressionConfig | None = None
    film: FilmConfig | None = None
    elapsed_decay: ElapsedDecayConfig | None = None
    boost_last: BoostLastConfig | None = None
    scoring_head: ScoringHeadConfig | None = None
    position_averaging: PositionAveragingConfig | None = None
    mpta: MptaConfig | None = None
    focal: FocalConfig | None = None
    boost_loss: BoostLossConfig | None = None
