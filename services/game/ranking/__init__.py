"""Ranking hands for every game of the room; bigger is always better (docs/rules.md, 2).

One hand at a time: `high`, `low8`, `ace_to_five`, `deuces_wild`. Many hands at once:
`services.game.ranking.batch`, which gives the same numbers.
"""

from services.game.ranking.best_five import best_high, best_low
from services.game.ranking.classes import Category, category_of
from services.game.ranking.scalar import ace_to_five, deuces_wild, high, low8

__all__ = [
    "Category",
    "ace_to_five",
    "best_high",
    "best_low",
    "category_of",
    "deuces_wild",
    "high",
    "low8",
]
