// What stands where on a random page: its elements, every visible letter, and the boxes of its marked things.
(() => {
  const visible = (x, y, owner) => {
    const hit = document.elementFromPoint(x, y);
    return hit !== null && (owner === hit || owner.contains(hit));
  };

  // [text, the centres of its characters as x, y; null for one that is not seen].
  const ofText = (node) => {
    const range = document.createRange();
    const centres = [...node.data].map((letter, place) => {
      if (!letter.trim()) return null;
      range.setStart(node, place);
      range.setEnd(node, place + 1);
      const box = range.getBoundingClientRect();
      const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
      return visible(x, y, node.parentElement) ? [x, y] : null;
    });
    return [node.data, centres];
  };

  // The text inside a control has no boxes of its own: it is measured with the control's font.
  const pen = document.createElement('canvas').getContext('2d');
  const ofControl = (control) => {
    const style = getComputedStyle(control);
    const box = control.getBoundingClientRect();
    const shown = control instanceof HTMLSelectElement ? control.selectedOptions[0].label : control.value;
    const text = control.type === 'password' ? '' : shown || control.placeholder || '';
    pen.font = style.font;
    const gap = parseFloat(style.borderLeftWidth) + parseFloat(style.paddingLeft) + (control.tagName === 'SELECT' ? 4 : 0);
    const left = box.left + (control.type === 'submit' ? (box.width - pen.measureText(text).width) / 2 : gap);
    const centres = [...text].map((letter, place) => {
      const [start, stop] = [place, place + 1].map((length) => pen.measureText(text.slice(0, length)).width);
      const [x, y] = [left + (start + stop) / 2, box.top + box.height / 2];
      return letter.trim() && x < box.right && visible(x, y, control) ? [x, y] : null;
    });
    return [text, centres];
  };

  const texts = () => {
    const found = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      if (node.data.trim() && !node.parentElement.closest('style, select, textarea')) found.push(ofText(node));
    }
    for (const control of document.querySelectorAll('input, select')) {
      if (!['checkbox', 'radio', 'range'].includes(control.type)) found.push(ofControl(control));
    }
    return found.filter(([, centres]) => centres.some((centre) => centre !== null));
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
  __ratchet.read = () => ({ elements: __ratchet.elements('style'), texts: texts(), things: things() });
})();
