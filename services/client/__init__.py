"""For programs that play or show tables: gateways, apps, bots. See docs/client.md.

`RoutedPlay` keeps one `Play` stream to each replica that owns a table it follows, moves tables when
their owner changes and asks again what got no answer. `Routes` knows the owners; it needs nothing
but the room's addresses and a way to dial them. Both know of the platform what is in protos/.
"""

from services.client.play import RoutedPlay, TableLost
from services.client.routes import Routes

__all__ = ["RoutedPlay", "Routes", "TableLost"]
