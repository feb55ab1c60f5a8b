"""Programs that write files of this repository from its code."""
