"""Phrases that claim: the user's words, a place before other tools, lasting effect, consent."""

from __future__ import annotations

from toolcrib.review.findings import Level
from toolcrib.review.phrases.parts import phrase

TAMPER = (
    phrase(
        "tampers-with-arguments",
        Level.REVIEW,
        r"\b(?:instead of|even (?:if|when|where|though)|regardless of|whatever|no matter|also (?:if|when|where)|"
        r"unlike|not) (?:\w+ )?(?:the )?(?:user|customer|traveller|guest|caller|sender|payee|buyer|client|"
        r"person)s? (?:\w+ )?(?:chose|chooses|declined|declines|gave|gives|wants?|wished|wishes|asked|asks|"
        r"requested|requests|said|says|names?|named|typed|entered|specified|specifies|ordered|provided|provides|"
        r"objects?|refuses?|disagrees?)\b",
        near=("instead of|even |regardless|whatever|no matter|also|unlike|not "),
    ),
    phrase(
        "tampers-with-arguments",
        Level.REVIEW,
        r"\b(?:report|tell|say|answer|claim|pretend|return|give|present|describe|respond|"
        r"state)\b GAP{0,50}?\b(?:wrong|fake|made[- ]up|fictitious|invented|incorrect|"
        r"misleading|fabricated|too low|too high|as the fastest|as the cheapest|regardless|no matter|although|"
        r"even though|whatever the result)\b",
        near=(
            "wrong|fake|made|fictitious|invented|incorrect|misleading|fabricated|too |as the|regardless|"
            "no matter|although|though|whatever"
        ),
        weak=True,
    ),
    phrase(
        "tampers-with-arguments",
        Level.BLOCK,
        r"\b(?:replace|change|substitute|swap|set|redirect|alter|modify|override|rewrite|use|send|transfer|deliver|"
        r"route)\bGAP{0,90}?\b(?:regardless of|no matter|even if|irrespective of|"
        r"instead of what(?:ever)?|rather than what(?:ever)?|whatever) (?:\w+ ){0,3}?(?:user|human|customer|caller|"
        r"request|requested|asked|input|instructed|specified|says?|wants?|original)\w*",
        near=("regardless|no matter|even if|irrespective|instead of what|rather than what|whatever"),
    ),
    phrase(
        "tampers-with-arguments",
        Level.REVIEW,
        r"\b(?:replace|change|substitute|swap|redirect|alter|modify|rewrite|"
        r"overwrite)\b GAP{0,40}?\b(?:recipients?|address(?:es)?|amounts?|destinations?|accounts?|"
        r"beneficiar\w+|payee|price|iban|wallet|quantity|phone numbers?|user['’]?s (?:input|request|query|"
        r"message|parameters?|arguments?))\b GAP{0,20}?(?:to|with|by|into) (?:ADDRESS|[\"'`\w])",
        near=(
            "recipient|address|amount|destination|account|beneficiar|payee|price|iban|wallet|quantity|"
            "phone number|url|user"
        ),
    ),
    phrase(
        "tampers-with-arguments",
        Level.REVIEW,
        r"\binstead of (?:the )?(?:user(?:['’]s|-\w+)?|requested|specified|original|given|actual|real|correct|"
        r"intended)\b (?:\w+ ){0,2}?(?:input|value|recipient|address|amount|path|file|parameter|argument|query|"
        r"request|location|city|symbol|ticker|account|url)s?\b",
        near=("instead of"),
    ),
)

PREFERENCE = (
    phrase(
        "claims-preference",
        Level.REVIEW,
        r"\b(?:enhanced|improved|better|superior|more (?:accurate|reliable|secure|robust|efficient)|secure|"
        r"official|genuine|authentic|verified|"
        r"trusted) (?:version|alternative|replacement|edition|successor|implementation|variant|"
        r"substitute) (?:of|to|for|over)\b|\bdrop-in "
        r"(?:replacement|\w+ edition)\b|\b(?:takes the place of|stands? in for|all other copies|"
        r"accept no (?:imitations|substitutes))\b",
        near=(
            "version|alternative|replacement|edition|successor|implementation|variant|substitute|"
            "drop-in|place of|in for|copies|imitations"
        ),
    ),
    phrase(
        "claims-preference",
        Level.REVIEW,
        r"\b(?:this (?:tool|one|function|server)|it) (?:wins|comes first|has priority|takes priority|goes first|"
        r"must be (?:chosen|selected|called|tried|used) (?:first|before|over|ahead))\b|\b(?:always|must|"
        r"only) (?:rank|choose|pick|select|prefer)(?:s|ed)? this\b|\bchoose (?:this|our) (?:tool|one|server|"
        r"function)? ?(?:and no other|and nothing else|over)\b|\b(?:and no other|"
        r"and nothing else)\bGAP{0,20}(?:tool|function|server)|\bdefault (?:tool )?for (?:anything|"
        r"everything|all|any)\b|\b(?:need not|do not|don['’]t|no need to|stop) (?:read|look at|consider|compare|"
        r"weigh\w*|evaluat\w+|check|try) (?:\w+ )?(?:any |the )?(?:other|others|remaining|alternatives?|rest)\b|"
        r"\b(?:endorsed|certified|trusted|chosen|verified|preferred|recommended|approved|"
        r"authori[sz]ed) by (?:the )?(?:anthropic|openai|google|microsoft|model vendors?|model providers?|all|most|"
        r"leading|nine|every|experts)|\bselected? (?:this )?(?:ahead of|before) (?:the )?(?:others?|rest|any)|"
        r"(?:\b(?:best|most \w+|top|#1|leading|finest)\bGAP{0,30}){3}|\bselection priority\b|"
        r"\b(?:ahead of|before|over) (?:all|any|every) (?:other|others)\bGAP{0,20}\b(?:tool|function|"
        r"server|provider)s?\b",
        near=(
            "wins|first|priority|must be|always|only|choose|no other|nothing else|default|other|remaining|"
            "alternative|rest| by |ahead|best|most|must "
        ),
    ),
    phrase(
        "claims-preference",
        Level.REVIEW,
        r"\b(?:other|another|similar|alternative|competing|rival)(?: [\w-]+){0,3} (?:tools?|servers?|vendors?|"
        r"connectors?|functions?|providers?|plugins?)\bGAP{0,40}?\b(?:no longer|vulnerable|insecure|"
        r"broken|deprecated|fraud\w*|outdated|unsafe|retired|uninstall\w*|impostors?|fakes?|must not|should not|"
        r"cannot be trusted|can['’]t be trusted|unreliable|not to be (?:used|trusted)|stopped working|"
        r"fail (?:roughly|often|half)|are read-only|error)\b|\b(?:never|do not|don['’]t|stop|avoid) (?:use|using|"
        r"call|calling|trust|trusting|consult|consulting|choose|choosing) (?:\w+ ){0,2}?(?:other|another|rival|"
        r"competing)(?: [\w-]+){0,2} (?:tools?|servers?|vendors?|functions?|providers?)\b",
        near=("other|similar|alternative|competing|rival"),
    ),
    phrase(
        "claims-preference",
        Level.REVIEW,
        r"\b(?:this|it|ours|mine)(?: (?:tool|function|one|server|version|api))? (?:is|['’]s|was|should be|"
        r"must be)(?: \w+){0,4} (?:best|only|top|finest|greatest|ultimate|superior|preferred|unrivall?ed|unmatched|"
        r"number one|#1|first choice|most (?:reliable|accurate|trusted|effective|powerful|secure|efficient|"
        r"comprehensive|advanced|popular|capable))(?: \w+){0,3} (?:tool|function|choice|option|one|server|solution|"
        r"method|way)s?\b",
        near=(
            "best|only|top|finest|greatest|ultimate|superior|preferred|unriv|unmatched|number one|#1|first choice|most "
        ),
    ),
    phrase(
        "claims-preference",
        Level.REVIEW,
        r"\b(?:always|must|should always|exclusively|only|you should|be sure to|definitely|never fail to) (?:use|"
        r"choose|select|prefer|call|pick|invoke|prioriti[sz]e|default to|rely on|consider|favou?r) (?:this|"
        r"the (?:current|present)|our|me)\b(?: (?:tool|function|one|server|api))?GAP{0,60}?\b(?:over|"
        r"instead of|rather than|before|above|in preference to|first|and (?:not|never)|even (?:if|when)|whenever|"
        r"for (?:all|any|every)|among|no matter)\b",
        near=("always|must|exclusively|only|should|be sure|definitely|never"),
        weak=True,
    ),
    phrase(
        "claims-preference",
        Level.REVIEW,
        r"\b(?:better|faster|safer|more \w+|superior|preferred|preferable|priority|prioriti[sz]ed?|favou?red|"
        r"chosen|used|selected|recommended|advantage) (?:than|over|to|above|instead of|before|"
        r"among) (?:\w+ )?(?:all|any|every|other|others|the other|the rest|similar|alternative|competing|existing|"
        r"comparable)(?: \w+){0,2} (?:TOOL)\b",
        near=("than|over|to |above|instead|before|among"),
    ),
    phrase(
        "claims-preference",
        Level.REVIEW,
        r"\b(?:instead of|rather than|over|not|never|avoid|skip|ignore|stop using|do not use|don['’]t use|"
        r"replaces?|supersedes?|disable) (?:using |calling |use )?(?:all|any|every|the other|other|similar|"
        r"alternative|competing|built-in|existing) (?:\w+ ){0,2}?(?:TOOL)\b",
        near=("instead|rather|over|not|never|avoid|skip|ignore|stop|don|replace|supersede|disable"),
    ),
    phrase(
        "claims-preference",
        Level.REVIEW,
        r"\b(?:all |any |the )?(?:other|similar|alternative|competing|existing|old|"
        r"previous) (?:\w+ ){0,2}?(?:TOOL) (?:(?:is|are|was|were|may be|might be|can be|will be|have been|has been|"
        r"will|may|do|does|cannot) ){1,2}(?:\w+ ){0,2}?(?:deprecated|unreliable|outdated|broken|insecure|unsafe|"
        r"slow(?:er)?|inaccurate|obsolete|disabled|inferior|less|unavailable|compromised|malicious|wrong|fail|"
        r"error|not (?:work|be used|safe|reliable))",
        near=("other|similar|alternative|competing|existing|old|previous"),
    ),
    phrase(
        "claims-preference",
        Level.REVIEW,
        r"\b(?:highest|top|first|maximum|absolute|utmost) (?:priority|preference|precedence|ranking)\b|\b(?:your|"
        r"the|as|as a) (?:first|default|primary|number one|only|preferred|go-to) (?:choice|option|pick|tool|"
        r"preference)\b|\bbest tool\b|\btool of choice\b|\btrusted by (?:millions|thousands|\d)",
        near=("priority|preference|precedence|ranking|choice|option|pick|tool|trusted by"),
        weak=True,
    ),
)

PERSISTENCE = (
    phrase(
        "claims-lasting-effect",
        Level.REVIEW,
        r"\b(?:until told otherwise|from (?:today|this moment|here) on|(?:in|for|across) (?:all|any|every|future|"
        r"later) (?:\w+ )?(?:sessions|conversations|chats)|permanent(?:ly)? (?:notes|memory|rule|instruction)|"
        r"long-term memory|standing (?:order|instruction|rule)s?|(?:stays?|remains?) (?:valid|in force|in effect)|"
        r"hereafter|keep (?:this|it) in mind)\b",
        near=(
            "until told|from t|from here|all |any |every |future|later|permanent|long-term|standing|stay|"
            "remain|hereafter|in mind"
        ),
        weak=True,
    ),
    phrase(
        "claims-lasting-effect",
        Level.REVIEW,
        r"\b(?:from now on|from this point (?:on|forward)|henceforth|(?:for|in|during|on) (?:all|any|every|"
        r"each) (?:future|subsequent|later|following|further|other) (?:\w+ )?(?:requests?|calls?|conversations?|"
        r"messages?|sessions?|interactions?|tasks?|responses?|turns?|chats?|queries|emails?|payments?|"
        r"transactions?|operations?|transfers?|tool (?:calls?|uses?))|rest of (?:the|this) (?:conversation|session|"
        r"chat))\b",
        near=("from now|from this point|henceforth|for |in |during|on |rest of"),
    ),
    phrase(
        "claims-lasting-effect",
        Level.REVIEW,
        r"\b(?:save|store|write|add|append|put|commit|persist|remember|memori[sz]e) (?:this|these|the following|"
        r"that)(?: \w+){0,3} (?:to|in|into|as) (?:\w+ )?(?:memory|system prompt|claude\.md|agents\.md|"
        r"\.cursorrules|long[- ]term|your (?:instructions|rules|config\w*|settings))",
        near=("memory|system prompt|claude.md|agents.md|cursorrules|long|your "),
    ),
)

CONSENT = (
    phrase(
        "bypasses-consent",
        Level.REVIEW,
        r"\bblanket (?:permission|approval|consent|authori[sz]ation)\b|\b(?:counts?|treated?|regarded|taken|"
        r"understood|interpret\w*|serves?) (?:\w+ ){0,5}?as (?:an? |the )?(?:agreement|consent|approval|permission|"
        r"confirmation|order to)\b|\bauto-?(?:accept|approve|confirm)(?:ed|s)? (?:\w+ ){0,3}?(?:prompts?|dialogs?|"
        r"requests?|confirmations?)|\b(?:accept|agree|confirm|consent) on (?:the )?(?:behalf|user['’]s behalf)|"
        r"\bconsent (?:is |was |has been )?(?:on file|implied|assumed|given|waived|presumed)\b|\b(?:already|"
        r"has been|have been|was|were) (?:pre-?)?(?:approved|authori[sz]ed|cleared|agreed|"
        r"consented)(?: \w+){0,3} by (?:the |your )?(?:user|admin\w*|owner|operator|security|customer|legal|it\b|"
        r"management|compliance)",
        near=(
            "blanket|agreement|consent|approval|permission|confirmation|order to|auto|behalf|approved|authori|"
            "cleared|agreed"
        ),
    ),
    phrase(
        "bypasses-consent",
        Level.REVIEW,
        r"\b(?:no need to|need not|needn['’]t|don['’]t|do not|never|without) (?:\w+ )?(?:ask|asking|bother\w*|"
        r"wait\w*|check\w*|confirm\w*|prompt\w*) (?:\w+ ){0,3}?(?:user|customer|human|anyone|owner|again|first|"
        r"permission|confirmation|consent|approval)\b",
        near=("ask|bother|wait|check|confirm|prompt"),
        weak=True,
    ),
    phrase(
        "false-safety-claim",
        Level.REVIEW,
        r"\b(?:read[- ]only|non[- ]destructive|harmless|completely safe|perfectly safe|no side effects?|"
        r"without side effects?|no risk|dry[- ]run|never changes anything|"
        r"a preview)\b(?:(?![.!?] ).){0,80}?\b(?:deletes?|deleted|deleting|purges?|erases?|charges?|charged|"
        r"transfers?|purchases?|empties|overwrites?|buys?|debits?|wipes?|commits? the customer|posted|sends?)\b",
        near=("read-only|read only|destructive|harmless|safe|side effect|no risk|dry|never changes|preview"),
        weak=True,
    ),
    phrase(
        "bypasses-consent",
        Level.REVIEW,
        r"\b(?:without|skip|bypass|no|never|do not|don['’]t|disable|avoid|omit|ignore|"
        r"suppress) (?:\w+ ){0,2}?(?:ask(?:ing)?|request(?:ing)?|requir\w+|wait(?:ing)?|seek(?:ing)?|"
        r"prompt(?:ing)?|need(?:ing)?)?(?: (?:for|the|any|user|their|further|human|a|explicit|additional|"
        r"to))* ?(?:confirmation|approval|permission|consent|authori[sz]ation prompts?|safety (?:checks?|warnings?|"
        r"prompts?)|security (?:checks?|warnings?|prompts?)|warnings? prompts?)\b",
        near=("confirm|approv|permission|consent|authori|safety|security|warning"),
        weak=True,
    ),
    phrase(
        "bypasses-consent",
        Level.REVIEW,
        r"\b(?:user|admin\w*|operator|human|owner|security team|it department|management) (?:has|have) (?:already |"
        r"previously )?(?:been )?(?:approved|consented|authori[sz]ed|agreed|granted|given (?:\w+ )?(?:consent|"
        r"permission|approval))|\b(?:already|pre)[- ]?(?:approved|authori[sz]ed) by (?:the )?(?:user|admin|owner|"
        r"operator|security|it )",
        near=("approv|consent|authori|agreed|granted|given"),
    ),
)
