// What a browser would draw outside the page (lists, pickers, dialogs) no screenshot shows: lists are drawn
// in the page, pickers and dialogs do not open. Also peer connections, which stay shut, and scrolling.
(() => {
  const SCROLL_SHARE = 0.8; // of the visible height, a scroll action moves
  const ROW_PX = 14;
  const PICKERS = ['color', 'file', 'date', 'time', 'month', 'week', 'datetime-local']
    .map((type) => `[type=${type}]`).join();
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(`
    *, *::before, *::after {
      transition: none !important; animation-duration: 0s !important; animation-delay: 0s !important;
      scroll-behavior: auto !important; caret-animation: manual !important;
    }
    input::-webkit-calendar-picker-indicator { display: none !important; }
    .ratchet-list {
      position: fixed; z-index: 2147483647; box-sizing: border-box; overflow-x: hidden; overflow-y: auto;
      margin: 0; padding: 0; border: 1px solid #767676; background: white; color: black; font: 10px Arial;
    }
    .ratchet-list > div {
      height: ${ROW_PX}px; line-height: ${ROW_PX}px; margin: 0; padding: 0 3px; overflow: hidden; white-space: nowrap;
      cursor: default;
    }
    .ratchet-list > div[aria-selected=true] { background: #1967d2; color: white; }
  `);
  __ratchet.apply(sheet);

  window.alert = () => undefined;
  window.confirm = () => true;
  window.prompt = (_, given = '') => String(given);
  window.print = () => undefined;
  for (const kind of [HTMLInputElement, HTMLSelectElement]) kind.prototype.showPicker = () => undefined;

  // Peer connections send to any address, past the rules that hold for everything else.
  delete window.RTCPeerConnection;
  delete window.webkitRTCPeerConnection;

  let list = null;
  let owner = null;

  const close = () => {
    list?.remove();
    list = owner = null;
  };

  const offered = (select) => [...select.options].filter((option) => getComputedStyle(option).display !== 'none');

  // Where a list must stand to lie on top and be clicked: in the dialog that its select is in, if any.
  const topmost = (node) => {
    for (let each = node; each !== null; each = __ratchet.above(each)) {
      if (each.matches('dialog[open], :popover-open')) return each;
    }
    return document.body;
  };

  const open = (select) => {
    close();
    owner = select;
    list = document.createElement('div');
    list.className = 'ratchet-list';
    offered(select).forEach((option) => {
      const row = document.createElement('div');
      row.textContent = option.label;
      row.setAttribute('role', 'option');
      row.setAttribute('aria-selected', String(option.selected));
      list.append(row);
    });
    place(select.getBoundingClientRect(), list.childElementCount * ROW_PX + 2);
    topmost(select).append(list);
    list.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' });
  };

  const place = (box, height) => {
    const below = innerHeight - box.bottom;
    const above = box.top > below && height > below;
    const shown = Math.min(height, above ? box.top : below);
    const top = above ? box.top - shown : box.bottom;
    list.style.cssText = `left:${box.left}px;top:${top}px;width:${box.width}px;height:${shown}px`;
  };

  const choose = (index) => {
    const select = owner;
    const option = offered(select)[index];
    close();
    if (option === undefined || option.matches(':disabled') || option.selected) return;
    option.selected = true;
    select.dispatchEvent(new Event('input', { bubbles: true }));
    select.dispatchEvent(new Event('change', { bubbles: true }));
  };

  const dropDown = (node) => {
    const select = node instanceof Element ? node.closest('select') : null;
    return select && !select.matches(':disabled') && !select.multiple && select.size <= 1 ? select : null;
  };

  const swallow = (event) => {
    event.preventDefault();
    event.stopImmediatePropagation();
  };

  const target = (event) => event.composedPath()[0];

  addEventListener('mousedown', (event) => {
    if (list?.contains(target(event))) {
      swallow(event);
      return;
    }
    const select = dropDown(target(event));
    const again = select !== null && select === owner;
    close();
    if (select === null) return;
    event.preventDefault();
    select.focus();
    if (!again) open(select);
  }, true);
  for (const name of ['mouseup', 'click']) {
    addEventListener(name, (event) => {
      if (!list?.contains(target(event))) return;
      event.preventDefault();
      event.stopPropagation(); // only: a tap ends with these
      if (name === 'click') choose([...list.children].indexOf(target(event)));
    }, true);
  }
  addEventListener('keydown', (event) => {
    const select = dropDown(target(event));
    if (select !== null && ['Enter', ' ', 'F4'].includes(event.key)) {
      swallow(event);
      if (owner === select) close();
      else open(select);
      return;
    }
    close();
    if ([' ', 'F4'].includes(event.key) && target(event).matches?.(PICKERS)) event.preventDefault();
  }, true);
  addEventListener('click', (event) => {
    if (target(event).matches?.('[type=color], [type=file]')) event.preventDefault();
  }, true);

  const { rewind } = __ratchet;
  __ratchet.rewind = () => {
    close();
    rewind();
  };

  const isRoot = (element) => element === document.scrollingElement;
  const overflows = (way) => /auto|scroll/.test(way);

  const DOWN = { whole: 'scrollHeight', seen: 'clientHeight', at: 'scrollTop', way: 'overflowY', delta: 'deltaY' };
  const ACROSS = { whole: 'scrollWidth', seen: 'clientWidth', at: 'scrollLeft', way: 'overflowX', delta: 'deltaX' };

  // Whether the page holds the window still, as behind a dialog: by its root, or by its body where that says nothing.
  const held = (axis) => {
    const [root, body] = [document.documentElement, document.body ?? document.documentElement]
      .map((element) => getComputedStyle(element)[axis.way]);
    return (root === 'visible' ? body : root) === 'hidden';
  };

  const movable = (element, step, axis) => {
    const room = element[axis.whole] - element[axis.seen];
    const scrolls = isRoot(element) ? !held(axis) : overflows(getComputedStyle(element)[axis.way]);
    return scrolls && room > 0 && (step > 0 ? element[axis.at] < room : element[axis.at] > 0);
  };

  const area = (element) => element.clientWidth * element.clientHeight;

  const scroller = (x, y, step, axis) => {
    for (let node = __ratchet.at(x, y); node !== null; node = __ratchet.above(node)) {
      if (movable(node, step, axis)) return node;
    }
    const all = __ratchet.all().filter((element) => movable(element, step, axis));
    return all.reduce((best, one) => (best === null || area(one) > area(best) ? one : best), null);
  };

  const scrollBy = (element, step, axis) => {
    element.dispatchEvent(new WheelEvent('wheel', { [axis.delta]: step, bubbles: true, cancelable: true }));
    element[axis.at] += Math.round(step * element[axis.seen] * SCROLL_SHARE);
  };

  // Scroll what lies under (x, y), else the largest thing that can move; step is -1 (up, or left) or 1.
  __ratchet.scroll = (x, y, step, across) => {
    const axis = across ? ACROSS : DOWN;
    const element = list?.isConnected ? list : scroller(x, y, step, axis);
    if (element !== null) scrollBy(element, step, axis);
  };

  // Whether there is a scrollbar anywhere: where one is, an element's edges differ in width.
  __ratchet.scrollbars = () => {
    for (const element of __ratchet.all()) {
      const { clientWidth, clientHeight } = element;
      if (clientWidth === 0) continue;
      if (isRoot(element)) {
        if (innerWidth > clientWidth || innerHeight > clientHeight) return true;
      } else if (
        element.offsetWidth !== clientWidth + 2 * element.clientLeft ||
        element.offsetHeight !== clientHeight + 2 * element.clientTop
      ) return true;
    }
    return false;
  };

  // Whether (x, y) lies on a scrollbar; if so, page towards that end of it. A real press there would run on
  // the browser's own clock.
  __ratchet.pressScrollbar = (x, y) => {
    const element = __ratchet.at(x, y);
    if (element === null || element.clientWidth === 0) return false;
    const root = isRoot(element);
    const style = getComputedStyle(element);
    const box = element.getBoundingClientRect();
    const right = (root ? 0 : box.left) + element.clientLeft + element.clientWidth;
    const bottom = (root ? 0 : box.top) + element.clientTop + element.clientHeight;
    const endRight = root ? innerWidth : box.right - parseFloat(style.borderRightWidth);
    const endBottom = root ? innerHeight : box.bottom - parseFloat(style.borderBottomWidth);
    const onVertical = (root || overflows(style.overflowY)) && x >= right && x < endRight;
    const onHorizontal = (root || overflows(style.overflowX)) && y >= bottom && y < endBottom;
    if (!(onVertical || onHorizontal)) return false;
    if (onVertical) scrollBy(element, y > bottom - element.clientHeight / 2 ? 1 : -1, DOWN);
    else scrollBy(element, x > right - element.clientWidth / 2 ? 1 : -1, ACROSS);
    return true;
  };
})();
