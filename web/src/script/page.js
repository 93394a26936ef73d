// What is asked of a page again and again, in every document from its beginning: so it is read and compiled once, not with every
// question.
(() => {
  if (window.__spar_page) return;
  const stringify = JSON.stringify;
  const attributes = new Set(ATTRIBUTE_NAMES);
  const mark = MARK_FUNCTION;
  const unmark = UNMARK_FUNCTION;
  const locate = LOCATE_FUNCTION;
  // As JSON, which is told much faster than an object. Not where it could come out otherwise: pages can say how their objects
  // are written, and half of a character stands in JSON as what readers refuse.
  const told = (value) => {
    if ([Object, Array, String, Number, Boolean].some((kind) => 'toJSON' in kind.prototype)) return value;
    const text = stringify(value);
    return /\\ud[89a-f]/.test(text) ? value : text;
  };
  const look = (first, aria, colors) => {
    const before = first();
    return told({ before, marked: mark({ limit: MOST_ELEMENTS, aria, attributes, colors }) });
  };
  Object.defineProperty(window, '__spar_page', { value: Object.freeze({ look, unmark, locate }) });
})();
