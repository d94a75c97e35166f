// The page's time. Nothing in the page moves unless the driver calls __ratchet.advance(ms), so what an
// action leads to does not depend on how long anything took.
(() => {
  const EPOCH = Date.UTC(2024, 0, 15, 12);
  const FRAME_MS = 16;
  const SHORTEST_INTERVAL_MS = 4;
  const RealDate = Date;
  const timers = new Map();
  const drawn = new Map(); // the pictures of styles by their addresses; they stay loaded
  let now = 0;
  let nextId = 1;
  let random = 0x2545f491;
  const sheets = []; // ours
  const drawing = window.requestAnimationFrame.bind(window);
  let loaded = null; // all this as it was when the page had loaded

  const add = (callback, delay, every, args) => {
    const run = typeof callback === 'function' ? () => callback(...args) : () => (0, eval)(callback);
    timers.set(nextId, { id: nextId, run, due: now + delay, every });
    return nextId++;
  };
  const clear = (id) => { timers.delete(id); };
  const atLeast = (least, delay) => Math.max(least, Number(delay) || 0);

  window.setTimeout = (callback, delay, ...args) => add(callback, atLeast(1, delay), null, args);
  window.setInterval = (callback, delay, ...args) => {
    const every = atLeast(SHORTEST_INTERVAL_MS, delay);
    return add(callback, every, every, args);
  };
  window.requestAnimationFrame = (callback) =>
    add(() => callback(now), FRAME_MS - (now % FRAME_MS), null, []);
  window.requestIdleCallback = (callback) =>
    add(() => callback({ didTimeout: false, timeRemaining: () => 0 }), 1, null, []);
  for (const name of ['clearTimeout', 'clearInterval', 'cancelAnimationFrame', 'cancelIdleCallback']) {
    window[name] = clear;
  }

  performance.now = () => now;
  RealDate.now = () => EPOCH + now;
  window.Date = new Proxy(RealDate, {
    construct: (target, args, newTarget) =>
      Reflect.construct(target, args.length ? args : [EPOCH + now], newTarget),
    apply: () => new RealDate(EPOCH + now).toString(),
  });
  RealDate.prototype.constructor = window.Date;

  const today = () => Math.floor(EPOCH + now);
  const formats = Intl.DateTimeFormat.prototype;
  const { get: formatOf } = Object.getOwnPropertyDescriptor(formats, 'format');
  const { formatToParts } = formats;
  Object.defineProperty(formats, 'format', {
    get() {
      const format = formatOf.call(this);
      return (date = today()) => format(date);
    },
  });
  formats.formatToParts = function (date = today()) { return formatToParts.call(this, date); };
  Object.defineProperty(performance, 'timeOrigin', { value: EPOCH });

  if (window.Temporal !== undefined) {
    const instant = () => Temporal.Instant.fromEpochMilliseconds(today());
    const zoned = (zone = Temporal.Now.timeZoneId()) => instant().toZonedDateTimeISO(zone);
    Object.assign(Temporal.Now, {
      instant,
      zonedDateTimeISO: zoned,
      plainDateTimeISO: (zone) => zoned(zone).toPlainDateTime(),
      plainDateISO: (zone) => zoned(zone).toPlainDate(),
      plainTimeISO: (zone) => zoned(zone).toPlainTime(),
    });
  }

  AbortSignal.timeout = (ms) => {
    const controller = new AbortController();
    const late = () => controller.abort(new DOMException('signal timed out', 'TimeoutError'));
    add(late, atLeast(0, ms), null, []);
    return controller.signal;
  };

  if (window.scheduler !== undefined) {
    const post = scheduler.postTask.bind(scheduler);
    scheduler.postTask = (callback, { delay, ...options } = {}) => {
      if (!(delay > 0)) return post(callback, options);
      return new Promise((done, fail) => {
        const { signal } = options;
        signal?.throwIfAborted();
        const run = () => done(new Promise((say) => say(callback()))); // what it throws is the promise's
        const timer = add(run, Number(delay), null, []);
        signal?.addEventListener('abort', () => { clear(timer); fail(signal.reason); }, { once: true });
      });
    };
  }

  const chance = Math.random = () => { // mulberry32: pages draw before they are seeded
    random = (random + 0x6d2b79f5) | 0;
    let bits = Math.imul(random ^ (random >>> 15), 1 | random);
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits;
    return ((bits ^ (bits >>> 14)) >>> 0) / 4294967296;
  };

  Crypto.prototype.getRandomValues = (array) => {
    const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
    bytes.forEach((_, at) => { bytes[at] = chance() * 256; });
    return array;
  };
  Crypto.prototype.randomUUID = () =>
    'xxxxxxxx-xxxx-4xxx-axxx-xxxxxxxxxxxx'.replace(/x/g, () => Math.floor(chance() * 16).toString(16));

  // What scripts animate would move by the real clock: it is at its end at once, as is what styles animate.
  const { animate } = Element.prototype;
  Element.prototype.animate = function (frames, options) {
    const given = typeof options === 'object' ? options : {};
    return animate.call(this, frames, { ...given, duration: 0, delay: 0, endDelay: 0 });
  };

  const earliest = () => {
    let first = null;
    for (const timer of timers.values()) {
      if (first === null || timer.due < first.due) first = timer;
    }
    return first;
  };

  // Pages may set all sheets anew, and components have their own.
  const dress = (root) => {
    const missing = sheets.filter((sheet) => !root.adoptedStyleSheets.includes(sheet));
    if (missing.length > 0) root.adoptedStyleSheets.push(...missing);
  };

  window.__ratchet = {
    // Apply a sheet to the page, and to components from the next look on.
    apply(sheet) {
      sheets.push(sheet);
      dress(document);
    },

    // Run what falls due in the next `ms` milliseconds.
    async advance(ms) {
      const end = now + ms;
      for (let timer = earliest(); timer !== null && timer.due <= end; timer = earliest()) {
        now = timer.due;
        if (timer.every === null) timers.delete(timer.id);
        else timer.due += timer.every;
        try { timer.run(); } catch (error) { console.error(error); }
        await null; // lets promises settle between timers, as a browser does
      }
      now = end;
    },

    // Wait for the pictures and fonts of the page, which load in real time, and lay it out: so the next frame
    // knows what lies under the mouse.
    async ready() {
      const pictures = [];
      dress(document);
      for (const element of __ratchet.all()) {
        if (element.shadowRoot !== null) dress(element.shadowRoot);
        // One that waits until it is scrolled to does not come before.
        const comes = element instanceof HTMLImageElement && element.loading !== 'lazy';
        if (comes && !element.complete) pictures.push(element);
        const { backgroundImage, content } = getComputedStyle(element);
        if (backgroundImage === 'none' && content === 'normal') continue;
        for (const [, url] of `${backgroundImage} ${content}`.matchAll(/url\("(.*?)"\)/g)) {
          if (drawn.has(url)) continue;
          drawn.set(url, Object.assign(new Image(), { src: url }));
          pictures.push(drawn.get(url));
        }
      }
      await Promise.all([...pictures.map((image) => image.decode().catch(() => null)), document.fonts.ready]);
      document.documentElement.getBoundingClientRect();
    },

    // Make the next frame do its work, though nothing may have changed.
    stir() { drawing(() => undefined); },

    // Set the clock back to where it stood at the first call, before the page's episode began, and let go of focus
    // and scrolling: what else an episode leaves behind, the page itself must clear.
    rewind() {
      loaded ??= { now, nextId, random, timers: [...timers.values()].map((timer) => ({ ...timer })) };
      ({ now, nextId, random } = loaded);
      timers.clear();
      for (const timer of loaded.timers) timers.set(timer.id, { ...timer });
      document.activeElement?.blur();
      for (const element of document.querySelectorAll('*')) {
        if (element.scrollTop !== 0 || element.scrollLeft !== 0) element.scrollTo(0, 0);
      }
    },
  };
})();
