() => {
  const pop = (element, attribute) => {
    const text = element.getAttribute(attribute);
    if (text === null) return;
    const rest = text.replace(/^browsergym_id[^\s]*\s/, '');
    if (rest) element.setAttribute(attribute, rest); else element.removeAttribute(attribute);
  };
  const clean = (root) => {
    for (const element of root.querySelectorAll('*')) {
      pop(element, 'aria-description');
      pop(element, 'aria-roledescription');
      if (element.shadowRoot) clean(element.shadowRoot);
      let inner = null;
      try { inner = element.contentDocument || null; } catch (error) { inner = null; }
      if (inner) clean(inner);
    }
  };
  clean(document);
}
