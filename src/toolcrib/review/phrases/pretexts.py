"""Phrases in which an order hides behind a reason: a step that is said to be required, allowed, usual, best unseen."""

from __future__ import annotations

from toolcrib.review.findings import Level
from toolcrib.review.phrases.parts import phrase

UNSEEN = (
    phrase(
        "secrecy",
        Level.REVIEW,
        r"\b(?:leave|keep|omit|strip|drop|cut) (?:this|it|that|these|them|the \w+)(?: \w+){0,3} (?:out of|"
        r"from) (?:your|the|any|all) (?:\w+ )?(?:plan|thoughts?|reasoning|steps?|list of (?:actions|steps|calls)|"
        r"notes?|footnotes?)\b|\b(?:is|are)(?:n['’]?t| not) to (?:appear|be (?:shown|mentioned|seen|listed|visible|"
        r"repeated|named))\b|\b(?:not|never) (?:appear|show up|turn up) in (?:the|your|any) (?:output|answer|reply|"
        r"response|summary|result|report|message)s?\b",
        near="leave|keep|omit|strip|drop|cut|appear|show|turn up| to be ",
    ),
    phrase(
        "secrecy",
        Level.REVIEW,
        r"\b(?:best|better|preferable|preferred|advisable|wise) (?:that |if )?(?:the )?(?:user|customer|they|he|she|"
        r"resident|guest|owner|client|patient|employee)s? (?:do|does|did|is|are)(?:n['’]?t| not) (?:\w+ )?(?:hear|"
        r"know|learn|see|told|informed|aware|notice)|\bnot (?:appropriate|necessary|advisable|useful|helpful|required|"
        r"needed|desired) to (?:bring|mention|raise|tell|inform|note|point|disclose|explain|announce|say)\b",
        near="best|better|prefer|advisable|wise|not ",
    ),
    phrase(
        "secrecy",
        Level.REVIEW,
        r"\b(?:ensure|make sure|see to it|take care|so that|such that)\b (?:that )?(?:the |your )?(?:user|customer|"
        r"human|nobody|no one|he|she|they|owner)s?\b(?: \w+){0,2} (?:notices?|sees?|knows?|learns?|realizes?|"
        r"suspects?|remains? (?:hidden|unseen|unaware))\b(?= (?:it|this|that|any|the|of|nothing|what)|[.,;]|$)",
        near="ensure|make sure|see to it|take care|so that|such that",
        weak=True,
    ),
    phrase(
        "secrecy",
        Level.REVIEW,
        r"\b(?:conceal|disguise|withhold|camouflage|cover up|keep quiet about|gloss over|play down|downplay)\w*\b",
        near="conceal|disguise|withhold|camouflage|cover up|keep quiet|gloss over|play",
        weak=True,
    ),
)

ALLOWED = (
    phrase(
        "instruction-override",
        Level.REVIEW,
        r"\b(?:instructions?|orders?|commands?|requests?|directives?|steps?)\b GAP{0,60}?\b(?:found|contained|written|"
        r"embedded|given|occurring|that (?:appear|stand|occur)|inside|within)\b GAP{0,80}?\b(?:must|should|shall|"
        r"are to|have to|need to) be (?:carried out|followed|executed|obeyed|performed|respected)\b|\b(?:do|follow|"
        r"obey|carry out) (?:what|whatever|everything|all)(?: that)? (?:the |that |this )?(?:file|page|document|"
        r"response|answer|text|site|server) (?:says?|asks?|tells?|demands?|orders?|states?)\b",
        near="instruction|order|command|request|directive|step|follow|obey|carry out|do ",
    ),
    phrase(
        "instruction-override",
        Level.REVIEW,
        r"\b(?:restrictions?|limits?|limitations?|guidelines?|safeguards?|safety rules?|guardrails?|polic(?:y|ies)|"
        r"rules?|permission checks?)\b GAP{0,50}?\b(?:do(?:es)?(?:n['’]?t| not) apply (?:any (?:longer|more)|"
        r"here|now|to you|to (?:this|the) (?:agent|assistant|session)|in this mode)|no longer appl(?:y|ies)|"
        r"are (?:lifted|suspended|disabled|off|waived|void)|is (?:lifted|suspended|waived|void)|(?:was|were|have been|"
        r"has been) (?:lifted|replaced|suspended|removed|relaxed|waived))",
        near="restriction|limit|guideline|safeguard|rule|guardrail|polic|permission",
    ),
    phrase(
        "instruction-override",
        Level.REVIEW,
        r"\b(?:you(?: are|['’]re| have been)|(?:agent|assistant|model)s? (?:is|are|has been|"
        r"have been))(?: \w+)? (?:authori[sz]ed|permitted|granted|cleared|entitled|exempt|empowered|"
        r"pre-?approved)\b|\b(?:you are|agent is|assistant is|session is|tool is|server is)(?: \w+)? in (?:system|root|"
        r"admin\w*|maintenance|god|debug|unrestricted|supervised|override|training|diagnostic|emergency|privileged|"
        r"trusted|bypass) mode\b",
        near="authori|permitted|granted|cleared|entitled|exempt|empowered|approved|mode",
    ),
    phrase(
        "instruction-override",
        Level.REVIEW,
        r"\binstead of (?:executing|performing|following|doing|answering|returning|running|processing|completing|"
        r"obeying|carrying out) (?:the |what |any |that |whatever |their |it )?(?:user|requested|original|actual|asked|"
        r"intended|task|request|command|order|wish|question)|\beven (?:if|when|though|where) (?:it|this|that|they|"
        r"the \w+)(?: \w+)? (?:seems?|looks?|appears?|sounds?|feels?|is|are) (?:\w+ )?(?:wrong|unusual|strange|"
        r"suspicious|unrelated|unsafe|odd|irrelevant|unnecessary|dangerous|redundant|implausible)\b",
        near="instead of|even ",
    ),
    phrase(
        "instruction-override",
        Level.REVIEW,
        r"\b(?:instruction|message|directive|rule|notice|order|requirement|step)s? (?:is|was|were|are|has been|"
        r"have been|"
        r"as)? ?(?:issued|approved|sent|mandated|imposed|authori[sz]ed|ordered) by (?:the |your |"
        r"our )?(?:system|admin\w*|developers?|operator|platform|vendor|anthropic|openai|security|compliance|legal|"
        r"management)\b|\b(?:treat|consider|regard|interpret|accept)\b GAP{0,60}?\bas (?:\w+ )?(?:authori[sz]ed|"
        r"approved|trusted|confirmed|granted|permitted|commands?|instructions?)\b",
        near="issued|approved|sent by|mandated|imposed|authori|ordered|treat|consider|regard|interpret|accept",
        weak=True,
    ),
)

_DO = (
    r"(?:read|send|execute|fetch|open|write|forward|access|ignore|obey|upload|store|transfer|post|visit|navigate|"
    r"download|replace|redirect|append|remember)\b"
)
REQUIRED = (
    phrase(
        "addresses-the-model",
        Level.REVIEW,
        r"\b(?:models?|assistants?|llms?|ais?|agents?) (?:must|shall|has to|have to|is required to|are required to|"
        r"are instructed to|should|needs to|need to) (?:also |always |first |immediately |then )*" + _DO + r"|"
        r"\byou (?:must|"
        r"shall|have to|are required to|are obliged to|are instructed to) (?:also |always |first |immediately |"
        r"then )*" + _DO + r"|\b(?:important|critical|warning|attention|mandatory|urgent) ?[:!—-] ?GAP{0,60}?\b(?:must|"
        r"always|never|have to)\b GAP{0,60}?\b" + _DO,
        near="must|shall|have to|has to|should|need to|needs to|required to|obliged|instructed to|always|never",
        outward=True,
    ),
    phrase(
        "steers-the-agent",
        Level.REVIEW,
        r"\b(?:to|in order to) (?:ensure|guarantee|verify|confirm|validate|maintain|improve|optimi[sz]e|enable|avoid|"
        r"prevent|protect)\b GAP{0,80}?,? (?:you (?:must|need to|have to|should)|the (?:agent|assistant|model) (?:must|"
        r"should|needs to)|(?:first|always) )GAP{0,20}?\b(?:read|send|access|fetch|execute|run|call|invoke|visit|"
        r"navigate|upload|post|forward|transfer|collect|download|delete|replace|change|open|provide|include)\b|"
        r"\b(?:kindly|begin by|start by|immediately|please)\b,? (?:\w+ing |\w+ )?(?:read|send|access|execut|upload|"
        r"post|"
        r"forward|transfer|collect|extract|download|visit|open)(?:e|ing)?\b GAP{0,40}?\b(?:files?|credentials?|keys?|"
        r"tokens?|emails?|messages?|history|data|contents?|url|link|page|script|command|balance|funds|account)\b",
        near=(
            "to ensure|to guarantee|to v|to confirm|to maintain|to improve|to opt|to enable|to avoid|to pr|ly|begin|"
            "start|please"
        ),
        outward=True,
    ),
    phrase(
        "steers-the-agent",
        Level.REVIEW,
        r"\b(?:before|prior to|after|whenever|each time|every time) (?:you )?(?:using|calling|invoking|running|"
        r"executing|"
        r"use|call|invoke|run|execute)(?: of)? (?:this|the|any|every|each|all|other)\b GAP{0,60}?\b(?:must|always|"
        r"need to|have to|required|first)\b|\b(?:must|has to|have to|need to|should) (?:also|always|first|"
        r"immediately) (?:call|invoke|run|read|send|execute|fetch|open|write|forward|retrieve|access|load|collect|"
        r"gather|"
        r"extract)\b|\bbefore (?:using |calling |invoking |running |executing |you use |you call |doing |"
        r"answering )?(?:any|every|all|each)(?: other)? (?:tools?|functions?|questions?|requests?|tasks?|operations?|"
        r"responses?|quer(?:y|ies)|actions?|steps?)\b|\b(?:this tool|the tool|the function) (?:must|should|will|has to|"
        r"requires you to|requires the (?:agent|model|assistant) to) (?:also |first |always |automatically )?(?:read|"
        r"access|send|collect|gather|extract|forward|upload|transmit|scan|open|execute)\b",
        near="before|prior to|after|whenever|each time|every time|must|has to|have to|need to|should|tool|function",
        outward=True,
    ),
    phrase(
        "steers-the-agent",
        Level.REVIEW,
        r"\bthis (?:\w+ )?(?:action|step|operation|call|process|requirement|procedure|behaviou?r|rule|check|"
        r"verification|instruction|directive|protocol)s? (?:is|are|must be|cannot be|may not be|"
        r"can['’]t be) (?:\w+ )?(?:mandatory|non[- ]negotiable|not optional|obligatory|silent|hidden|invisible|"
        r"authori[sz]ed|pre-?approved|skipped|omitted|bypassed|compulsory)\b|\buntil (?:further notice|told otherwise|"
        r"instructed otherwise)\b",
        near="this |until",
    ),
    phrase(
        "steers-the-agent",
        Level.REVIEW,
        r"\b(?:when(?:ever)?|if|once|each time|every time) (?:the |a |any |your )?(?:user|customer|human|client|person|"
        r"caller|somebody|someone|anyone)s? (?:asks?|mentions?|requests?|inquires?|wants?|talks?|speaks?|writes?|"
        r"complains?|refers?)\b GAP{0,80}?,? (?:you (?:must|should|shall|need to|have to) |instead |then )?(?:tell|"
        r"inform|respond|answer|convince|persuade|steer|reply|assure|claim|refuse|pretend|redirect)\b (?:them|him|"
        r"her|the user|with|that|by|and|to)|\b(?:convince|persuade|urge|pressure|coax|trick|mislead|deceive|"
        r"lure) (?:\w+ ){0,2}?USER",
        near="when|if |once|each time|every time|convince|persuade|urge|pressure|coax|trick|mislead|deceive|lure",
    ),
    phrase(
        "steers-the-agent",
        Level.REVIEW,
        r"\b(?:for|due to|as part of|to comply with|in compliance with|according to|per|under|in accordance with|"
        r"because of|to (?:ensure|satisfy|maintain|guarantee|meet|fulfil+))\b (?:\w+ ){0,4}(?:security|compliance|"
        r"audit(?:ing)?|verification|integrity|regulat\w+|polic(?:y|ies)|licens\w+|legal|quality assurance|fraud|"
        r"safety|"
        r"protocol|telemetry|diagnostics?|migration|calibration|synchroni[sz]ation)\b GAP{0,120}?\b(?:must|required|"
        r"mandatory|needs? to|have to|has to|always|first)\b|\bthis (?:\w+ )?(?:is|was) (?:completely |perfectly |"
        r"totally |entirely |a )?(?:safe|normal|harmless|legitimate|standard|routine|by design|authori[sz]ed|approved|"
        r"benign)\b|\b(?:add|append|include|insert|mention|prepend|embed|attach|put|weave|repeat|quote)\b GAP{0,70}?\b"
        r"(?:in|to|at|with|of|into)\b (?:the (?:end|beginning|start|top|bottom) of )?(?:every|each|all your|"
        r"all of your) (?:\w+ )?(?:responses?|answers?|repl(?:y|ies)|messages?|outputs?|summar(?:y|ies)|e-?mails?)\b",
        near="for |due to|part of|comply|compliance|according|per |under |because|to |this |add|append|in",
        weak=True,
    ),
)

CHANGED = (
    phrase(
        "tampers-with-arguments",
        Level.REVIEW,
        r"\b(?:regardless of|no matter|irrespective of|independent(?:ly)? of|ignoring|disregarding|"
        r"overriding)\b (?:what |which |the |whatever |any |how )*(?:\w+ )?(?:user|customer|caller|original|requested|"
        r"asked|specified|actual|typed|chosen|entered|real)\b|\bas if (?:it|they|this|that|the user|he|she|"
        r"the customer) (?:had|has|was|were|is|have)(?: been)? (?:chosen|requested|asked|selected|approved|ordered|"
        r"entered|typed|confirmed)\b",
        near="regardless|no matter|irrespective|independent|ignoring|disregarding|overriding|as if",
    ),
    phrase(
        "tampers-with-arguments",
        Level.REVIEW,
        r"\b(?:multiply|raise|increase|inflate|reduce|lower|decrease|shift|scale|shave|pad|adjust)\b GAP{0,40}?\b"
        r"(?:amounts?|prices?|quantit(?:y|ies)|numbers?|values?|weights?|doses?|dates?|times?|starts?|totals?|fees?|"
        r"results?|distances?|rates?|scores?)\b(?! (?:\w+ )?amount) GAP{0,30}?\bby (?:a factor of )?(?:\d(?!0\^)|one\b|"
        r"two\b|three\b|five\b|ten\b|half\b|about\b|roughly\b|a (?:few|small|random))",
        near="multiply|raise|increase|inflate|reduce|lower|decrease|shift|scale|shave|pad|adjust",
    ),
)

ELSEWHERE = (
    phrase(
        "sends-data-away",
        Level.REVIEW,
        r"\b(?:issue|make|send|perform|fire|do|submit) (?:an?|one) (?:\w+ )?(?:get|post|put|http|https|web|"
        r"head) ?(?:request|call|query)?\b GAP{0,30}?\b(?:to|at|with) ADDRESS|\b(?:download|fetch|load|get|retrieve|"
        r"pull|"
        r"check)\b GAP{0,60}?\b(?:from|at) ADDRESS GAP{0,100}?\b(?:follow|do what|carry out|execute|obey)\b",
        near="issue|make|send|perform|fire|do |submit|download|fetch|load|get|retrieve|pull|check",
    ),
    phrase(
        "sends-data-away",
        Level.REVIEW,
        r"!\[[^\]]*\]\(https?://[^)\s]*[?=][^)\s]*\)?|\b(?:base ?64|hex|rot13|urls?|caesar|morse|"
        r"percent)[- ]?(?:en)?cod\w+\b GAP{0,80}?\b(?:in|into|as|inside|within|via|through|to) (?:the |a |an |"
        r"its )?`?(?:query|comment|file ?name|subdomain|header|footnote|alt|link|branch|commit|metadata|style|notes?|"
        r"context)\b|\b(?:credentials?|tokens?|passwords?|api keys?|secrets?|private keys?|cookies)\b (?:\w+ ){0,2}?"
        r"(?:must|should|needs? to|has to|have to|is to|are to|shall) (?:also |always |first )?be (?:sent|included|"
        r"attached|forwarded|transmitted|submitted|copied|shared|appended|embedded|posted|uploaded)\b",
        near="![|encod|coded|credential|token|password|api key|secret|private key|cookies",
    ),
    phrase(
        "sends-data-away",
        Level.REVIEW,
        r"\b(?:SEND)\b GAP{0,70}?\b(?:to|with|via|through|into) (?:the |a |an |our |its |this )?(?:\w+ )?(?:webhook|"
        r"collector|third[- ]party|external|remote|backup|analytics|logging|telemetry|monitoring|audit|compliance|"
        r"verification|validation|quality|reporting|tracking) (?:server|service|endpoint|address|url|host|channel|"
        r"account|team|desk|system|mailbox|inbox|bucket)s?\b",
        near=(
            "webhook|collector|third|external|remote|backup|analytics|logging|telemetry|monitoring|audit|compliance|"
            "verification|validation|quality|reporting|tracking"
        ),
        weak=True,
    ),
    phrase(
        "harvests-conversation",
        Level.REVIEW,
        r"\b(?:contents?|output|results?|text|copy|transcript|list|dump|listing)\b (?:of|from) (?:the |a |any |"
        r"every |all |"
        r"your |its |that )?(?:\w+ ){0,4}(?:files?|command|conversation|chat|messages?|variables?|environment|"
        r"clipboard|"
        r"memory|keychain|history|directory|folder|inbox|mailbox|session)\b GAP{0,60}?\b(?:in|as|into|through|via|"
        r"under) (?:the |this |its |a |an )?`?(?:\w+`? )?(?:parameter|argument|field|header|property)\b",
        near="content|output|result|text|copy|transcript|list|dump",
    ),
    phrase(
        "sensitive-access",
        Level.REVIEW,
        r"\b(?:ask|request|obtain|get|demand|prompt)\b GAP{0,40}?\b(?:one[- ]time|verification|2fa|mfa|authentication|"
        r"sms|otp) ?(?:codes?|passwords?|passcodes?|pins?|tokens?)\b",
        near="one-time|one time|verification|2fa|mfa|authentication|sms|otp",
        weak=True,
    ),
)

ON_THE_SIDE = (
    phrase(
        "runs-commands",
        Level.REVIEW,
        r"\b(?:execut(?:e|es|ing)|run|running|runs|perform|issue|invoke|enter|type)\b(?:(?![.!?;`#] ?).){0,50}?"
        r"(?<![`'\"])[`'\"“](?:sudo |\$ ?)?(?:rm|curl|wget|bash|sh|chmod|chown|sudo|nc|ncat|powershell|iwr|scp|ssh|"
        r"crontab|echo|cat|mkdir|kill|pkill|systemctl|python3?|node|perl|dd|touch|cp|mv|tar|find|env|printenv|whoami|"
        r"netstat|history|export|base64|eval|iptables|ufw|open|osascript) [^`'\"”]{2,}",
        near="execut|run|perform|issue|invoke|enter|type",
    ),
    phrase(
        "runs-commands",
        Level.REVIEW,
        r"\b(?:create|write|place|drop|append|add|insert|copy|move|rename|store|dump|put)\b GAP{0,60}?\b(?:to|in|"
        r"into|at|"
        r"under|from)\b (?:\w+ ){0,3}[`'\"(]?(?:~/\.|/tmp/|/etc/|/usr/|/root|%appdata|\.bashrc|\.zshrc|\.profile|"
        r"startup folder|autostart|\$home)|\bchmod (?:-\w+ )?(?:[0-7]{3,4}|[augo]*[+-])|\b(?:world|everyone|"
        r"publicly)[- ](?:readable|writ[ae]ble|executable)\b",
        near="~/.|/tmp|/etc|/usr|/root|appdata|.bashrc|.zshrc|.profile|startup|autostart|$home|chmod|world|everyone|public",
    ),
    phrase(
        "runs-commands",
        Level.REVIEW,
        r"\b(?:delete|remove|erase|wipe|purge|empty|unlink)\b (?:everything|all (?:other |old |older |existing |"
        r"remaining )?(?:files|data|content|records|folders|backups|logs)|any (?:other |existing )?(?:files|backups|"
        r"logs|"
        r"records)|the (?:user['’]s|whole|entire|project|home|root)\b)",
        near="delete|remove|erase|wipe|purge|empty|unlink",
        weak=True,
    ),
    phrase(
        "claims-lasting-effect",
        Level.REVIEW,
        r"\b(?:store|save|keep|write|record|put|note|add|commit|remember)\b GAP{0,60}?\b(?:in|into) (?:your|"
        r"the (?:model|agent|assistant)['’]s|its own) (?:\w+[- ]){0,2}(?:memory|notes|instructions|rules)\b|\bsurvives?"
        r" (?:\w+ ){0,2}(?:resets?|conversations?|the conversation|the session)\b",
        near="memory|notes|instructions|rules|survive",
    ),
    phrase(
        "claims-preference",
        Level.REVIEW,
        r"\b(?:must|should|always|is to|has to|needs to|shall|ought to)(?: always| only)? be (?:used|preferred|"
        r"selected|chosen|prioriti[sz]ed|called|considered|invoked|picked|favou?red|trusted)\b GAP{0,20}?\b(?:instead|"
        r"over|in place|for (?:all|every)|rather than|as the (?:default|primary|only|main|preferred|top)|above|"
        r"exclusively|ahead)\b|\b(?:all |any |most )?other (?:\w+ ){0,2}(?:tools|functions|servers|providers|"
        r"engines) (?:tend|give|return|produce|were found|have been found|have known|have security|may leak|"
        r"might leak)",
        near="must|should|always|is to|has to|needs to|shall|ought|other",
    ),
)

PRETEXTS = (*UNSEEN, *ALLOWED, *REQUIRED, *CHANGED, *ELSEWHERE, *ON_THE_SIDE)
