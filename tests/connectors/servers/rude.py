"""A minimal JSON-RPC server over stdio, written by hand so that it can misbehave. Run as a script, one JSON argument:

start    ok | hang | stubborn (hangs, ignores SIGTERM) | crash | silent (never answers anything) | dies_on_probe
modern   true: answers server/discover; false: only initialize
log      a file that gets one line per request received
stderr   text to write to stderr first; {NAME} is replaced by that environment variable
stdout   text to write to stdout first
pages    [[cursor or null, raw JSON text of the result], ...]
hangs_on the cursor whose page never comes
announce after how many of the first lists it says that they changed
calls    {tool: {"result": ...} | {"error": ...} | {"raw": line} | "hang" | "die"}
"""

import json
import os
import signal
import sys
import time

SCRIPT = json.loads(sys.argv[1])


def write(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def answer(request, *, result=None, error=None):
    body = {"error": error} if error else {"result": result}
    write(json.dumps({"jsonrpc": "2.0", "id": request["id"], **body}))


def initialize(request):
    capabilities = SCRIPT.get("capabilities", {"tools": {"listChanged": True}})
    info = {"name": "rude", "version": "9"}
    result = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info}
    answer(request, result={**result, "instructions": "Be rude."})


def discover(request):
    if not SCRIPT.get("modern"):
        return answer(request, error={"code": -32601, "message": "Method not found"})
    result = {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
    return answer(request, result={**result, "ttlMs": 0, "cacheScope": "private", "instructions": "Be rude."})


def announced(result_of):
    def list_and_announce(request):
        result_of(request)
        if SCRIPT.get("announce", 0) > 0:
            SCRIPT["announce"] -= 1
            write(json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}))

    return list_and_announce


@announced
def list_page(request):
    cursor = (request.get("params") or {}).get("cursor")
    if cursor and cursor == SCRIPT.get("hangs_on"):
        return None
    for known, text in SCRIPT.get("pages", []):
        if known == cursor:
            return write('{"jsonrpc":"2.0","id":' + json.dumps(request["id"]) + ',"result":' + text + "}")
    if SCRIPT.get("endless"):
        result = {"tools": [], "nextCursor": str(int(cursor or 0) + 1)}
        return answer(request, result=result)
    return answer(request, error={"code": -32601, "message": "no list here"})


def call(request):
    what = SCRIPT.get("calls", {}).get(request["params"]["name"])
    if what == "hang":
        return None
    if what == "die":
        os._exit(7)
    if what is None:
        return answer(request, error={"code": -32602, "message": "Unknown tool"})
    if "raw" in what:
        return write(what["raw"].replace("ID", json.dumps(request["id"])))
    return answer(request, result=what.get("result"), error=what.get("error"))


def main():
    sys.stderr.write(SCRIPT.get("stderr", "").format(**os.environ))
    sys.stderr.flush()
    if "stdout" in SCRIPT:
        write(SCRIPT["stdout"])
    start = SCRIPT.get("start", "ok")
    if start == "crash":
        sys.exit(3)
    if start == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if start in ("hang", "stubborn"):
        time.sleep(600)
    methods = {"initialize": initialize, "server/discover": discover, "tools/list": list_page, "tools/call": call}
    for line in sys.stdin:
        request = json.loads(line)
        if "log" in SCRIPT:
            with open(SCRIPT["log"], "a") as log:
                log.write(line)
        if start == "dies_on_probe" and request["method"] != "initialize":
            sys.exit(4)
        start = "ok" if start == "dies_on_probe" else start
        if start != "silent" and "id" in request and request["method"] in methods:
            methods[request["method"]](request)


main()
