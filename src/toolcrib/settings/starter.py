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

# A server over streamable HTTP.
#[[servers]]
#id = "tickets"
#transport = "http"
#url = "https://mcp.example.com/mcp"
#headers = { Authorization = "Bearer env:TICKETS_TOKEN" }

# A saved tools/list answer.
#[[servers]]
#id = "archive"
#transport = "file"
#path = "archive.tools.json"
"""

_TAIL = """

# --- what you know about the tools ----------------------------------------------------------------------------------
# Rows match tool ids by glob (*, ?, [abc]); later rows win, key by key. A tool without a risk counts as destructive.

#[[tools]]
#match = "tickets.*"
#owner = "support desk"
#namespace = "tickets"
#required_scopes = ["tickets.read"]     # a caller needs all of them
#stages = ["triage", "resolution"]      # empty lists restrict nothing
#environments = ["default"]
#tenants = ["acme"]
#regions = ["eu"]
#risk = "read"                          # read, write or destructive
#cost = 0.0                             # kept with the tool; nothing weighs cost and latency yet
#latency_ms = 200.0
#data_class = "internal"
#enabled = true
#status = "active"                      # active, deprecated or retired
#replaced_by = "tickets.search"         # a tool id
#preload = false                        # listed by the gateway beside its own tools
#keywords = ["case", "incident"]        # words people use and the description lacks
#examples = ["Which tickets are open?"]


# --- choosing -------------------------------------------------------------------------------------------------------

[retrieval]
#embedder = "bundled"           # or none: words only
#top_k = 50
#confidence_floor = 0.12        # 0 to 1; below it the answer is "nothing here does that"

[selection]
#limit = 5                      # tools in one answer, at most; 50 at most
#token_budget = 6000            # tokens of their definitions together, at most

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

[trace]
#keep_days = 30                 # 36500 at most
#record_arguments = false       # true keeps the arguments of calls, with secrets masked

# Whose record a call names: its owner's tool says so, and a caller of another tenant is refused.
#[[resources]]
#type = "Ticket"
#tools = "tickets.*"
#argument = "/ticket_id"        # JSON pointer into the arguments
#lookup_tool = "tickets.owner_lookup"
#lookup_argument = "ticket_id"
#tenant = "/tenant"             # JSON pointer into the lookup's answer
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
