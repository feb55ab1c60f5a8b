"""Tables: seats, hands, clocks, and who may see what."""
