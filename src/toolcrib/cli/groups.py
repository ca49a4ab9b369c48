"""A group of commands, one of which is meant where none is named: `toolcrib lint PATH` is `toolcrib lint check PATH`.

Above: the groups `eval`, `lint` and `review`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from typer.core import TyperGroup


class GroupWithDefault(TyperGroup):
    """`default`: the command that is meant. `alone`: also where there is no word at all."""

    default: ClassVar[str]
    alone: ClassVar[bool] = True

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        named = bool(args) and (args[0] in self.commands or args[0] == "--help")
        if not named and (args or self.alone):
            args = [self.default, *args]
        rest: list[str] = super().parse_args(ctx, args)
        return rest

    def get_help(self, ctx: Any) -> str:
        """The group's own help, and that of the command which is meant."""
        command = self.commands[self.default]
        theirs = command.get_help(command.context_class(command, info_name=self.default, parent=ctx))
        return f"{super().get_help(ctx)}\n\nWithout a command, `{self.default}` is meant:\n\n{theirs}"
