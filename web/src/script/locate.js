// Finds the element of a number and makes it ready for an action, as far as a person could: it has to be seen, enabled
// and, for the mouse, in the foreground where it is touched. By script the action is carried out as well, wherever on the page
// the element is and whatever is in front of it.
(bid, action, argument, isScrolled, isByScript) => {
  const inShadow = (root, selector) => {
    const found = root.querySelector(selector);
    if (found) return found;
    for (const element of root.querySelectorAll('*')) {
      if (element.shadowRoot) {
        const below = inShadow(element.shadowRoot, selector);
        if (below) return below;
      }
    }
    return null;
  };
  const find = (page, number) => /^[A-Za-z0-9]+$/.test(number) ? inShadow(page, '[bid="' + number + '"]') : null;
  let page = document, left = 0, top = 0, at = 0;
  while (at < bid.length && !/^[0-9]+$/.test(bid.slice(at))) {
    at++;
    while (at < bid.length && /[A-Z]/.test(bid[at])) at++;
    const frame = find(page, bid.slice(0, at));
    let inner = null;
    try { inner = frame && frame.contentDocument; } catch (error) { inner = null; }
    if (!inner) return { missing: true };
    const rect = frame.getBoundingClientRect();
    left += rect.left + frame.clientLeft;
    top += rect.top + frame.clientTop;
    page = inner;
  }
  let element = find(page, bid);
  if (!element) return { missing: true };
  const view = page.defaultView;
  if (action === 'focus' || action === 'press') {
    const was = page.activeElement === element;
    if (element.isContentEditable && !was && page.activeElement) page.activeElement.blur();
    element.focus();
    if (action === 'press' && !was && element.nodeName === 'INPUT') {
      try { element.setSelectionRange(0, 0); } catch (error) { /* not of a text */ }
    }
    return { ready: true };
  }
  const visible = (one) => {
    const style = view.getComputedStyle(one);
    if (style.display === 'contents') return [...one.children].some(visible);
    if (one.checkVisibility && !one.checkVisibility()) return false;
    if (style.visibility !== 'visible') return false;
    const rect = one.getBoundingClientRect();
    return rect.width > 0 && rect.height > 0;
  };
  const enabled = (one) => {
    if (one.matches(':disabled')) return false;
    for (let above = one; above; above = above.parentElement) {
      if (above.getAttribute('aria-disabled') === 'true') return false;
    }
    return true;
  };
  const isField = (one) => one.matches('input, textarea, select') || one.isContentEditable;
  if (action === 'fill' || action === 'select') {
    // A label stands for its field.
    if (!isField(element)) {
      const label = element.closest('label');
      if (label && label.control) element = label.control;
    }
  } else if (action === 'click') {
    if (!isField(element)) element = element.closest('button, [role=button], a, [role=link]') || element;
  }
  if (!visible(element)) return { why: 'it is not visible' };
  if (action !== 'hover' && !enabled(element)) return { why: 'it is disabled' };
  if (action === 'fill') {
    if (element.nodeName === 'INPUT') {
      const type = element.type;
      if (['color', 'date', 'time', 'datetime-local', 'month', 'range', 'week'].includes(type)) {
        if (element.readOnly) return { why: 'it cannot be edited' };
        const value = argument.trim();
        element.focus();
        element.value = value;
        if (element.value !== value) return { error: 'Malformed value' };
        element.dispatchEvent(new view.Event('input', { bubbles: true, composed: true }));
        element.dispatchEvent(new view.Event('change', { bubbles: true }));
        return { ready: true, isFilled: true };
      }
      if (!['', 'email', 'number', 'password', 'search', 'tel', 'text', 'url'].includes(type)) {
        return { error: 'Input of type "' + type + '" cannot be filled' };
      }
      if (type === 'number' && Number.isNaN(Number(argument.trim()))) {
        return { error: 'Cannot type text into input[type=number]' };
      }
    } else if (element.nodeName !== 'TEXTAREA' && !element.isContentEditable) {
      return { error: 'Element is not an <input>, <textarea> or [contenteditable] element' };
    }
    if (element.readOnly) return { why: 'it cannot be edited' };
    if (element.nodeName === 'INPUT' || element.nodeName === 'TEXTAREA') {
      element.select();
      element.focus();
    } else {
      const range = page.createRange();
      range.selectNodeContents(element);
      const selection = view.getSelection();
      selection.removeAllRanges();
      selection.addRange(range);
      element.focus();
    }
    if (isByScript) page.execCommand(argument === '' ? 'delete' : 'insertText', false, argument);
    return { ready: true };
  }
  if (action === 'select') {
    if (element.nodeName !== 'SELECT') return { error: 'Element is not a <select> element' };
    let wanted = argument.slice();
    const chosen = [];
    for (const option of element.options) {
      const of = wanted.find((text) => text === option.value || text === option.label);
      if (of === undefined) continue;
      chosen.push(option);
      if (!element.multiple) { wanted = []; break; }
      wanted = wanted.filter((text) => text !== of);
    }
    if (wanted.length) return { why: 'it has no such option' };
    if (chosen.some((option) => option.disabled)) return { why: 'the option is disabled' };
    element.focus();
    element.value = undefined;
    for (const option of chosen) option.selected = true;
    element.dispatchEvent(new view.Event('input', { bubbles: true, composed: true }));
    element.dispatchEvent(new view.Event('change', { bubbles: true }));
    return { ready: true };
  }
  if (isByScript) {
    const rect = element.getClientRects()[0] || element.getBoundingClientRect();
    const x = rect.left + rect.width / 2, y = rect.top + rect.height / 2;
    // What is in the middle of it takes the click, where that belongs to it.
    const hit = page.elementFromPoint(x, y);
    const target = hit && element.contains(hit) ? hit : element;
    const tell = (kind, name, buttons, detail) => target.dispatchEvent(new view[kind](name, {
      bubbles: true, cancelable: true, composed: true, view, detail, clientX: x, clientY: y, screenX: x, screenY: y, buttons,
    }));
    for (const name of ['over', 'move', 'down']) tell('PointerEvent', 'pointer' + name, name === 'down' ? 1 : 0, 0);
    for (const name of ['over', 'move']) tell('MouseEvent', 'mouse' + name, 0, 0);
    if (tell('MouseEvent', 'mousedown', 1, 1)) {
      const takesFocus = 'a[href], area[href], button, input, select, textarea, summary, [tabindex], [contenteditable]';
      const field = target.closest(takesFocus);
      if (field) field.focus({ preventScroll: true });
      else if (page.activeElement) page.activeElement.blur();
    }
    tell('PointerEvent', 'pointerup', 0, 0);
    tell('MouseEvent', 'mouseup', 0, 1);
    // It does what a click does here: boxes are ticked, links followed.
    tell('PointerEvent', 'click', 0, 1);
    return { ready: true };
  }
  // The mouse: the middle of the first part of it that is inside the window.
  const point = () => {
    for (const rect of element.getClientRects()) {
      const x1 = Math.max(0, Math.min(page.documentElement.clientWidth, rect.left)), x2 = Math.max(0, Math.min(page.documentElement.clientWidth, rect.right));
      const y1 = Math.max(0, Math.min(page.documentElement.clientHeight, rect.top)), y2 = Math.max(0, Math.min(page.documentElement.clientHeight, rect.bottom));
      if ((x2 - x1) * (y2 - y1) > 0.99) return [(x1 + x2) / 2, (y1 + y2) / 2];
    }
    return null;
  };
  const isInFront = (x, y) => {
    let place = page, hit = null;
    for (;;) {
      const next = place.elementFromPoint(x, y);
      if (!next || next === hit) break;
      hit = next;
      if (!hit.shadowRoot) break;
      place = hit.shadowRoot;
    }
    for (let above = hit; above;) {
      if (above === element) return true;
      const root = above.getRootNode();
      above = above.assignedSlot || above.parentElement || (root.host || null);
    }
    return false;
  };
  // What is not wholly in sight is scrolled there by the browser, before this is asked again.
  if (!isScrolled) {
    const rect = element.getBoundingClientRect();
    let isInSight = rect.left >= 0 && rect.top >= 0 && rect.right <= page.documentElement.clientWidth && rect.bottom <= page.documentElement.clientHeight;
    for (let above = element.parentElement; above && isInSight; above = above.parentElement) {
      if (above === page.documentElement || above === page.body || view.getComputedStyle(above).overflow === 'visible') continue;
      const around = above.getBoundingClientRect();
      isInSight = rect.left >= around.left && rect.top >= around.top && rect.right <= around.right && rect.bottom <= around.bottom;
    }
    if (page !== document) element.scrollIntoViewIfNeeded(true);
    else if (!isInSight) {
      window.__spar_element = element;
      return { isOutOfSight: true };
    }
  }
  let why = 'it is outside of the window';
  for (const alignment of [null, 'end', 'center', 'start']) {
    if (alignment) element.scrollIntoView({ block: alignment, inline: alignment, behavior: 'instant' });
    const place = point();
    if (!place) continue;
    if (isInFront(place[0], place[1])) return { ready: true, x: left + place[0], y: top + place[1] };
    why = 'another element is in front of it';
  }
  return { why };
}
