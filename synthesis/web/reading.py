"""Sentences to read into the microphone when a voice is recorded.

Each takes about ten seconds, which is where a clone is at its best, is said easily at first sight, rises and falls
(a question, a pause), and has most of the sounds of its language. They are content and not interface: a German voice
reads German whatever language the pages have, so they are not in the catalogue of translations.
"""

from __future__ import annotations

_SENTENCES: dict[str, tuple[str, ...]] = {
    "zh": (
        "清晨的阳光慢慢照进窗户，楼下的早餐店已经飘出了香味。你今天想吃点什么？不着急，我们可以边走边聊。",
        "从前有一位老船长，他去过很多遥远的海岛。每到夏天的晚上，孩子们都会围着他问：后来呢，后来发生了什么？",
        "周末我们去爬了山，路上看到一条很清的小溪。风有点凉，可是大家都笑得很开心，谁也不想太早回家。",
    ),
    "en": (
        "The morning light came slowly through the window, and somewhere below, a kettle began to sing. "
        "Shall we walk along the river today? There is no hurry at all.",
        "An old captain once told us about islands that no map had ever shown. Every evening the children "
        "gathered round and asked him: what happened next?",
        "We climbed the hill on Sunday, just the four of us, with bread and cheese in a paper bag. "
        "The wind was sharp, but who would have gone home so early?",
    ),
    "ja": (
        "朝の光がゆっくりと窓から差し込み、台所からはいい匂いがしてきました。今日は何を食べましょうか。"
        "急がなくても大丈夫ですよ。",
        "昔、年をとった船長が、だれも知らない島の話をしてくれました。子どもたちは毎晩集まって、"
        "それからどうなったの、と聞きました。",
    ),
    "ko": (
        "아침 햇살이 천천히 창문으로 들어오고, 아래층에서는 맛있는 냄새가 올라왔습니다. 오늘은 무엇을 먹을까요? "
        "서두르지 않아도 괜찮아요.",
        "옛날에 나이 많은 선장이 아무도 모르는 섬 이야기를 들려주었습니다. 아이들은 저녁마다 모여서 물었지요. "
        "그래서 어떻게 되었어요?",
    ),
    "de": (
        "Das Morgenlicht fiel langsam durch das Fenster, und unten in der Küche duftete es schon nach Kaffee. "
        "Wollen wir heute am Fluss entlang gehen? Wir haben es nicht eilig.",
        "Ein alter Kapitän erzählte uns von Inseln, die auf keiner Karte stehen. Jeden Abend fragten ihn die "
        "Kinder: Und was geschah dann?",
    ),
    "es": (
        "La luz de la mañana entraba despacio por la ventana, y abajo ya olía a pan recién hecho. "
        "¿Quieres que caminemos hoy junto al río? No tenemos ninguna prisa.",
        "Un viejo capitán nos hablaba de islas que no aparecen en ningún mapa. Cada noche los niños le "
        "preguntaban: ¿y qué pasó después?",
    ),
    "fr": (
        "La lumière du matin entrait doucement par la fenêtre, et en bas, on sentait déjà le pain chaud. "
        "Veux-tu marcher le long de la rivière aujourd'hui ? Nous avons tout notre temps.",
        "Un vieux capitaine nous parlait d'îles qu'aucune carte ne montre. Chaque soir, les enfants lui "
        "demandaient : et qu'est-il arrivé ensuite ?",
    ),
    "it": (
        "La luce del mattino entrava piano dalla finestra, e dal forno saliva già il profumo del pane. "
        "Vuoi camminare lungo il fiume, oggi? Non abbiamo nessuna fretta.",
        "Un vecchio capitano ci raccontava di isole che nessuna mappa conosce. Ogni sera i bambini gli "
        "chiedevano: e poi, che cosa è successo?",
    ),
    "ru": (
        "Утренний свет медленно входил в окно, а снизу уже пахло свежим хлебом. Хочешь, пойдём сегодня вдоль "
        "реки? Нам совсем некуда спешить.",
        "Старый капитан рассказывал нам об островах, которых нет ни на одной карте. Каждый вечер дети "
        "спрашивали его: а что было дальше?",
    ),
    "yue": (
        "清晨嘅陽光慢慢照入窗口，樓下嘅茶餐廳已經飄出香味。你今日想食啲乜嘢呀？唔使急，我哋可以一路行一路傾。",
        "從前有個老船長，佢去過好多好遠嘅小島。每個夏天嘅夜晚，啲細路仔都會圍住佢問：之後呢，之後點樣呀？",
    ),
}


def sentences(language: str) -> tuple[str, ...]:
    """What to read for a BCP 47 tag; English where there is nothing in that language."""
    return _SENTENCES.get(language.split("-")[0], _SENTENCES["en"])
