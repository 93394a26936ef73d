// Numbers the elements of a page by BrowserGym's rule, and reads off them what there is to know.
//
// The numbers are in the attribute `bid`, counted in the order of the document and kept from then on; those of an
// element inside a frame have the letters of the frame before them. The accessibility tree has them by way of
// `aria-roledescription` and `aria-description`, from which `unmark` takes them again.
(options) => {
  const known = new Set(('a abbr acronym address applet area article aside audio b base basefont bdi bdo big blockquote body ' +
    'br button canvas caption center cite code col colgroup data datalist dd del details dfn dialog dir div dl dt em embed ' +
    'fieldset figcaption figure font footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html i iframe img ' +
    'input ins kbd label legend li link main map mark menu meta meter nav noframes noscript object ol optgroup option output ' +
    'p param picture pre progress q rp rt ruby s samp script search section select small source span strike strong style sub ' +
    'summary sup svg table tbody td template textarea tfoot th thead time title tr track tt u ul var video wbr').split(' '));
  const LONGEST = 2000;
  const clip = (text) => text.length > LONGEST ? text.slice(0, LONGEST) : text;
  const out = { elements: [], isTooLarge: false, frames: 0, focused: '' };

  // a, b, ... z, aA, bA, ...: the first letter small, the others large, and the first one counts fastest in the last place.
  const letters = (number) => {
    const digits = [];
    for (let rest = number; ;) {
      digits.push(rest % 26);
      rest = Math.floor(rest / 26) - 1;
      if (rest < 0) break;
    }
    return digits.map((digit, place) => {
      const letter = String.fromCharCode(97 + digit);
      return place < digits.length - 1 ? letter.toUpperCase() : letter;
    }).reverse().join('');
  };

  const walk = (first, visit, parent) => {
    for (let node = first; node && !out.isTooLarge; node = node.nextSibling) {
      if (node.nodeType === 3) {
        const text = node.data.replace(/\s+/g, ' ').trim();
        if (text && parent >= 0) out.elements.push({ tag: '#text', parent, text: clip(text) });
      } else if (node.nodeType === 1) {
        const index = visit(node, parent);
        if (index < 0) return;
        if (node.shadowRoot) walk(node.shadowRoot.firstChild, visit, index);
        if (node.tagName !== 'SCRIPT' && node.tagName !== 'STYLE') walk(node.firstChild, visit, index);
      }
    }
  };

  const markDocument = (view, prefix, parent, left, top) => {
    const page = view.document;
    if (!page || !page.documentElement) return;
    let counters = view.__spar_bids;
    if (!counters) {
      counters = { element: 0, frame: 0 };
      Object.defineProperty(view, '__spar_bids', { value: counters });
    }
    const seen = new Set();
    const frames = [];
    const put = (element, attribute, bid) => {
      const before = element.getAttribute(attribute);
      element.setAttribute(attribute, 'browsergym_id_' + bid + ' ' + (before === null ? '' : before));
    };
    const visit = (element, above) => {
      const tag = element.tagName.toLowerCase();
      if (out.elements.length >= options.limit) {
        out.isTooLarge = true;
        return -1;
      }
      let bid = '';
      if (known.has(tag)) {
        if (element.value !== undefined) element.setAttribute('value', element.value);
        if (element.checked !== undefined) {
          if (element.checked === true) element.setAttribute('checked', ''); else element.removeAttribute('checked');
        }
        bid = element.getAttribute('bid') || '';
        if (!bid || seen.has(bid)) {
          const isFrame = tag === 'iframe' || tag === 'frame';
          bid = prefix + (isFrame ? letters(counters.frame++) : String(counters.element++));
          element.setAttribute('bid', bid);
        }
        seen.add(bid);
        if (options.aria) {
          put(element, 'aria-roledescription', bid);
          put(element, 'aria-description', bid);
        }
      }
      const rect = element.getBoundingClientRect();
      const record = { bid, tag, parent: above, x: left + rect.left, y: top + rect.top, w: rect.width, h: rect.height };
      if (element.id && typeof element.id === 'string') record.id = clip(element.id);
      const classes = element.getAttribute('class');
      if (classes) record.class = clip(classes);
      if (tag === 'input') record.type = element.type;
      if (tag === 'input' || tag === 'textarea' || tag === 'select') record.value = clip(String(element.value));
      if (element.checked === true || element.selected === true) record.checked = true;
      if (element.disabled === true) record.disabled = true;
      if (page.activeElement === element) record.focused = true;
      const attributes = {};
      let count = 0;
      for (const { name, value } of element.attributes) {
        if (options.attributes.has(name) && count++ < 24) attributes[name] = clip(value);
      }
      if (count > 0) record.attributes = attributes;
      const style = view.getComputedStyle(element);
      if (style.visibility !== 'visible' || style.display === 'none') record.hidden = true;
      if (options.colors) {
        record.color = style.color;
        record.background = style.backgroundColor;
      }
      out.elements.push(record);
      const index = out.elements.length - 1;
      if (tag === 'iframe' || tag === 'frame') frames.push([element, bid, index, rect]);
      return index;
    };
    walk(page.documentElement, visit, parent);
    for (const [element, bid, index, rect] of frames) {
      out.frames++;
      let inner = null;
      try { inner = element.contentDocument && element.contentWindow; } catch (error) { inner = null; }
      if (inner && bid) markDocument(inner, bid, index, left + rect.left + element.clientLeft, top + rect.top + element.clientTop);
    }
  };
  markDocument(window, '', -1, 0, 0);
  // Into shadow trees and frames.
  for (let place = document; place;) {
    const active = place.activeElement;
    if (!active) break;
    out.focused = active.getAttribute('bid') || '';
    try { place = active.shadowRoot || active.contentDocument || null; } catch (error) { place = null; }
  }
  return out;
}
