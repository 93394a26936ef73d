// How much of each numbered element is inside the window, from 0 to 1.
() => new Promise((resolve) => {
  const elements = [];
  const collect = (root) => {
    for (const element of root.querySelectorAll('*')) {
      if (element.getAttribute('bid')) elements.push(element);
      if (element.shadowRoot) collect(element.shadowRoot);
      let inner = null;
      try { inner = element.contentDocument || null; } catch (error) { inner = null; }
      if (inner) collect(inner);
    }
  };
  collect(document);
  const ratios = {};
  const missing = new Set(elements);
  if (missing.size === 0) return resolve(ratios);
  const steps = [];
  for (let step = 0; step <= 10; step++) steps.push(step / 10);
  const observer = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      ratios[entry.target.getAttribute('bid')] = Math.round(entry.intersectionRatio * 100) / 100;
      missing.delete(entry.target);
    }
    if (missing.size === 0) {
      observer.disconnect();
      resolve(ratios);
    }
  }, { threshold: steps });
  for (const element of elements) observer.observe(element);
})
