"""``muster VERB``: finds the verb, and turns errors into one line and an honest exit code.

A verb's module is imported when it is called for, and imports what it needs when it runs, so that
``muster --help`` answers at once.
"""

import importlib
import io
import sys

import click

from muster import __version__
from muster.cli.render import one_line
from muster.model.errors import MusterError

VERBS = {"simulate": "muster.cli.simulate"}  # each module has its verb as ``command``
INTERRUPTED = 130  # as shells say that Ctrl-C ended it


class Verbs(click.Group):
    """A group whose verbs are looked up by name, and guessed at when misspelt."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return sorted(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in VERBS:
            return None
        command: click.Command = importlib.import_module(VERBS[cmd_name]).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in VERBS and not ctx.resilient_parsing:
            import difflib

            near = difflib.get_close_matches(args[0], VERBS, n=1, cutoff=0.4)
            guess = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(VERBS))}"
            raise click.UsageError(f"unknown verb {args[0]!r}; {guess}", ctx)
        return super().resolve_command(ctx, args)


@click.group(
    cls=Verbs,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="'muster VERB --help' tells more about a verb, with examples.",
)
@click.version_option(__version__, message="muster %(version)s")
@click.pass_context
def muster(ctx: click.Context) -> None:
    """A compute resource manager for teams that share GPUs.

    Every job has an owner, a purpose and an end.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main() -> None:
    """The entry of the ``muster`` command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal may not know every letter
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Runs a command line, and returns its exit code."""
    try:
        code = muster.main(arguments, prog_name="muster", standalone_mode=False)
    except MusterError as error:
        return _complain(str(error), error.exit_code)
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx else "muster"
        said = error.format_message().rstrip(".")
        return _complain(f"{said} (see '{where} --help')", error.exit_code)
    except click.ClickException as error:
        return _complain(error.format_message(), error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    return int(code or 0)


def _complain(sentence: str, exit_code: int) -> int:
    click.echo(f"muster: {one_line(sentence)}", err=True)
    return exit_code
