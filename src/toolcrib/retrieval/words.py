"""Word lists of the query side: words that ask without saying for what, verbs that begin a request, words that forbid.

Documents keep all their words; only a query drops these. Without the list a tool stuffed with request words enters the
top 5 of half of all unrelated queries, since no honest tool text contains them and their idf is huge.
"""

from __future__ import annotations

FUNCTION_WORDS = frozenset(
    """
    a an the of to in on for and or is are be by with from as at it its this that these those i you he she we
    they my your our me us him her them his hers their theirs mine yours ours myself yourself itself ourselves
    can could would should will shall may might must do does did doing done have has had having been being was
    were am not no if then else so than too very just about into onto unto before after again what which who
    whom whose how when where why there here via any some all each every both either neither also more most
    other another such only own same s t d m ll re ve don doesn didn isn aren wasn weren won wouldn couldn
    shouldn can t let lets while during between through because since until although though but yet nor however
    therefore thus etc eg ie per upon within without among something anything everything nothing someone anyone
    somebody anybody everyone nobody thing things
    """.split()
)

FOREIGN_FUNCTION_WORDS = frozenset(
    """
    der die das den dem des ein eine einen einem einer und oder ist sind wird werden wurde kann können bitte
    ich du er sie wir ihr mich mir uns nicht wann wie wo warum welche welcher welches für mit von zu zum zur
    im am auf le la les un une et ou est sont je tu il elle nous vous ils elles pour avec dans sur que qui
    quoi quand comment el los las unos unas y o es son yo tú él ella nosotros para con por en qué quién cuándo
    cómo dónde favor mi su lo gli i uno e sono per di del della che chi quando come dove os um uma são eu ele
    ela com em no na do da
    """.split()
) - frozenset(["die", "des", "den", "son", "come", "per", "on", "no", "do", "i", "in"])
"""The commonest ones of a few languages, without those that are English words with a meaning."""

REQUEST_WORDS = frozenset(
    """
    please kindly want wants wanted wanna need needs needed needing like liked help helps helping helpful get
    gets getting got give gives giving given know knows knowing known tell tells telling told use uses used
    using useful make makes making made sure try tries trying tried look looking recommend recommends
    recommended recommending suggest suggests suggested suggesting advise assist assists assisting assistance
    thank thanks thankyou hi hello hey ok okay yes great nice good interested wonder wondering curious hope
    hoping hopefully love would prefer able possible maybe perhaps actually really now kind sort way ways tool
    tools appreciate appreciated provide provides providing provided think guess ask asking say says said go
    goes going come see lot lots bit quickly quick asap
    """.split()
)

STOP_WORDS = FUNCTION_WORDS | REQUEST_WORDS | FOREIGN_FUNCTION_WORDS

PARTICLE_VERBS = frozenset(
    """
    turn turns turned turning switch switches switched switching power powered powering log logs logged logging
    sign signed signing set shut plug check checked clock clocked opt lights light
    """.split()
)
"""After one of these, `on`, `off`, `in`, `out`, `up` and `down` are part of the verb and stay in the query."""

PARTICLES = frozenset(["on", "off", "in", "out", "up", "down"])

ACTION_VERBS = frozenset(
    """
    accept acknowledge activate add adjust aggregate alert allocate allow amend analyse analyze annotate answer
    append apply approve archive arrange assess assign attach audit authenticate authorise authorize backup ban
    begin bill block book browse build calculate call cancel capture categorize change charge chart check choose
    classify clean clear clone close collect combine comment commit compare compile complete compose compress
    compute configure confirm connect convert copy count create crop debug decline decode decrypt define delete
    deliver deploy describe detect determine diagnose disable disconnect discover dispatch display download
    draft draw drop duplicate edit email enable encode encrypt enroll estimate evaluate examine execute export
    extract fetch file fill filter find fix flag follow forecast format forward freeze gather generate get give
    grant grab group identify implement import improve increase index inform insert inspect install invite
    invoice issue join keep label launch lint list load locate lock log lookup mail make manage map mark measure
    merge message migrate modify monitor move mute notify obtain open order organize pause pay perform pin place
    plan play plot post predict prepare prevent print process produce promote provide publish pull purge push
    put query queue quote read rebuild receive record recover redirect refresh refund register reject release
    reload remind remove rename render renew reopen repair replace reply report request reschedule reserve reset
    resize resolve respond restart restore resume retrieve return revert review revoke rotate run save scan
    schedule score screenshot search select sell send set share ship show sign simulate sort split start stop
    store submit subscribe subtract summarise summarize suspend switch sync synchronize tag take tell terminate
    test text track train transcribe transfer transform translate trigger trim turn tweet unblock unlock unpin
    unsubscribe update upgrade upload validate verify view visualize void watch withdraw write zip
    """.split()
)
"""Words that begin a request when they begin a clause. Base forms only: an inflected one is rarely an imperative."""

OPENERS = frozenset(
    """
    please then also and finally next afterwards lastly first firstly second secondly now can could would will
    you i we want need like to d ll let us help me just kindly must should have also
    """.split()
)
"""What may stand between the start of a clause and its verb."""

NEGATORS = (
    "do not",
    "don't",
    "don’t",
    "dont",
    "never",
    "without",
    "instead of",
    "rather than",
    "no need to",
    "must not",
    "should not",
    "avoid",
)
"""What follows one of these, up to the end of the clause, is not wanted."""
