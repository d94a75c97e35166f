// What stands where on a random page: its elements, and the boxes of its marked things.
(() => {
  const visible = (x, y, owner) => {
    const hit = document.elementFromPoint(x, y);
    return hit !== null && (owner === hit || owner.contains(hit));
  };

  // [mark, [left, top, width, height]] of the marked things whose centre is seen.
  const things = () => [...document.querySelectorAll('[data-mark]')].flatMap((thing) => {
    const box = thing.getBoundingClientRect();
    const seen = visible(box.left + box.width / 2, box.top + box.height / 2, thing);
    return seen ? [[thing.dataset.mark, [box.left, box.top, box.width, box.height]]] : [];
  });

  __ratchet.write = (html) => {
    document.activeElement?.blur();
    document.body.innerHTML = html;
    scrollTo(0, 0);
  };
  __ratchet.read = () => ({ elements: __ratchet.elements('style'), things: things() });
})();
