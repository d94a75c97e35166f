// What stands where on a random page: its elements, the boxes of its marked things, and its lines of text.
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

  const tidy = (text) => text.replace(/\s+/g, ' ').trim();
  const centre = (box) => [box.left + box.width / 2, box.top + box.height / 2];

  // Words side by side are a line: [text, [left, top, width, height]].
  const joined = (words) => {
    const lines = [];
    for (const [text, box] of words) {
      const last = lines.at(-1);
      if (last !== undefined && Math.abs(last[1][1] - box.top) < 2) {
        last[0] += ` ${text}`;
        last[1][2] = box.right - last[1][0];
      } else lines.push([text, [box.left, box.top, box.width, box.height]]);
    }
    return lines;
  };

  const linesOf = (node) => {
    const range = document.createRange();
    const words = [...node.data.matchAll(/\S+/g)].map((word) => {
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      return [word[0], range.getBoundingClientRect()];
    });
    return joined(words.filter(([, box]) => box.width > 0 && visible(...centre(box), node.parentElement)));
  };

  // A field's own text has no range: it is as wide as its font draws it.
  const ruler = document.createElement('canvas').getContext('2d');
  const lineIn = (field) => {
    const text = tidy(field instanceof HTMLSelectElement ? field.selectedOptions[0]?.label ?? '' : field.value);
    const [box, style] = [field.getBoundingClientRect(), getComputedStyle(field)];
    ruler.font = style.font;
    const [width, height] = [ruler.measureText(text).width, parseFloat(style.fontSize) * 1.2];
    const menu = field instanceof HTMLSelectElement ? 4 : 0; // the browser's own padding
    const begin = parseFloat(style.borderLeftWidth) + parseFloat(style.paddingLeft) + menu;
    const left = field.type === 'submit' ? box.left + (box.width - width) / 2 : box.left + begin;
    const fits = text && left + width <= box.right && visible(...centre(box), field);
    return fits ? [[text, [left, box.top + (box.height - height) / 2, width, height]]] : [];
  };

  // What of a line is on the screen; what is cut says nothing.
  const clipped = ([text, [left, top, width, height]]) => {
    const { clientWidth, clientHeight } = document.documentElement;
    const [w, h] = [Math.min(width, clientWidth - left), Math.min(height, clientHeight - top)];
    return [w < width - 1 || h < height - 1 ? '' : text, [left, top, w, h]];
  };

  // [text, [left, top, width, height]] of the lines of text that are seen, but for those of large fields and secrets.
  const lines = () => {
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const found = [];
    while (texts.nextNode()) found.push(...linesOf(texts.currentNode));
    const fields = [...document.querySelectorAll('[type=text], [type=submit], select')];
    return [...found, ...fields.flatMap(lineIn)].map(clipped);
  };

  __ratchet.write = (html) => {
    document.activeElement?.blur();
    document.body.innerHTML = html;
    scrollTo(0, 0);
  };
  __ratchet.read = () => ({ elements: __ratchet.elements('style'), things: things(), lines: lines() });
})();
