// FlightWoB: the site lies in a frame that fills the screen, and has a driver of its own. What the screen shows,
// how it scrolls and how time passes is the frame's affair; the episode is the outer page's.
(() => {
  if (window !== top) return;
  const inner = () => document.getElementById('wrap').contentWindow;
  const { advance, begin, ready } = __ratchet;

  __ratchet.begin = async (seed) => {
    const loaded = new Promise((done) => {
      document.getElementById('wrap').addEventListener('load', done, { once: true });
    });
    const started = begin(seed);
    await loaded;
    // The site would fetch its airports at the first key, which would then wait for them in real time.
    inner().$miniwob.airports = await (await inner().fetch('surrogate/airports.json')).json();
    return started;
  };
  __ratchet.advance = async (ms) => {
    await advance(ms);
    await inner()?.__ratchet?.advance(ms);
  };
  __ratchet.ready = async () => {
    await ready();
    await inner()?.__ratchet?.ready();
  };
  for (const name of ['elements', 'scroll', 'scrollbars', 'pressScrollbar']) {
    __ratchet[name] = (...args) => inner().__ratchet[name](...args);
  }
})();
