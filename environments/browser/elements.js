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
  const SHOWN = { submit: 'Submit', reset: 'Reset' }; // what a button says that is not told what to say
  const PICTURES = new Set(['IMG', 'CANVAS', 'VIDEO']);
  const ON = ['aria-selected', 'aria-checked', 'aria-expanded', 'aria-pressed'];

  const HOLDS_ALL = ['transform', 'translate', 'rotate', 'scale', 'perspective', 'filter', 'backdropFilter'];

  const ALL_CUT = 'rect(0px, 0px, 0px, 0px)'; // nothing of a box is left

  // Makes what takes no clicks be found at its place like all else.
  const clickable = new CSSStyleSheet();
  clickable.replaceSync('* { pointer-events: auto !important; }');
  clickable.disabled = true;
  __ratchet.apply(clickable);

  const tidy = (text) => text.replace(/\s+/g, ' ').trim();
  const ticks = (element) =>
    element instanceof HTMLInputElement && ['checkbox', 'radio'].includes(element.type);

  const label = (element) => tidy(element.getAttribute('aria-label') || element.getAttribute('alt') || '');

  // What to call what shows no text: its label, else the first two of its classes (a sort and a state). Never its
  // tag: a drawing's tag is its shape, which is to be seen.
  const name = (element) => {
    const classes = (element.getAttribute('class') ?? '').split(/\s+/).slice(0, 2).join(' ');
    return label(element) || tidy(classes || element.id);
  };

  const control = (element) => {
    const role = element.getAttribute('role');
    if (ROLES.has(role) && element.querySelector('button, input, select, textarea') === null) return role;
    if (element.isContentEditable && !element.parentElement?.isContentEditable) return 'textbox';
    return (element instanceof HTMLInputElement && INPUTS[element.type]) || TAGS[element.tagName];
  };

  // The text inside an element, as far as it is drawn; or all that is to be read there, were it drawn.
  const textIn = (element, undrawn = false) => {
    const { display, visibility } = getComputedStyle(element);
    if (/^(style|script)$/i.test(element.tagName) || (display === 'none' && !undrawn)) return '';
    const parts = __ratchet.inside(element).map((node) => {
      if (node instanceof Element) return textIn(node, undrawn);
      return node instanceof Text && (undrawn || visibility === 'visible') ? node.data : '';
    });
    const apart = /^(inline|contents)/.test(display) && element.tagName !== 'BR' ? '' : ' ';
    return parts.join('') + apart;
  };

  const textOf = (element) => {
    if (ticks(element)) return tidy(element.labels[0] ? textIn(element.labels[0]) : '') || label(element);
    if (element instanceof HTMLSelectElement) return tidy(element.selectedOptions[0]?.label ?? '');
    if (element instanceof HTMLInputElement) {
      if (element.type === 'image') return label(element);
      return element.hasAttribute('value') ? element.value : SHOWN[element.type] ?? element.value;
    }
    if (element instanceof HTMLTextAreaElement) return element.value;
    const text = tidy(textIn(element));
    return text || (element.isContentEditable ? '' : label(element) || tidy(textIn(element, true)) || name(element));
  };

  const statesOf = (element) => {
    const states = element.getRootNode().activeElement === element ? ['focus'] : [];
    const on = element.checked || element.selected || ON.some((key) => element.getAttribute(key) === 'true');
    if (on) states.push('on');
    if (element.matches(':disabled')) states.push('disabled');
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

  const holds = (element, node) => {
    for (let each = node; each !== null; each = __ratchet.above(each)) if (each === element) return true;
    return false;
  };

  // What has no box of its own is drawn in that of an element around it.
  const boxed = (element) =>
    getComputedStyle(element).display === 'contents' ? boxed(__ratchet.above(element)) : element;

  const covers = (element) => {
    const style = getComputedStyle(element);
    return element instanceof HTMLIFrameElement || (style.opacity !== '0' && paints(element, style));
  };

  // What lies at the centre of the box, topmost first; of other components, only these themselves.
  const pile = (element, [left, top, width, height]) =>
    element.getRootNode().elementsFromPoint(left + Math.floor(width / 2), top + Math.floor(height / 2));

  // Whether a click there hits the element.
  const hit = (element, box) => holds(element, pile(element, box)[0] ?? null);

  // Whether nothing that is painted lies over the element there.
  const seen = (element, box) =>
    holds(element, pile(element, box).find((each) => holds(element, each) || covers(each)) ?? null);

  // The box or a half of it for which a test holds, null where it does for none.
  const part = (element, box, test) => [box, ...halves(box)].find((each) => test(element, each)) ?? null;

  const within = (clip, element, style) => {
    if (style.overflowX === 'visible' || element === document.body) return clip;
    const box = element.getBoundingClientRect();
    return {
      left: Math.max(clip.left, box.left), top: Math.max(clip.top, box.top),
      right: Math.min(clip.right, box.right), bottom: Math.min(clip.bottom, box.bottom),
    };
  };

  // The clips of what stands inside an element, by position: what is placed by the page or screen is not cut by it.
  const inward = (clips, clip, element, style) => {
    const flow = within(clip, element, style);
    if (flow === clips.absolute && flow === clips.fixed) return { ...clips, flow }; // nothing is cut, as mostly
    const all = HOLDS_ALL.some((key) => style[key] !== 'none');
    const absolute = all || style.position !== 'static' ? flow : clips.absolute;
    return { flow, absolute, fixed: all ? flow : clips.fixed };
  };

  // All visible elements but those inside what the selector `hidden` matches.
  __ratchet.elements = (hidden) => {
    const found = [];
    const muted = []; // those of them that take no clicks, with their elements

    const emit = (target, element, clip, kind, text, states) => {
      const whole = boxOf(target, clip);
      if (whole === null) return;
      const isText = target !== element;
      const mute = getComputedStyle(element).pointerEvents === 'none' && (isText || element.matches(':disabled'));
      const box = mute ? whole : part(element, whole, isText ? seen : hit);
      if (box === null) return;
      found.push([kind, text.toWellFormed(), box, states]); // half a pair of code units is no text
      if (mute) muted.push([found.at(-1), element]);
    };

    const emitText = (node, parent, clip, style) => {
      const text = tidy(node.data);
      const labelled = parent.closest('label')?.control;
      const box = labelled && ticks(labelled) ? labelled : null;
      if (!text || (box && drawn(box))) return; // the box carries its label's text
      const range = document.createRange();
      range.selectNodeContents(node);
      if (box) emit(range, boxed(parent), clip, box.type, text, statesOf(box));
      else emit(range, boxed(parent), clip, textKind(parent, style), text, []);
    };

    const walk = (element, clips) => {
      const style = getComputedStyle(element);
      const clip = clips[style.position] ?? clips.flow;
      if (style.display === 'none' || style.opacity === '0' || element.matches(hidden)) return;
      const kind = control(element);
      if (kind && !(kind === 'select' && (element.multiple || element.size > 1))) {
        emit(element, element, clip, kind, textOf(element), statesOf(element));
        return;
      }
      const inside = __ratchet.inside(element).filter((node) => node instanceof Element || node instanceof Text);
      if (inside.every((node) => node instanceof Text && !tidy(node.data))) {
        if (paints(element, style)) emit(element, element, clip, 'image', name(element), []);
        return;
      }
      const inner = inward(clips, clip, element, style);
      const before = found.length;
      for (const child of inside) {
        if (child instanceof Text) emitText(child, element, inner.flow, style);
        else walk(child, inner);
      }
      const blank = found.length === before && style.cursor === 'pointer' && paints(element, style);
      if (blank) emit(element, element, clip, 'image', name(element), []); // such as a card turned face down
    };

    const screen = { left: 0, top: 0, right: innerWidth, bottom: innerHeight };
    const page = document.body ?? document.documentElement; // a picture has no body
    walk(page, { flow: screen, absolute: screen, fixed: screen });
    clickable.disabled = muted.length === 0;
    for (const [line, element] of muted) line[2] = part(element, line[2], seen);
    clickable.disabled = true;
    return found.filter(([, , box]) => box !== null);
  };
})();
