"""eval model: cases asked of a real model that is handed all tools, its vendor's search, or Toolcrib."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from toolcrib.cli.eval_model_door import GatewayDoor
from toolcrib.cli.eval_model_report import print_told
from toolcrib.cli.evals import eval_app, places_of
from toolcrib.cli.shared import AsJson, counted, folder, print_json, say
from toolcrib.errors import ConfigError
from toolcrib.evals.models.anthropic_sdk import AnthropicSender
from toolcrib.evals.models.anthropic_wire import AnthropicWire
from toolcrib.evals.models.asking import Asking, Kept
from toolcrib.evals.models.openai_sdk import OpenAISender
from toolcrib.evals.models.openai_wire import OpenAIWire
from toolcrib.evals.models.prices import Price, Purse, price_of
from toolcrib.evals.models.protocol import SearchKind, Vendor
from toolcrib.evals.models.run import Expected, Plan, Ran, Run
from toolcrib.evals.models.summary import attempt_row, summarised
from toolcrib.evals.models.ways import SYSTEM, Way, Ways
from toolcrib.evals.run import sampled
from toolcrib.settings.references import reveal
from toolcrib.types import SecretRef

_SAY_EVERY_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Provider:
    vendor: Vendor
    key: str
    sender: type[AnthropicSender] | type[OpenAISender]


_PROVIDERS = {
    "anthropic": _Provider(vendor=AnthropicWire(), key="env:ANTHROPIC_API_KEY", sender=AnthropicSender),
    "openai": _Provider(vendor=OpenAIWire(), key="env:OPENAI_API_KEY", sender=OpenAISender),
}


@eval_app.command(
    "model",
    epilog="Example: toolcrib eval model cases.jsonl --provider anthropic --model claude-sonnet-5-5 --budget-usd 2",
)
def eval_model(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Case files and labelled folders, as in `toolcrib eval`.")
    ],
    provider: Annotated[Literal["anthropic", "openai"], typer.Option("--provider", help="Whose model.")],
    model: Annotated[str, typer.Option("--model", metavar="NAME", help="The model, as its vendor names it.")],
    ways: Annotated[
        str,
        typer.Option(
            "--ways",
            metavar="WAY,WAY",
            help="How tools reach the model: all (every permitted definition), search (the vendor's own tool search), "
            "toolcrib (the gateway's find_tools), select (Toolcrib's selection, made before).",
        ),
    ] = "all,search,toolcrib",
    repeat: Annotated[int, typer.Option("--repeat", min=1, max=50, help="How often each case is asked.")] = 3,
    sample: Annotated[
        int, typer.Option("--sample", min=0, help="At most N cases that a tool fits, and N that none fits; 0: all.")
    ] = 0,
    budget_usd: Annotated[
        float, typer.Option("--budget-usd", min=0.0, help="Nothing is sent that could go past it.")
    ] = 2.0,
    price_in: Annotated[
        float | None, typer.Option("--price-in", metavar="USD", help="For a million tokens of input.")
    ] = None,
    price_out: Annotated[
        float | None, typer.Option("--price-out", metavar="USD", help="For a million tokens of output.")
    ] = None,
    api_key: Annotated[
        str,
        typer.Option(
            "--api-key",
            metavar="REF",
            help="Where the key lies: env:NAME or file:PATH; default env:ANTHROPIC_API_KEY, env:OPENAI_API_KEY.",
        ),
    ] = "",
    base_url: Annotated[
        str,
        typer.Option(
            "--base-url",
            metavar="URL",
            help="Another place that speaks the vendor's wire; https, or http here.",
        ),
    ] = "",
    cache: Annotated[
        Path, typer.Option("--cache", metavar="FOLDER", help="Where answers are kept, so that none is paid for twice.")
    ] = Path("model-answers"),
    replay: Annotated[bool, typer.Option("--replay", help="Only answers that were kept; send nothing.")] = False,
    search: Annotated[
        Literal["bm25", "regex"], typer.Option("--search", help="Which of Anthropic's tool searches.")
    ] = "bm25",
    system: Annotated[
        Path | None, typer.Option("--system", metavar="FILE", help="Instructions instead of the built-in ones.")
    ] = None,
    max_turns: Annotated[int, typer.Option("--max-turns", min=1, max=100, help="Answers in one conversation.")] = 8,
    max_output: Annotated[int, typer.Option("--max-output", min=16, help="Tokens of one answer, at most.")] = 4_096,
    parallel: Annotated[int, typer.Option("--parallel", min=1, max=32, help="Conversations at a time.")] = 4,
    embedder: Annotated[
        str, typer.Option("--embedder", metavar="NAME", help="For folders: instead of the one in [retrieval].")
    ] = "",
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the sample and of the intervals.")] = 5,
    yes: Annotated[bool, typer.Option("--yes", help="Spend without asking.")] = False,
    as_json: AsJson = False,
) -> None:
    """Ask a real model, and say which tools it called, whether arguments fit, and what it took in tokens.

    Tasks and tool definitions go to the vendor. No tool is called: a call is answered with what the case's check says,
    or {"ok": true}. The cost is estimated and shown before anything is sent. Exit 1 when the budget ended the run or
    kept answers are missing, 3 when the vendor did.
    """
    chosen = _PROVIDERS[provider]
    price = _price(provider, model, price_in, price_out, replay=replay)
    plan = Plan(model=model, ways=_ways(ways), repeat=repeat, max_output=max_output, max_turns=max_turns)
    with ExitStack() as stack:
        places = places_of(paths, embedder=embedder, quiet=as_json, stack=stack)
        places = [sampled(place, sample=sample, seed=seed) for place in places]
        above = _instructions(system)
        kind: SearchKind = search
        starts = {
            place.name: Ways(place, chosen.vendor, gateway=GatewayDoor, kind=kind, system=above) for place in places
        }
        run = Run(places, starts, vendor=chosen.vendor, plan=plan)
        expected = run.expected(price)
        sender = purse = None
        if not replay:
            assert price is not None
            key = reveal(SecretRef(reference=api_key or chosen.key), root=folder())
            sender, purse = chosen.sender(key, base_url=base_url), Purse(price, budget_usd=budget_usd)
            stack.callback(sender.close)
            _agreed(run, expected, price, url=sender.url, budget_usd=budget_usd, yes=yes)
        kept = Kept(folder() / cache)
        asking = Asking(chosen.vendor, sender, kept=kept, purse=purse, max_output=plan.max_output, base_url=base_url)
        ran = run.run(asking, parallel=parallel, on_progress=_Progress())
    told = {
        "provider": provider,
        "model": model,
        "repeat": repeat,
        "seed": seed,
        **summarised(ran.attempts, ways=plan.ways, price=price, seed=seed),
        "cost": _cost(expected, price, spent_usd=purse.spent_usd if purse else 0.0, asking=asking),
        "notes": _notes(ran, run),
        "stopped": ran.stopped,
    }
    if as_json:
        print_json({**told, "attempts": [attempt_row(one) for one in ran.attempts]})
    else:
        print_told(told)
    if ran.by_fault:
        raise typer.Exit(3)
    raise typer.Exit(1 if ran.stopped or ran.not_kept else 0)


def _ways(text: str) -> tuple[Way, ...]:
    words = [part.strip() for part in text.split(",") if part.strip()]
    unknown = [word for word in words if word not in list(Way)]
    if unknown or not words:
        raise ConfigError(
            f"there is no way {unknown[0]!r}" if unknown else "no way is named",
            where="--ways",
            hint=f"some of {','.join(Way)}",
        )
    return tuple(dict.fromkeys(Way(word) for word in words))


def _price(provider: str, model: str, inward: float | None, outward: float | None, *, replay: bool) -> Price | None:
    """What the model costs; None where nothing is sent and nothing is known."""
    try:
        return price_of(provider, model, given=(inward, outward))
    except ConfigError:
        if replay and inward is None and outward is None:
            return None
        raise


def _instructions(path: Path | None) -> str:
    if path is None:
        return SYSTEM
    try:
        return (folder() / path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as fault:
        raise ConfigError("the instructions cannot be read", where=str(folder() / path), hint="a UTF-8 file") from fault


def _agreed(run: Run, expected: Sequence[Expected], price: Price, *, url: str, budget_usd: float, yes: bool) -> None:
    """Show the cost and ask. Exits with 1 where the answer is no."""
    total = sum(one.usd or 0.0 for one in expected)
    for one in expected:
        say(
            f"{one.way}: about {one.requests:,} requests, {one.input_tokens:,} tokens in, "
            f"{one.output_tokens:,} out, ${one.usd or 0.0:.2f}"
        )
    say(
        f"{counted(run.n_attempts, 'attempt')}, about ${total:.2f} in all, never more than ${budget_usd:.2f}; answers "
        f"that are kept cost nothing. Price: ${price.input_usd:g} in, ${price.output_usd:g} out for a million tokens "
        f"({price.source}). Thinking comes on top of the estimate."
    )
    if total > budget_usd:
        say("The budget will probably end the run early: --budget-usd, --sample, --repeat, --ways change that.")
    if not yes and not typer.confirm(f"Send tasks and tool definitions to {url}, and spend that?", err=True):
        say("nothing was sent")
        raise typer.Exit(1)


class _Progress:
    """Says now and then how far a run is."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        if time.monotonic() - self._last >= _SAY_EVERY_S:
            self._last = time.monotonic()
            say(f"{done} of {total} attempts")


def _cost(expected: Sequence[Expected], price: Price | None, *, spent_usd: float, asking: Asking) -> dict[str, Any]:
    return {
        "expected_usd": None if price is None else sum(one.usd or 0.0 for one in expected),
        "spent_usd": spent_usd,
        "price": None
        if price is None
        else {"input_usd": price.input_usd, "output_usd": price.output_usd, "source": price.source},
        "requests_sent": asking.n_sent,
        "answers_kept_before": asking.n_kept,
    }


def _notes(ran: Ran, run: Run) -> list[str]:
    notes = []
    if ran.stopped:
        notes.append(f"ended after {len(ran.attempts)} of {run.n_attempts} attempts: {ran.stopped}")
    if ran.not_kept:
        notes.append(f"{counted(ran.not_kept, 'attempt')} left out: an answer was not kept; run without --replay")
    if ran.left_out:
        notes.append(f"{counted(ran.left_out, 'case')} left out: they name candidates, which a model cannot be given")
    return notes
