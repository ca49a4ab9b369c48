"""The `toolcrib.toml` that `toolcrib init` writes: every table and key there is, what is optional commented out.

Comments begin with `# `; a setting that is commented out begins with `#` alone, so that removing one character puts it
in force. Numbers and switches shown are the defaults; names and lists are examples.
"""

from __future__ import annotations

from toolcrib.settings.toml_text import toml_string

_HEAD = """\
# Toolcrib: which tools there are, who may use them, and how they are chosen.
#
# Unknown keys are errors. Secrets never stand here: write "env:NAME" or "file:PATH" instead, in headers also
# "Bearer env:NAME". Relative paths are taken from the folder of this file.

[crib]
name = @NAME@
environment = "default"         # compared with a tool's `environments` and a caller's `environment`
policy = "policy.cedar"         # who may do what; without this line the built-in default holds
#region = "eu"
#store = ".toolcrib"            # the folder for catalog, approvals and traces
#lock = "toolcrib.lock"         # the approved definitions: keep it under version control
#profiles = "profiles"          # a folder of caller files: who policy changes and proofs are tried on

[policy]
#on_broken = "keep"             # a text that breaks while serving: keep the last good one, or deny everything


# --- who asks -------------------------------------------------------------------------------------------------------

# The local operator: commands without --as, and `toolcrib serve` over stdio.
[identity.local]
subject = "local-operator"
#kind = "user"                  # user, agent or workload
#on_behalf_of = ""
#tenant = "acme"
#roles = ["developer"]
#scopes = ["tickets.read", "tickets.write"]
#stage = "triage"               # the step of a workflow
#environment = "default"        # the crib's own unless set; so is region
#region = "eu"
#features = ["beta"]
#clearance = "internal"

# Callers over HTTP, each by a bearer token of its own (make one with: openssl rand -hex 32).
#[[identity.tokens]]
#token = "env:SUPPORT_AGENT_TOKEN"
#caller = { subject = "support-agent", kind = "agent", tenant = "acme", scopes = ["tickets.read"] }

# Callers by tokens of an identity provider (OIDC). Without claims: subject from sub, scopes from scope.
#[[identity.jwt]]
#issuer = "https://id.example.com"
#audience = ["https://crib.example.com/mcp"]
#tenants = ["acme"]             # tokens of others are refused; with several issuers each needs its own
#keys_url = "https://id.example.com/jwks.json"  # or keys_file = "jwks.json"
#algorithms = ["RS256", "ES256", "EdDSA"]
#clock_skew_s = 60.0
#refresh_s = 300.0              # the key set is read again after this, and for a key it does not know
#[identity.jwt.claims]
#subject = "sub"
#kind = { value = "user" }      # a constant
#tenant = "org.id"              # a claim within a claim
#roles = "/https:~1~1example.com~1roles"        # a JSON pointer, for names with dots or slashes
#scopes = "scope"               # a list, or words between spaces
#stage = "stage"
#environment = "env"
#region = "region"
#features = "features"
#clearance = "clearance"

# Agents that may act for a user whose token names them (act): what is permitted is the intersection of both.
#[[identity.agents]]
#caller = { subject = "planner", kind = "agent", tenant = "acme", scopes = ["tickets.read"] }

# A proxy that checks client certificates and reports whose it saw. From anybody else the header is refused.
#[[identity.proxies]]
#name = "edge"
#addresses = ["10.0.0.0/24"]
#header = "x-client-cert-subject"
#secret = "env:EDGE_SECRET"     # proves that it is this proxy, in the header secret_header
#secret_header = "x-toolcrib-proxy-secret"
#[[identity.proxies.clients]]
#certificate = "CN=billing-agent,O=Acme"
#caller = { subject = "billing-agent", kind = "agent", tenant = "acme" }

[identity]
#required_scopes = ["mcp"]      # what every caller over HTTP must hold
#resource = "https://crib.example.com/mcp"      # this gateway's address, as clients and identity providers know it
#authorization_servers = ["https://id.example.com"]     # the issuer above unless set; of several, none is named

# Callers' own credentials, for servers whose headers or env say caller:NAME.
#[[vault]]
#name = "tickets"
#subject = "ann"
#kind = "user"                  # an agent or workload of the same name is another caller
#tenant = "acme"
#secret = "env:ANN_TICKETS_TOKEN"
#[[vault]]
#name = "tickets"
#refresh = true                 # lists the tools; belongs to no caller
#secret = "env:TICKETS_TOKEN"


# --- servers --------------------------------------------------------------------------------------------------------
# What they list is out of service until it is approved: toolcrib refresh, toolcrib review, toolcrib approve.

"""

_EXAMPLE_SERVERS = """\
# A program that speaks MCP over stdio. No shell reads the command.
#[[servers]]
#id = "time"                    # begins every tool id: time.get_current_time
#transport = "stdio"
#command = ["uvx", "mcp-server-time"]
#args = ["--local-timezone", "UTC"]
#env = { LOG_LEVEL = "warning", TIME_API_KEY = "env:TIME_API_KEY" }
#cwd = "."
#namespace = "clock"            # how its tools are grouped; the id unless set
#trust = "untrusted"            # trusted: its annotations may lower a tool's risk
#enabled = true
#start_timeout_s = 30.0         # starting and listing
#call_timeout_s = 60.0
#max_pages = 1000
#max_list_bytes = 67108864
#allow_tools = ["read_*"]       # globs on tool names; the others are not taken in
#on_provenance = "block"        # warn: serve although what runs is not what was approved
#list_varies = false            # true: it lists other tools for other credentials
#refresh_s = 3600               # how old its list may become in a running gateway; 0: for ever

# A server over streamable HTTP.
#[[servers]]
#id = "tickets"
#transport = "http"
#url = "https://mcp.example.com/mcp"
#headers = { Authorization = "Bearer env:TICKETS_TOKEN" }       # or Bearer caller:tickets: the caller's own

# A saved tools/list answer.
#[[servers]]
#id = "archive"
#transport = "file"
#path = "archive.tools.json"
"""

_TAIL = """

# --- what you know about the tools ----------------------------------------------------------------------------------
# Rows match tool ids by glob (*, ?, [abc]); later rows win, key by key.
# A tool whose risk nobody says runs at the terminal and over stdio; over HTTP its calls wait for an approval.

#[[tools]]
#match = "tickets.*"
#owner = "support desk"
#namespace = "tickets"
#required_scopes = ["tickets.read"]     # a caller needs all of them
#stages = ["triage", "resolution"]      # empty lists restrict nothing
#environments = ["default"]
#tenants = ["acme"]
#regions = ["eu"]                       # where callers may be
#residency = ["eu"]                     # where it keeps or sends data
#risk = "read"                          # read, write or destructive
#cost = 0.0                             # in any one unit; between equals, less is preferred; so is latency
#latency_ms = 200.0
#data_class = "internal"
#enabled = true
#repeatable = false                     # true: the same call twice is meant (see [gate] duplicate_window_s)
#status = "active"                      # active, deprecated or retired
#replaced_by = "tickets.search"         # a tool id
#preload = false                        # listed by the gateway beside its own tools
#keywords = ["case", "incident"]        # words people use and the description lacks
#examples = ["Which tickets are open?"]

#[[tools]]
#match = "tickets.search"
#version = "2.1"                        # your name for what it does now
#aliases = ["tickets.find"]             # tool ids it had before


# --- choosing -------------------------------------------------------------------------------------------------------

[retrieval]
#embedder = "bundled"           # or quality, multilingual (extras of that name), model (see below), none: words only
#rerank = true                  # the learned ranker reorders the best candidates
#adapt = true                   # vectors are adapted to the tools in a caller's reach
#top_k = 50
#confidence_floor = 0.12        # 0 to 1; below it the answer is "nothing here does that"
#calibration = "toolcrib.calibration.json"   # of `toolcrib calibrate`
#learned = "toolcrib.learned"   # of `toolcrib learn`

# A model of your own: a folder with an ONNX or a sentence-transformers model, or a service with OpenAI's wire.
#[retrieval.model]
#kind = "onnx"                  # onnx, sentence-transformers, openai
#path = "models/my-model"
#name = "text-embedding-3-small"
#url = "https://api.openai.com/v1"
#api_key = "env:OPENAI_API_KEY"
#dimensions = 512
#query_prefix = "query: "
#document_prefix = "passage: "
#max_tokens = 256
#pooling = "mean"               # or cls
#timeout_s = 10

[selection]
#limit = 5                      # tools in one answer, at most; 50 at most
#token_budget = 6000            # tokens of their definitions together, at most

# Routing: which of several tools that do the same is preferred, and what is never used.
[routing]
#prefer = ["replacement", "health", "order", "risk", "cost", "latency"]
#near_score = 0.1               # scores within this share count as equal ...
#near_meaning = 0.9             # ... where the definitions mean the same, as a cosine

# Tools that serve one capability, in their owner's order.
#[[routing.equivalent]]
#tools = ["tickets.search", "archive.search"]

# Data of these tenants (globs; data classes too) stays within these places. Tools that say no residency are not used.
#[[routing.residency]]
#tenants = ["acme"]
#data_classes = ["personal"]
#within = ["eu"]

# When a tool's recent calls count as going badly.
[routing.health]
#window_s = 300.0
#min_calls = 5
#max_failed = 0.5
#max_late = 0.5

# In these stages nothing riskier than this is used; without stages, in all of them.
#[[routing.risk_ceilings]]
#stages = ["triage"]
#max_risk = "read"              # read or write

# What is offered while the index cannot be searched: globs; only what the caller may use anyway.
[fallback]
#tools = ["tickets.search"]


# --- calls ----------------------------------------------------------------------------------------------------------

[gate]
#unknown_risk = "auto"          # a tool without a risk: allow, needs_approval, or auto (needs_approval over HTTP)
#approval_ttl_s = 900.0         # how long an approval holds; 30 days at most
#calls_per_minute = 0           # of one tool by one subject; 0: no limit
#max_result_bytes = 16777216
#require_offer = false          # true: only tools offered to this caller within offer_ttl_s can be called
#offer_ttl_s = 1800.0
#duplicate_window_s = 60.0      # the same write again within this is refused; 0: only one with the same key
#idempotency_window_s = 86400.0 # a write under a caller's own idempotency key runs once within this; 30 days at most
#retry_reads = true             # a read that failed on its way is sent once more; writes never are
#content_types = ["text/*", "image/png", "application/json"]    # what results may hold; without this line: anything
#scan_results = false           # true labels results that look like instructions to the model

# Limits that calls share: those of one caller, tenant, tool or server.
#[[gate.limits]]
#by = "tenant"
#match = "*"
#calls_per_minute = 600
#concurrent = 20

# A server whose calls fail so often in a row is left alone for a while.
[gate.circuit]
#failures = 5                   # 0: never
#reset_s = 30.0

# Who else is asked to approve a call than whoever runs `toolcrib approvals`.
[approvals]
#webhook = "https://chat.example.com/approvals"
#webhook_secret = "env:WEBHOOK_SECRET"
#webhook_timeout_s = 5.0
#elicitation = false            # true: the MCP client asks its user, where policy lets callers approve their own

# When a gateway that runs asks its servers for their tools again.
[refresh]
#watch = true                   # listen to servers that say that their list changed
#every_s = 0                    # how old any list may become; 0: for ever
#at = ["03:30"]                 # times of the day, UTC
#debounce_s = 0.5               # a burst of changes is taken as one
#min_interval_s = 5.0           # least time between two lists of one server

# Who reviews definitions. `toolcrib review key NAME` makes a key and prints the row for it.
[review]
#require_signers = 0            # 2: an approval counts when two different people have signed it
#suppressions = "lint-suppress.toml"    # findings that were looked at and are not shown any more

#[[review.signers]]
#name = "ada"
#public_key = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="

[trace]
#keep_days = 30                 # 36500 at most
#record_arguments = false       # true keeps the arguments of calls, with secrets masked

# What other settings would have answered, recorded beside each answer and told to no caller: `toolcrib shadow report`.
#[shadow]
#candidate = "candidate.toml"   # its policy, retrieval, routing, selection, fallback and [[tools]] are tried
#share = 1.0                    # of selects that are tried
#present = "crib"               # all: every select is answered with all that is in reach; the crib is tried then

# Whose record a call names: its owner's tool says so, and a caller of another tenant is refused.
#[[resources]]
#type = "Ticket"
#tools = "tickets.*"
#argument = "/ticket_id"        # JSON pointer into the arguments
#lookup_tool = "tickets.owner_lookup"
#lookup_argument = "ticket_id"
#tenant = "/tenant"             # JSON pointer into the lookup's answer
#owner = "/owner"               # likewise; policies read it as context.target.owner
#check = "tenant"               # or policy: no comparison but the policy's own

# The same over HTTP; without lookup_tool and url, a resolver that was registered in Python is asked.
#[[resources]]
#type = "Order"
#tools = "orders.*"
#argument = "/order_id"
#url = "https://orders.example.com/orders/{id}"
#headers = { Authorization = "Bearer env:ORDERS_TOKEN" }
#tenant = "/tenant"
"""


def starter_toml(name: str, *, servers_toml: str = "") -> str:
    """A commented starter.

    Args:
        name: of the crib; any text.
        servers_toml: `[[servers]]` blocks in place of the commented examples.
    """
    # A folder's name may hold bytes that are no text; the crib's own name may not.
    shown = name.encode("utf-8", "replace").decode("utf-8").strip() or "crib"
    return _HEAD.replace("@NAME@", toml_string(shown)) + (servers_toml or _EXAMPLE_SERVERS) + _TAIL
