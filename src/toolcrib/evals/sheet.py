"""What the pages share: a document that needs nothing but itself, its sections, tables and style.

Above: `page.py`, `shadow_page.py`. Below: `plots.py`, which escapes.

Invariants
1. No script, no address of another file.
2. It reads on a phone 360 units wide, on black and white paper, and in light and dark.
"""

from __future__ import annotations

from collections.abc import Sequence

from toolcrib.evals.plots import text


def document(title: str, parts: Sequence[str]) -> str:
    """The whole page. `parts`: HTML; empty ones are left out."""
    body = "\n".join(part for part in parts if part)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{text(title)}</title><style>{STYLE}</style></head>"
        f"<body><main>\n{body}\n</main></body></html>\n"
    )


def section(title: str, body: str) -> str:
    """A heading and what stands under it."""
    return f"<section><h2>{text(title)}</h2>{body}</section>"


def table(head: str, rows: Sequence[str], *, kind: str = "") -> str:
    """Rows under a head; where it is still too wide for the page it can be pushed aside.

    Args:
        kind: a class of the style sheet, or "".
    """
    named = f' class="{kind}"' if kind else ""
    return f'<div class="wide"><table{named}><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table></div>'


def tiles(given: Sequence[tuple[str, str, str]]) -> str:
    """The few figures to look at first: (name, value, more)."""
    cells = "".join(
        f'<div class="tile"><span>{text(name)}</span><b>{text(value)}</b><small>{text(more)}</small></div>'
        for name, value, more in given
    )
    return f'<section class="tiles">{cells}</section>' if cells else ""


def percent(value: float | None) -> str:
    """A share as percent; a dash where it is not known."""
    return "-" if value is None else f"{100 * value:.1f}"


def count(value: float | None) -> str:
    """A whole number with separators; a dash where it is not known."""
    return "-" if value is None else f"{value:,.0f}"


STYLE = """
:root{--ink:#1c1f23;--soft:#5b636d;--paper:#fff;--panel:#f5f6f7;--rule:#d5d9de;--mark:#1f5fa8;--bad:#a32020}
@media (prefers-color-scheme:dark){:root{--ink:#e7e9ec;--soft:#a3abb5;--paper:#15181b;--panel:#1e2226;--rule:#3a4148;
--mark:#7db4f0;--bad:#ff8f86}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:60rem;margin:0 auto;padding:1rem}
h1{font-size:1.5rem;line-height:1.25;margin:.5rem 0}
h2{font-size:1.1rem;margin:2rem 0 .5rem;padding-top:.6rem;border-top:1px solid var(--rule)}
header p{margin:.1rem 0;color:var(--soft)}
small{color:var(--soft);font-weight:400}
p{margin:.4rem 0;overflow-wrap:anywhere}
.alarm{border-left:.3rem solid var(--bad);padding:.3rem .6rem;background:var(--panel);font-weight:600}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:.6rem;margin-top:1rem}
.tile{background:var(--panel);border:1px solid var(--rule);border-radius:.4rem;padding:.5rem .7rem;display:flex;
flex-direction:column}
.tile span{font-size:.85rem;color:var(--soft);line-height:1.3}
.tile b{font-size:1.4rem;font-variant-numeric:tabular-nums;margin-top:auto}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.92rem}
th,td{text-align:left;padding:.3rem .6rem .3rem 0;border-bottom:1px solid var(--rule);vertical-align:top}
thead .n{white-space:normal}
thead th{color:var(--soft);font-weight:500;font-size:.82rem;vertical-align:bottom}
tbody th{font-weight:500;overflow-wrap:break-word}
.n,.span{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.draw{width:30%;min-width:5rem}
.id{font-family:ui-monospace,"SF Mono",Menlo,Consolas,monospace;font-size:.85rem;overflow-wrap:anywhere}
figure{margin:0;max-width:34rem}
figcaption{color:var(--soft);font-size:.88rem}
.plot{width:100%;height:auto;display:block}
.plot text{font:11px system-ui,sans-serif;fill:var(--soft)}
.cell{width:100%;height:1rem;display:block;margin-top:.2rem}
.axis{stroke:var(--soft);stroke-width:1}
.grid{stroke:var(--rule);stroke-width:.7}
.line{fill:none;stroke:var(--mark);stroke-width:2}
.other{fill:none;stroke:var(--soft);stroke-width:1;stroke-dasharray:4 3}
.dot,.bar{fill:var(--mark)}
.track{fill:var(--panel);stroke:var(--rule);stroke-width:.5}
.whisker{stroke:var(--ink);stroke-width:1;vector-effect:non-scaling-stroke}
.mark{fill:var(--paper);stroke:var(--ink);stroke-width:1.2}
.plot .in-mark{fill:var(--ink);font-weight:600;font-size:10px}
details{border-bottom:1px solid var(--rule);padding:.4rem 0}
summary{cursor:pointer;overflow-wrap:anywhere}
.road{list-style:none;padding-left:.6rem;margin:.2rem 0;border-left:2px solid var(--rule);font-size:.92rem}
.lost{color:var(--bad);font-weight:600}
@media (max-width:30rem){main{padding:.7rem}th,td{padding-right:.4rem}tbody th{overflow-wrap:anywhere}
thead .span{white-space:normal}table{font-size:.88rem}.draw{width:14%;min-width:2rem}}
@media print{:root{--ink:#000;--soft:#333;--paper:#fff;--panel:#fff;--rule:#999;--mark:#000;--bad:#000}
body{font-size:10.5pt}main{max-width:none;padding:0}figure,tr,.tile{break-inside:avoid}h2{break-after:avoid}
.dot,.bar,.track,.mark{print-color-adjust:exact;-webkit-print-color-adjust:exact}.bar{fill:#555}
.wide{overflow:visible}details>*{display:block}details::details-content{content-visibility:visible;display:block}}
"""
