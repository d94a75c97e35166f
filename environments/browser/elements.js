// The visible elements, in page order: [kind, text, [left, top, width, height], states].
// Read from what a person can see or hear (tags, roles, text, values, boxes), never from data attributes.
(() => {
  const TAGS = {
    A: 'link', BUTTON: 'button', TEXTAREA: 'textarea', SELECT: 'select', OPTION: 'option', INPUT: 'textbox',
  };
  const INPUTS = {
    password: 'password', checkbox: 'checkbox', radio: 'radio', range: 'slider',
    button: 'button', submit: 'button', reset: 'button', image: 'button', color: 'button', file: 'button',
  };
  const ROLES = new Set([
    'button', 'link', 'tab', 'option', 'menuitem', 'checkbox', 'radio', 'slider', 'textbox',
  ]);
  const PICTURES = new Set(['IMG', 'CANVAS', 'VIDEO']);
  const ON = ['aria-selected', 'aria-checked', 'aria-expanded', 'aria-pressed'];

  const ALL_CUT = 'rect(0px, 0px, 0px, 0px)'; // nothing of a box is left

  const tidy = (text) => text.replace(/\s+/g, ' ').trim();
  const ticks = (element) =>
    element instanceof HTMLInputElement && ['checkbox', 'radio'].includes(element.type);

  // What to call what shows no text: its label, else the first two of its classes (a sort and a state). Never its
  // tag: a drawing's tag is its shape, which is to be seen.
  const name = (element) => {
    const label = element.getAttribute('aria-label') || element.getAttribute('alt');
    const classes = (element.getAttribute('class') ?? '').split(/\s+/).slice(0, 2).join(' ');
    return tidy(label || classes || element.id);
  };

  const control = (element) => {
    const role = element.getAttribute('role');
    if (ROLES.has(role) && element.querySelector('button, input, select, textarea') === null) return role;
    if (element.isContentEditable && !element.parentElement.isContentEditable) return 'textbox';
    return (element instanceof HTMLInputElement && INPUTS[element.type]) || TAGS[element.tagName];
  };

  const textOf = (element) => {
    if (ticks(element)) return tidy(element.labels[0]?.textContent ?? '');
    if (element instanceof HTMLSelectElement) return tidy(element.selectedOptions[0]?.label ?? '');
    if (element instanceof HTMLInputElement || element instanceof HTMLTextAreaElement) return element.value;
    const text = tidy(element.textContent);
    return text || (element.isContentEditable ? '' : name(element));
  };

  const statesOf = (element) => {
    const states = document.activeElement === element ? ['focus'] : [];
    const on = element.checked || element.selected || ON.some((key) => element.getAttribute(key) === 'true');
    if (on) states.push('on');
    if (element.disabled) states.push('disabled');
    return states;
  };

  const paints = (element, style) =>
    PICTURES.has(element.tagName) || element instanceof SVGGeometryElement ||
    style.content.startsWith('url(') || style.backgroundImage !== 'none' ||
    !/^(rgba\(.*, 0\)|transparent)$/.test(style.backgroundColor);

  // Pages hide a box and draw one of their own, of which its label is then the only sign.
  const drawn = (box) => {
    const style = getComputedStyle(box);
    const open = style.opacity !== '0' && style.visibility !== 'hidden' && style.clip !== ALL_CUT;
    return open && box.getBoundingClientRect().right > 0;
  };

  const textKind = (element, style) => {
    if (style.cursor === 'pointer') return 'link';
    return /^H[1-6]$/.test(element.tagName) ? 'heading' : 'text';
  };

  // The widest line of an element or range within the clip, in whole pixels: its centre is sure to be on it.
  const boxOf = (target, clip) => {
    let widest = null;
    for (const rect of target.getClientRects()) {
      const left = Math.round(Math.max(rect.left, clip.left));
      const top = Math.round(Math.max(rect.top, clip.top));
      const width = Math.round(Math.min(rect.right, clip.right)) - left;
      const height = Math.round(Math.min(rect.bottom, clip.bottom)) - top;
      const seen = width > 0 && height > 0;
      if (seen && (widest === null || width > widest[2])) widest = [left, top, width, height];
    }
    return widest;
  };

  const halves = ([left, top, width, height]) => {
    const [w, h] = [Math.ceil(width / 2), Math.ceil(height / 2)];
    return [
      [left, top, w, height], [left + width - w, top, w, height],
      [left, top, width, h], [left, top + height - h, width, h],
    ];
  };

  // Whether a click on the centre of the box hits the element.
  const shows = (element, [left, top, width, height]) => {
    const hit = document.elementFromPoint(left + Math.floor(width / 2), top + Math.floor(height / 2));
    return hit !== null && element.contains(hit);
  };

  const within = (clip, element, style) => {
    if (style.overflowX === 'visible' || element === document.body) return clip;
    const box = element.getBoundingClientRect();
    return {
      left: Math.max(clip.left, box.left), top: Math.max(clip.top, box.top),
      right: Math.min(clip.right, box.right), bottom: Math.min(clip.bottom, box.bottom),
    };
  };

  // All visible elements but those inside what the selector `hidden` matches.
  __ratchet.elements = (hidden) => {
    const found = [];

    const emit = (target, element, clip, kind, text, states) => {
      const whole = boxOf(target, clip);
      if (whole === null) return;
      const box = [whole, ...halves(whole)].find((part) => shows(element, part));
      if (box !== undefined) found.push([kind, text.toWellFormed(), box, states]); // half a pair of code units is no text
    };

    const emitText = (node, parent, clip, style) => {
      const text = tidy(node.data);
      const labelled = parent.closest('label')?.control;
      const box = labelled && ticks(labelled) ? labelled : null;
      if (!text || (box && drawn(box))) return; // the box carries its label's text
      const range = document.createRange();
      range.selectNodeContents(node);
      if (box) emit(range, parent, clip, box.type, text, statesOf(box));
      else emit(range, parent, clip, textKind(parent, style), text, []);
    };

    const walk = (element, outer) => {
      const style = getComputedStyle(element);
      if (style.display === 'none' || style.opacity === '0' || element.matches(hidden)) return;
      const kind = control(element);
      if (kind && !(kind === 'select' && (element.multiple || element.size > 1))) {
        emit(element, element, outer, kind, textOf(element), statesOf(element));
        return;
      }
      if (element.childElementCount === 0 && !tidy(element.textContent)) {
        if (paints(element, style)) emit(element, element, outer, 'image', name(element), []);
        return;
      }
      const clip = within(outer, element, style);
      const before = found.length;
      for (const child of element.childNodes) {
        if (child instanceof Text) emitText(child, element, clip, style);
        else if (child instanceof Element) walk(child, clip);
      }
      const blank = found.length === before && style.cursor === 'pointer' && paints(element, style);
      if (blank) emit(element, element, outer, 'image', name(element), []); // such as a card turned face down
    };

    walk(document.body, { left: 0, top: 0, right: innerWidth, bottom: innerHeight });
    return found;
  };
})();
