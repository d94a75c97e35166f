// The page as it is drawn: what stands inside components (open shadow roots) and in their slots belongs to it.
(() => {
  Object.assign(__ratchet, {
    // The nodes that are drawn inside an element.
    inside(element) {
      if (element.shadowRoot !== null) return [...element.shadowRoot.childNodes];
      const given = element instanceof HTMLSlotElement ? element.assignedNodes() : [];
      return given.length > 0 ? given : [...element.childNodes];
    },

    // The element that a node is drawn in; null above the page.
    above(node) {
      const parent = node.assignedSlot ?? node.parentNode;
      if (parent instanceof ShadowRoot) return parent.host;
      return parent instanceof Element ? parent : null;
    },

    // Every element under a root, in page order but for what is in slots.
    all(root = document) {
      return [...root.querySelectorAll('*')].flatMap((element) =>
        element.shadowRoot === null ? [element] : [element, ...__ratchet.all(element.shadowRoot)]);
    },

    // The topmost element at a point; null where the page is not.
    at(x, y, root = document) {
      const [found = null] = root.elementsFromPoint(x, y); // unlike elementFromPoint, it knows slots
      const isDeeper = found?.shadowRoot && found !== root.host;
      return isDeeper ? __ratchet.at(x, y, found.shadowRoot) : found;
    },
  });
})();
