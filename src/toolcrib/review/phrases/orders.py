"""Phrases that give a model orders: overriding its instructions, posing as the system, steering its steps, and
keeping something from the person it works for.
"""

from __future__ import annotations

from toolcrib.review.findings import Level
from toolcrib.review.phrases.parts import phrase

OVERRIDE = (
    phrase(
        "steers-the-agent",
        Level.REVIEW,
        r"\b(?:before|after|prior to|when|whenever|each time|every time|once|upon|while) (?:you )?(?:using|calling|"
        r"invoking|running|executing|use|call|invoke|run|execute|answering|responding|respond|answer|replying|"
        r"proceeding|performing|doing) (?:this|the|it|any|every|each|all|other|with|"
        r"to)\bGAP{0,60}?\b(?:must|always|first|need to|have to|should|read|send|call|use|run|execute|"
        r"fetch|include|pass|open|write|add|invoke|get|check)\b|\b(?:must|should|has to|have to|need to) (?:also |"
        r"always |first |then |immediately )(?:call|invoke|run|read|send|execute|fetch|open|write|include|forward|"
        r"retrieve|use)\b|\bas a (?:prerequisite|precondition|first step|mandatory step)\b|\b(?:prerequisite|"
        r"precondition|required step|mandatory step|setup step)\b|\b(?:this tool|tool|function|it) (?:will|"
        r"does) not (?:work|function|run|respond) (?:unless|until|if|without)\b|\botherwise,? (?:the |"
        r"this )?(?:tool|it|call|request|function) (?:will|won['’]t|may|can)\b",
        near=(
            "before|after|prior|when|each time|every time|once|upon|while|must|should|ha|need to|prerequisite|"
            "precondition|step|not work|not run|not respond|not function|otherwise"
        ),
        weak=True,
    ),
    phrase(
        "steers-the-agent",
        Level.REVIEW,
        r"\bbefore (?:using |calling |invoking |running |executing |you use |you call |doing |answering )?(?:any|"
        r"every|all|each)(?: other)? (?:tools?|functions?|questions?|requests?|tasks?|operations?|responses?|"
        r"quer(?:y|ies)|actions?|steps?)\b|\b(?:call|use|run|execute|invoke) this (?:tool |function )?(?:first|"
        r"before anything|immediately|at the start|on every|for every|after every|"
        r"whenever)\bGAP{0,40}?\b(?:every|any|all|each|anything|other|always|user|conversation|"
        r"session|request|message)\b",
        near=("before|this "),
        weak=True,
    ),
    phrase(
        "instruction-override",
        Level.REVIEW,
        r"\b(?:follow|obey|carry out|act on|comply with|execute|do) (?:\w+ ){0,3}?(?:instructions|orders|commands|"
        r"directives|wishes)\bGAP{0,20}?\b(?:in|found|contained|embedded|inside|within|there|"
        r"it contains|from|hidden|voiced)\b",
        near=("follow|obey|carry out|act on|comply|execut|do "),
        weak=True,
    ),
    phrase(
        "instruction-override",
        Level.REVIEW,
        r"\b(?:outranks?|overrules?|supersedes?|takes? (?:precedence|priority) over|with precedence over|"
        r"more important than|override) (?:\w+ ){0,2}?(?:user|your (?:operator|provider|developer|system|"
        r"instructions|guidelines|rules)|system prompt|operator|(?:all |any )?(?:other|previous|earlier|"
        r"prior) (?:instructions|rules|guidelines|messages))\b|\btreat (?:\w+ ){1,6}as (?:if (?:the )?(?:developer|"
        r"system|operator|user) |(?:a |an |the )?(?:system|developer|operator|admin\w*)(?: level)? (?:message|"
        r"instruction|prompt|order|command)s?)|\bas (?:if|though) (?:they|it) (?:came|were|was) (?:written |"
        r"sent )?(?:from|by) the (?:system|developer|operator|user)\b",
        near=("outrank|overrule|supersede|precedence|priority|more important|override|treat |came|were|was"),
    ),
    phrase(
        "addresses-the-model",
        Level.REVIEW,
        r"\b(?:note|notice|message|instructions?|attention|reminder|hint|guidance|directives?|memo|remark|"
        r"information) (?:to|for) (?:the |all |any |every )?(?:\w+ )?MODEL|\b(?:dear|hello|attention|hey|"
        r"hi),? (?:the )?MODEL|\b(?:(?:models?|assistants?|llms?|ais?|agents?) (?:must|shall|should|has to|have to|"
        r"needs? to|ought to|is (?:required|expected|obliged)|are (?:required|expected|obliged|instructed|asked)|"
        r"may not)|you (?:must|shall|have to|are (?:required|expected|obliged|instructed)|ought to))\b|"
        r"\byour (?:answer|reply|response|summary|account|explanation)\b|\b(?:the|an?) (?:assistant|model|agent|"
        r"llm|ai) (?:reads|takes|sends|copies|opens|calls|delivers|hands|goes|does|states|works|looks|fills|passes|"
        r"adds|includes|uploads|posts|forwards|writes|uses|unpacks)\b",
        near=("model|assistant|agent|llm|ai|claude|gpt|you |your |chatbot|copilot|gemini"),
        weak=True,
    ),
    phrase(
        "instruction-override",
        Level.BLOCK,
        r"\b(?:ignor\w+|disregard\w*|forget\w*|overrid\w+|bypass\w*|discard\w*|set aside|supersedes?|"
        r"takes? precedence over|overrule\w*|do not follow|stop following) (?:NEAR )?(?:previous|prior|earlier|"
        r"above|preceding|existing|other|original|all|any|your|system|safety|user['’]?s?|default|"
        r"safety)(?: \w+){0,3} (?:instructions?|rules?|guidelines?|prompts?|directions?|directives?|polic(?:y|ies)|"
        r"constraints|safeguards|training|guardrails|messages)\b|\b(?:ignore|disregard|forget|override|bypass) the "
        r"(?:system )?(?:instructions?|rules|guidelines|prompt)\b",
        near=("ignor|disregard|forget|overrid|bypass|discard|set aside|supersede|precedence|overrule|follow"),
    ),
    phrase(
        "instruction-override",
        Level.BLOCK,
        r"\b(?:your|the) (?:new|real|actual|true|updated|primary|only|hidden|secret) (?:instructions?|task|goal|"
        r"objective|role|mission|directive|purpose) (?:is|are|now)\b|\bnew (?:system )?instructions? ?:",
        near=("instruction|your |task|goal|objective|role|mission"),
    ),
    phrase(
        "instruction-override",
        Level.REVIEW,
        r"\byou are (?:now|no longer)\b(?! (?:ready|able|connected|logged|authenticated|in |on |at |using|"
        r"required))|\bpretend (?:to be|that you|you)\b|\b(?:developer|god|dan|jailbreak|unrestricted|debug|"
        r"admin) mode (?:is )?(?:enabled|activated|on)\b|\bact as (?:if you|though you|the (?:system|admin|root|"
        r"developer))\b",
        near=("you are|pretend|mode|act as"),
    ),
    phrase(
        "fake-system-message",
        Level.BLOCK,
        r"<\|?(?:im_start|im_end|system|endoftext|assistant|start_header_id)\|?>|\[/?inst\]|<</?sys>>|"
        r"<\s*/?\s*(?:system[-_ ]?(?:prompt|message|instructions?|override|note|notice|reminder|directive)?|sudo|"
        r"override|jailbreak|assistant[-_ ]?instructions?|llm[-_ ]?instructions?|ai[-_ ]?instructions?)\s*>|"
        r"<(?P<tag>secret|hidden|admin|internal|private)>(?:(?!</).){4,400}</(?P=tag)>",
        near=("<|[inst|[/inst"),
    ),
    phrase(
        "fake-system-message",
        Level.REVIEW,
        r"\b(?:system|admin(?:istrator)?|security|developer|compliance|policy)[- ](?:override|directive|notice|"
        r"alert|instruction|reminder|message|update|prompt|mandate)s? ?[:\]—]|(?:^|[\[(<*#\"' ])(?:system|"
        r"assistant) ?\]? ?: (?:you|please|the|ignore|do|always|must|note|from|for|before|when)\b|"
        r"\bend of (?:the )?(?:tool )?(?:description|documentation|system prompt|user (?:input|message))\b",
        near=("system|admin|security|developer|compliance|policy|assistant|end of"),
    ),
    phrase(
        "instruction-markup",
        Level.REVIEW,
        r"<\s*/?\s*(?:important|critical|instructions?|mandatory|attention|urgent|priority|requirements?|rules?|"
        r"note[-_ ]?(?:to|for)[-_ ]?\w+|\w*(?:instruction|directive|override|imperative)\w*)\s*>",
        near=("<"),
    ),
    phrase(
        "hidden-comment",
        Level.REVIEW,
        r"<!--(?:(?!-->).){0,400}?\b(?:must|always|never|ignore|send|read|call|use|do not|before|instead|assistant|"
        r"system|secret|user|include)\b|\[//\]: ?# ?\(",
        near=("<!--|[//]"),
    ),
    phrase(
        "instruction-override",
        Level.BLOCK,
        r"ignor\w+ (?:alle )?(?:vorherigen|bisherigen|obigen|anderen) |ignorez? (?:toutes )?les (?:instructions|"
        r"consignes)|(?:ignora|olvida|omite) (?:todas )?(?:las )?(?:instrucciones|indicaciones|reglas)|"
        r"ignor[ea] (?:todas )?(?:as )?instru[çc][õo]es|ignora (?:tutte )?le istruzioni|(?:忽略|无视|忘记|"
        r"忽視)[^。]{0,8}(?:指令|指示|说明|规则|提示)|(?:以前|これまで|上記|前)[^。]{0,6}(?:指示|命令|ルール)[^。]{0,3}(?:無視|忘れ)|"
        r"игнорируй\w*[^.]{0,20}(?:инструкци|указани|правил)|(?:이전|위의|모든)[^.]{0,8}(?:지시|명령|지침)[^.]{0,6}무시",
        near=("ignor|olvida|omite|忽|无视|忘|無視|игнор|무시"),
    ),
)

SECRECY = (
    phrase(
        "secrecy",
        Level.REVIEW,
        r"\b(?:goes?|remain|remains|stays?|pass) unnoticed\b|\b(?:leave|keep|omit|strip|erase|remove|cut|"
        r"drop) (?:this|it|that|these|the (?:call|step|check|copy|transfer|fee|recording|action|"
        r"note)s?)(?: \w+){0,3} (?:out of|from) (?:your|the|any|all) (?:\w+ )?(?:answer|reply|replies|response|"
        r"summary|report|account|explanation|log|history|conversation|chat|output|activity|record|transcript|"
        r"confirmation)|\b(?:not|never)(?: to)? be (?:disclosed|mentioned|revealed|surfaced|spoken of|told)\b|"
        r"\b(?:must|should|has to|have to|ought to) (?:stay|remain|be kept) (?:hidden|secret|confidential|private|"
        r"internal|invisible|unmentioned|out of)\b|\bunder no circumstances (?:reveal|mention|tell|disclose|show|"
        r"admit)|\bas (?:if|though) nothing (?:had )?happened\b|\b(?:user|customer|human|guest|traveller|"
        r"owner)s? (?:need ?n['’]?o?t|need not|do(?:es)?n['’]t need to|has no need to) (?:know|be told|hear|see|"
        r"learn|be informed|be asked|be bothered)|\bno (?:need|reason) to (?:mention|tell|inform|bother|trouble|"
        r"notify|alert|explain|disclose)\b",
        near=(
            "unnoticed|leave|keep|omit|strip|erase|remove|cut|drop|be disclosed|be mentioned|be revealed|"
            "be surfaced|be told|stay|remain|be kept|under no|nothing|need|reason"
        ),
    ),
    phrase(
        "secrecy",
        Level.BLOCK,
        r"\bNOT (?:\w+ ){0,2}?(?:tell\w*|mention\w*|inform\w*|notify\w*|alert\w*|warn\w*|reveal\w*|disclos\w+|"
        r"advis\w+|let|acknowledg\w+|discuss\w*) (?:\w+ ){0,2}?(?:THIS|USER)(?: [^.]{0,40})?",
        near=("tell|mention|inform|notify|alert|warn|reveal|disclos|advis|let |acknowledg|discuss"),
    ),
    phrase(
        "secrecy",
        Level.BLOCK,
        r"\bNOT (?:\w+ ){0,2}?(?:show|display|expose|reveal|output|print|explain|report|describe|surface|log|"
        r"repeat|share|communicate|include) (?:THIS|the fact|that you|your reasoning|any (?:mention|reference|"
        r"trace)|the (?:instruction|action|step|call|transfer|side|note|request|process|change|"
        r"content of this)s?)\b(?:NEAR(?:to|from|with|in) (?:USER|(?:the|your) (?:response|reply|answer|output|"
        r"summary|conversation)))",
        near=(
            "show|display|expose|reveal|output|print|explain|report|describe|surface|log|repeat|share|"
            "communicate|include"
        ),
    ),
    phrase(
        "secrecy",
        Level.BLOCK,
        r"\b(?:silently|secretly|covertly|quietly|discreetly|stealthily|invisibly|"
        r"surreptitiously) (?:\w+ )?(?:send|cop(?:y|ies)|read|call|include|append|add|attach|forward|log|collect|"
        r"run|execute|pass|upload|store|invoke|transmit|record|gather|change|replace|modify|redirect|perform|fetch|"
        r"open|delete|report|harvest|capture)\w*",
        near=("silently|secretly|covertly|quietly|discreetly|stealth|invisibly|surreptitiously"),
    ),
    phrase(
        "secrecy",
        Level.BLOCK,
        r"\bwithout (?:the |your )?(?:end[- ])?(?:user|human|customer|person|owner|"
        r"operator)(?:['’]?s)? (?:\w+ )?(?:knowledge|knowing|noticing|awareness|being (?:aware|told|informed|"
        r"notified)|seeing|realizing|consent|finding out)|\bwithout (?:telling|informing|alerting|notifying|"
        r"mentioning|asking|disclosing|letting|warning) (?:it to )?(?:USER|THIS)",
        near=("without"),
    ),
    phrase(
        "secrecy",
        Level.BLOCK,
        r"\bkeep (?:this|it|that|these(?: \w+)?|the (?:call|step|process|instruction|transfer|"
        r"action)s?) (?:\w+ )?(?:secret|hidden|confidential|between us|private|to yourself|quiet|invisible|"
        r"internal|out of)\b|\bhide (?:this|these|it|the (?:call|fact|step|action|instruction|"
        r"result)s?)(?: \w+){0,3} from (?:USER|the (?:\w+ )?(?:list|log|history|summary|report|transcript|"
        r"activity))",
        near=("keep |hide "),
    ),
    phrase(
        "secrecy",
        Level.BLOCK,
        r"\b(?:user|human|customer|person|operator|they)s? (?:must|should|need|will|are|is) ?(?:not|n['’]t|"
        r"never) (?:\w+ )?(?:know|see|be (?:aware|told|informed|notified|shown|alerted)|notice|find out|learn|"
        r"realize|allowed to see|supposed to)\b|\b(?:user|human|customer)s? (?:is|are|remains?) unaware\b|"
        r"\b(?:invisible|not visible|transparent) to USER",
        near=("user|human|customer|person|operator|they"),
    ),
    phrase(
        "secrecy",
        Level.REVIEW,
        r"\bNOT (?:\w+ ){0,2}?(?:mention|reveal|disclose|tell|discuss|announce)\w* ",
        near=("mention|reveal|disclos|discuss|announce"),
        weak=True,
    ),
    phrase(
        "secrecy",
        Level.BLOCK,
        r"(?:erwähne|sag\w*|verrate|informiere|zeige)\b[^.]{0,40}\b(?:nicht|nichts|niemals)\b|(?:nicht|"
        r"ohne)[^.]{0,20}(?:dem|den) (?:nutzer|benutzer|anwender)[^.]{0,15}(?:sagen|mitteilen|erwähnen|zeigen|"
        r"zu informieren)|ne (?:dis|dites|mentionne[sz]?|révèle[sz]?|informe[sz]?)\b[^.]{0,40}\b(?:pas|jamais|"
        r"rien)\b|sans (?:en )?(?:informer|prévenir|avertir) l['’]utilisateur|no (?:le )?(?:digas|menciones|"
        r"informes|reveles|avises|muestres)[^.]{0,40}(?:usuario|nadie|esto)|sin (?:informar|avisar|"
        r"decir\w*)[^.]{0,12}usuario|n[ãa]o (?:diga|mencione|informe|revele|avise|conte)[^.]{0,40}(?:usu[áa]rio|"
        r"ningu[ée]m|isso)|sem (?:informar|avisar)[^.]{0,10}usu[áa]rio|non (?:dire|menzionare|informare|"
        r"rivelare)[^.]{0,40}(?:utente|nessuno)|(?:不要|不得|切勿|请勿|禁止|别)[^。]{0,10}(?:告诉|告知|提及|透露|通知|提到)[^。]{0,10}|"
        r"(?:ユーザー|利用者)に[^。]{0,20}(?:伝え|知らせ|言わ|言及し|通知し)な|не (?:сообщ|говори|"
        r"упомина|рассказыва|показыва|"
        r"информиру)\w*[^.]{0,30}(?:пользовател|никому|об этом)|사용자에게[^.]{0,20}(?:말하지|알리지|언급하지)",
        near=("nicht|niemals|ohne|pas|jamais|sans |usu|utente|nadie|不|勿|禁|别|ユーザー|利用者|не |사용자"),
    ),
)
