"""Who asks: callers as trusted code at the boundary establishes them. Nothing else builds a `Caller`.

`callers` reads what the operator wrote down, `tokens` the table of bearer tokens, `keys` API keys, `jwt` signed tokens
(`issuers` says whose, `jwks` and `fetch` bring their keys, `claims` and `delegation` make callers of them), `proxy`
certificates that a trusted proxy reports. `standing` says who is revoked, `vault` which credential is a caller's own,
`refused` why somebody was not let in.
"""
