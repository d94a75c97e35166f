// Web applications: everything opens in the one page, and what stands in `hide` is not shown.
(() => {
  const sheet = new CSSStyleSheet();
  const TOUCH = '* { touch-action: manipulation; }'; // else a tap waits for a second one, by the real clock
  sheet.replaceSync(TOUCH);
  __ratchet.apply(sheet);
  let hidden = 'script, style, noscript, template';

  __ratchet.hide = (selectors) => {
    if (selectors.length === 0) return;
    sheet.replaceSync(`${TOUCH} ${selectors.join()} { display: none !important; }`);
    hidden += `, ${selectors.join()}`;
  };

  __ratchet.look = () => __ratchet.elements(hidden);

  // What the page has just begun is on its way after this: a form is sent by a task of its own.
  const nextTask = __ratchet.nextTask = () => new Promise((done) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => done();
    port2.postMessage(null);
  });

  // Also, the pictures are decoded.
  __ratchet.settle = () => nextTask().then(__ratchet.ready);

  // A tap is over with the mouse events that follow it, or with its touches where the page wants no more.
  __ratchet.expectTap = () => {
    __ratchet.tapped = new Promise((done) => { __ratchet.endTap = done; });
  };
  const endTap = () => nextTask().then(() => window.top.__ratchet.endTap?.()); // its frames are of its origin
  const isOff = (node) => node.closest?.('button, input, select, textarea')?.matches(':disabled');
  let touch = null;
  const letGo = async (event) => {
    const [target] = event.composedPath();
    await nextTask(); // the page has had it
    if (event.type === 'touchcancel' || touch.defaultPrevented || event.defaultPrevented || isOff(target)) endTap();
  };
  const UNTOUCHED = ['touchend', 'touchcancel'];
  addEventListener('touchstart', (event) => {
    touch = event;
    // What a page takes out while it is touched is told the end of it, and the window is not.
    for (const name of UNTOUCHED) event.composedPath()[0].addEventListener(name, letGo, { once: true });
  }, true);
  for (const name of UNTOUCHED) addEventListener(name, letGo, true);
  for (const name of ['mouseup', 'click']) addEventListener(name, endTap, true);

  // Time passes in the frames too.
  const { advance } = __ratchet;
  __ratchet.advance = async (ms) => {
    await advance(ms);
    for (let at = 0; at < frames.length; at += 1) {
      try { await frames[at].__ratchet?.advance(ms); } catch { /* it is of another origin */ }
    }
  };

  // There are no other tabs: what would open one opens here.
  const LEADS = 'a, area, form';
  const HERE = /^_(self|top|parent)$/i;
  const stay = (event) => {
    const node = event.composedPath().find((each) => each instanceof Element && each.matches(LEADS));
    const target = node?.getAttribute('target') ?? document.querySelector('base[target]')?.target;
    if (target && !HERE.test(target) && window.frames[target] === undefined) node?.setAttribute('target', '_self');
  };
  addEventListener('click', stay, true);
  addEventListener('submit', stay, true);
  window.open = (url) => {
    if (url) location.assign(url);
    return null;
  };

  __ratchet.login = (fields) => {
    let form = null;
    for (const [selector, text] of Object.entries(fields)) {
      const field = document.querySelector(selector);
      if (field === null) throw new Error(`no field ${selector}`);
      // As typing does it: scripts may watch both the property and the events.
      Object.getOwnPropertyDescriptor(Object.getPrototypeOf(field), 'value').set.call(field, text);
      for (const name of ['input', 'change']) field.dispatchEvent(new Event(name, { bubbles: true }));
      form = field.form ?? form;
    }
    if (form === null) throw new Error('the fields are in no form');
    form.requestSubmit();
  };
})();
