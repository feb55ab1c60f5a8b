"""The whole room on one machine: embedded servers, supervision, bots and the `doorcard` command."""
