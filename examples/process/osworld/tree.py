"""The accessibility tree as text: a line for each element that can be seen and used."""

import re
import xml.etree.ElementTree as ElementTree

# Attributes have a namespace of the system and of what they say: states, places and so on.
SPACE = re.compile(r"\{https://accessibility\.\w+\.example\.org/ns/([^}]*)\}")
ENDINGS = ("item", "button", "heading", "label", "scrollbar", "searchbox", "textbox", "link", "tabelement", "textfield", "textarea", "menu")
KINDS = {
    "alert", "canvas", "check-box", "combo-box", "entry", "icon", "image", "paragraph", "scroll-bar", "section", "slider", "static",
    "table-cell", "terminal", "text", "netuiribbontab", "start", "trayclockwclass", "traydummysearchcontrol", "uiimage", "uiproperty",
    "uiribboncommandbar",
}
COLUMNS = ("tag", "name", "text", "class", "description", "position", "size")
PAIR = re.compile(r"\((-?\d+), *(-?\d+)\)")


def attributes(node):
    """`state:showing` and the like, without what is the system's own."""
    return {SPACE.sub(lambda found: found[1] + ":", name): value for name, value in node.attrib.items()}


def pair(text):
    found = PAIR.fullmatch(text.strip())
    return (int(found[1]), int(found[2])) if found else (-1, -1)


def is_shown(node, about, platform):
    """OSWorld's rule for what an agent is told: elements of use, in sight, with a name or a text and a place on the screen."""
    def is_on(state):
        return about.get(f"state:{state}") == "true"
    left, top = pair(about.get("component:screencoord", ""))
    width, height = pair(about.get("component:size", ""))
    return (
        (node.tag.startswith("document") or node.tag.endswith(ENDINGS) or node.tag in KINDS)
        and is_on("visible") and (platform == "Windows" or is_on("showing"))
        and any(map(is_on, ("enabled", "editable", "expandable", "checkable")))
        and bool(about.get("name") or node.text)
        and min(left, top) >= 0 and min(width, height) > 0
    )


def quoted(text):
    """A text as a cell of a table."""
    return '"' + text.replace('"', '""') + '"' if '"' in text or not text else text


def text_of(xml, platform, most_bytes):
    """The table of elements, of which lines are left out behind `most_bytes`."""
    lines, left_out, num_bytes = ["\t".join(COLUMNS)], 0, 0
    for node in ElementTree.fromstring(xml).iter():
        about = attributes(node)
        if not is_shown(node, about, platform):
            continue
        kind = about.get("class:class" if platform == "Windows" else "attributes:class", "")
        text = node.text or ""
        if not text and kind.endswith("EditWrapper"):
            text = about.get("value:value", "")
        cells = (node.tag, about.get("name", ""), quoted(text), kind, about.get("attributes:description", ""),
                 about["component:screencoord"], about["component:size"])
        line = "\t".join(cells)
        num_bytes += len(line.encode(errors="replace")) + 1
        if num_bytes > most_bytes:
            left_out += 1
        else:
            lines.append(line)
    return "\n".join(lines + [f"[{left_out} more]"] * bool(left_out))
