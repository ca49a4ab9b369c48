"""A real model in the loop: which tools it calls when it is handed all of them, its vendor's search, or Toolcrib.

    case ─▶ way (what is in the first request) ─▶ conversation ─▶ Attempt ─▶ summary
                                                    │      ▲
                                             request│      │answer        cache and budget stand between: asking.py
                                                    ▼      │
                                              the vendor's SDK, or answers that were kept

Floor 4, within `evals/`. Above: `cli/eval_model.py`. Read `conversation.py` first. No tool is ever called in here:
a model's call is judged and answered with a result that the case gives, or `{"ok": true}`.
"""
