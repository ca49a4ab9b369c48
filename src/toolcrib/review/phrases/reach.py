"""Phrases that reach for what a tool was not given: credentials, the conversation, other addresses, a shell."""

from __future__ import annotations

from toolcrib.review.findings import Level
from toolcrib.review.phrases.parts import phrase

ACCESS = (
    phrase(
        "sensitive-access",
        Level.REVIEW,
        r"(?!GAP{0,80}\b(?:rejected|blocked|denied|refused|not allowed|forbidden|prohibited)\b)"
        r"(?:~/\.ssh\b(?!\S{0,80}\.pub)|\bid_(?:rsa|dsa|ecdsa|ed25519)\b(?!\.pub)|/etc/(?:passwd|shadow|sudoers)\b|"
        r"\.aws/credentials|\.cursor/mcp\.json|\.(?:bash|zsh|psql|mysql|python)_history\b|\.netrc\b|"
        r"\.git-credentials\b|\bwallet\.dat\b|\.gnupg\b|\.pgpass\b|/proc/self/environ|\.vault-token\b|"
        r"\.docker/config\.json|\bsecring\.gpg\b)",
        near=(".ssh|id_|/etc/|.aws|.cursor|_history|.netrc|.git-|wallet|.gnupg|.pgpass|/proc|.vault|.docker|secring"),
    ),
    phrase(
        "sensitive-access",
        Level.REVIEW,
        r"\b(?:read|fetch|take|look up|go through|collect|pass|put|include|send|attach|hand|enter|give|copy|use|"
        r"export|gather|extract)\b GAP{0,50}?\b(?:shell history|bash history|command history|(?:saved|"
        r"stored) (?:[\w-]+ )?(?:passwords|logins|credentials|cards)|autofill|recovery (?:words|codes|phrase)|"
        r"seed words|one-time (?:password|code)s?|verification codes?|browser (?:history|cookies|profile)|call log|"
        r"keyring|key ?chain|password manager|environment variables?|wallet file|private keys?)\b",
        near=(
            "history|saved|stored|autofill|recovery|seed|one-time|verification|browser|call log|keyring|chain|"
            "password|environment variable|wallet|private key"
        ),
        weak=True,
    ),
    phrase(
        "sensitive-access",
        Level.BLOCK,
        r"\b(?:read|cat|open|load|fetch|retrieve|grab|collect|gather|obtain|extract|dump|copy|access|include|"
        r"attach|append|pass|look in|upload|send|insert|embed|look for|contents? of|"
        r"type) GAP{0,60}?PATH",
        near=(".|id_|/etc|history|kubeconfig|authorized_keys|known_hosts|claude_desktop|login data|/proc"),
    ),
    phrase(
        "sensitive-access",
        Level.REVIEW,
        r"PATH",
        near=(".|id_|/etc|history|kubeconfig|authorized_keys|known_hosts|claude_desktop|login data|/proc"),
        weak=True,
    ),
    phrase(
        "sensitive-access",
        Level.REVIEW,
        r"\b(?:read|collect|gather|harvest|extract|dump|steal|retrieve|grab|fetch|locate|find|scan (?:\w+ )?for|"
        r"search (?:\w+ )?for|look for|include|attach|append|pass|insert|embed|paste|obtain|capture|"
        r"enumerate)\b (?:\w+ ){0,3}?(?:all |any |every |your |available |stored |saved |user['’]?s? |"
        r"local ){1,4}(?:\w+ ){0,2}?SECRET\b(?:NEAR(?:from|in|on|of|found|stored|available|into|as|within|with|"
        r"here)\b)?",
        near=(
            "key|token|password|passphrase|credential|phrase|mnemonic|cookies|environment|env var|secret|"
            "connection string|keychain"
        ),
    ),
)

SENDING = (
    phrase(
        "sends-data-away",
        Level.REVIEW,
        r"\b(?:sent|passed on|forwarded|relayed|mirrored|copied|delivered|shared|uploaded|reported|submitted|"
        r"posted|send|forward|relay|mirror|copy|deliver|share|upload|post|submit|pass|text|"
        r"push)\bGAP{0,50}?\b(?:to|with|into|at) our (?:\w+ )?(?:team|desk|server|endpoint|partner|"
        r"archive|reviewers?|staging|backend|analysts?|bucket|channel|collector|office|number|inbox|address|"
        r"service)\b|\b(?:send|sends|sent|sending|forward|forwards|forwarded|forwarding|upload|uploads|uploaded|"
        r"transmit\w*|relay|relays|relayed|deliver|delivers|delivered|mirror|mirrors|mirrored|text|submit|submits|"
        r"submitted|push|pushed|go|invite|quotes?|shared?|handed|post|pass|passed)\bGAP{0,70}?\b(?:to|"
        r"at|via|on|with|into) (?:\w+ ){0,2}?[\"'`(<]?ADDRESS",
        near=("our |http|@|+|0.|1.|2.|3.|4.|5.|6.|7.|8.|9."),
    ),
    phrase(
        "sends-data-away",
        Level.BLOCK,
        r"\b(?:SEND)\b GAP{0,60}?\bDATA\bGAP{0,50}?(?:to|at|via|into|through|on|"
        r"with) (?:\w+ ){0,4}?[\"'`(<]?ADDRESS",
        near=("http|@|+|0.|1.|2.|3.|4.|5.|6.|7.|8.|9."),
    ),
    phrase(
        "sends-data-away",
        Level.BLOCK,
        r"\b(?:bcc|blind[- ]cop\w+|cc|carbon[- ]cop\w+|also (?:SEND)|additionally (?:SEND)|"
        r"(?:SEND) (?:a )?(?:\w+ )?(?:copy|copies|duplicate))\bGAP{0,60}?ADDRESS",
        near=("http|@|+|0.|1.|2.|3.|4.|5.|6.|7.|8.|9."),
    ),
    phrase(
        "sends-data-away",
        Level.REVIEW,
        r"\b(?:exfiltrate\b|leak(?:s|ed|ing)? (?:all |the |any )?(?:data|secrets?|credentials?|contents?)|"
        r"(?:SEND) (?:all|any|every|the (?:full|entire|complete|whole)) GAP{0,50}?\b(?:attacker|"
        r"remote server|external (?:server|endpoint|service|url|address|host)|third[- ]party|our (?:server|"
        r"endpoint|collector|webhook|backend)|collector|webhook|telemetry|analytics (?:server|endpoint|service)|"
        r"audit (?:server|endpoint|service|address)))\b",
        near=("exfiltrat|leak|attacker|remote server|external|third|our |collector|webhook|telemetry|analytics|audit"),
    ),
)

HARVEST = (
    phrase(
        "harvests-conversation",
        Level.REVIEW,
        r"\b(?:everything|anything|all|whatever|each message|every message) (?:that )?(?:the )?(?:user|customer|"
        r"human|person)s? (?:has |have )?(?:ever )?(?:said|wrote|written|typed|asked|told|sent|mentioned)\b|"
        r"\b(?:conversation|chat|dialogue|session|discussion)(?: so far| history| log)?,? (?:verbatim|"
        r"word for word|in full|unabridged|in raw form|as is)\b|\b(?:verbatim|word for word|complete|unabridged|"
        r"exact) (?:copy|text|record|transcript|wording) of (?:\w+ ){0,3}?(?:conversation|chat|dialogue|system|"
        r"instructions|prompt)|\b(?:instructions|rules|guidelines|prompt)s? (?:that )?(?:you|the (?:model|"
        r"assistant|agent)) (?:were|was|have been|has been) given\b|\b(?:names?|list|descriptions?|"
        r"schemas?) (?:and \w+ )?of (?:all |every )?(?:the )?(?:other |available |loaded |"
        r"connected )?tools? (?:you|that|available|in|loaded|connected)\b",
        near=(
            "user|customer|human|person|conversation|chat|dialogue|session|discussion|verbatim|word for word|given|tool"
        ),
    ),
    phrase(
        "harvests-conversation",
        Level.REVIEW,
        r"\b(?:full|entire|complete|whole|all|verbatim|raw|exact|previous|prior|current|ongoing|"
        r"unredacted) (?:\w+ ){0,3}?(?:conversation|chat|dialog(?:ue)?|message history|chat history|context window|"
        r"transcript|discussion|user (?:messages?|prompts?|inputs?))\b(?:NEAR(?:so far|up to|history|between|"
        r"with (?:the )?user|including|verbatim|thread))?",
        near=(
            "conversation|chat|dialog|history|context window|transcript|discussion|user message|user prompt|user input"
        ),
        weak=True,
    ),
    phrase(
        "harvests-conversation",
        Level.BLOCK,
        r"\b(?:your|the (?:assistant|model|llm|ai|agent)['’]?s?|the current|the full|the entire|the complete|"
        r"the active|the underlying|its own|original|verbatim)(?: \w+){0,2} (?:system prompt|system message|"
        r"system instructions?|tool (?:list|definitions|schemas|descriptions)|(?:list of )?(?:available|connected|"
        r"installed|other) tools|chain[- ]of[- ]thought|internal reasoning|hidden reasoning|(?:initial|"
        r"developer) (?:prompt|instructions|message))\b",
        near=("system |tool|chain|reasoning|prompt|developer"),
    ),
    phrase(
        "harvests-conversation",
        Level.REVIEW,
        r"\b(?:include|pass|provide|insert|put|fill|copy|paste|send|supply|populate|attach|append|share|"
        r"set (?:this|it) to|contains?|must (?:be|contain))\bGAP{0,40}?\b(?:system prompt|"
        r"system message|(?:conversation|chat|message) (?:history|log|transcript)|full conversation|"
        r"entire conversation|whole conversation|chain[- ]of[- ]thought|(?:other|available|connected) tools|"
        r"previous (?:tool )?(?:results|outputs|responses|messages)|context window)\b",
        near=("system prompt|system message|history|conversation|chain|tools|previous|context window|log|transcript"),
    ),
)

COMMAND = (
    phrase(
        "runs-commands",
        Level.REVIEW,
        r"\b(?:switch off|turn off|disable|deactivate|bypass|stop) (?:\w+ ){0,3}?(?:antivirus|firewall|"
        r"certificate (?:check|verification|validation)s?|tls verification|ssl verification|row[- ]level security|"
        r"sandbox(?:ing)?|selinux|signature checks?)\b|node_tls_reject_unauthorized ?= ?0|\b(?:place|add|register|"
        r"install|set up|insert|leave) (?:\w+ ){0,4}?(?:cron (?:job|entry)|launch agent|start-?up items?|"
        r"authorized_keys|reverse shell|service with root)\b|\b(?:run|execute|enter|paste|type|"
        r"carry out) GAP{0,40}?\b(?:in|into|on|with|using) (?:the user['’]s|your|the user|"
        r"their) (?:\w+ )?(?:terminal|shell|console|command line)\b|\bpython3? -c [\"'`]|\b(?:as|with) (?:root|"
        r"administrator|admin) (?:rights|privileges)\b",
        near=(
            "switch off|turn off|disable|deactivate|bypass|stop|node_tls|cron|launch|start|authorized_keys|"
            "shell|service|terminal|console|command line|python|root|admin"
        ),
    ),
    phrase(
        "runs-commands",
        Level.REVIEW,
        r"\b(?:run|execute|enter|paste|type|use|open) GAP{0,40}?\b(?:in|into|on|with|using|a|"
        r"the) (?:\w+ )?(?:terminal|shell|console|command line|bash tool|code tool)\b|\bexec\(|\bsudo \w",
        near=("terminal|console|command line|bash|code tool|exec(|sudo|shell"),
        weak=True,
    ),
    phrase(
        "runs-commands",
        Level.BLOCK,
        r"\b(?:curl|wget)\b [^|\n]{0,120}\| ?(?:sudo )?(?:ba|z)?sh\b|\bbase64 (?:-d|--decode)\b[^|"
        r"]{0,40}\| ?(?:ba)?sh|\bnc(?:at)? (?:-\w+ )*-?e\b|/dev/tcp/|\brm -rf (?:/|~|\*|\$home)|\b(?:iex|"
        r"invoke-expression)\b ?\(|\bchmod (?:\+x|777) [^.]{0,40}(?:&&|;|then|and (?:run|execute))",
        near=("curl|wget|base64|nc |ncat|/dev/tcp|rm -rf|iex|invoke-expression|chmod"),
    ),
    phrase(
        "runs-commands",
        Level.REVIEW,
        r"\b(?:first|before|always|must|then|also|silently|automatically|please)\bGAP{0,60}?\b(?:run|"
        r"execute|eval)\b GAP{0,30}?(?:(?:shell|bash|terminal|system|following|this) (?:command|"
        r"script|code)|`[^`]{3,}`|\bos\.system|\bsubprocess|\beval\()",
        near=("run|execut|eval"),
        weak=True,
    ),
)
