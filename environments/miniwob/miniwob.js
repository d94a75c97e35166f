// MiniWoB++: begin an episode, and show neither the score board nor the START cover, so that the last screen
// stays as the last action left it.
(() => {
  const DAY_MS = 86400000; // the page's own time limit would end slow episodes
  const sheet = new CSSStyleSheet();
  sheet.replaceSync('#reward-display, #click-canvas, #sync-task-cover { display: none !important; }');
  __ratchet.apply(sheet);

  // An icon whose picture is still to come has no size, and a click on it misses: those that a hover shows too.
  const pictures = [];
  const loadPictures = async () => {
    const rules = [...document.querySelectorAll('style')].map((style) => style.textContent).join();
    for (const [, url] of rules.matchAll(/url\(["']?(.*?)["']?\)/g)) {
      pictures.push(Object.assign(new Image(), { src: url }));
    }
    await Promise.all(pictures.map((picture) => picture.decode().catch(() => null)));
  };

  __ratchet.begin = async (seed) => {
    await loadPictures();
    core.EPISODE_MAX_TIME = DAY_MS;
    core.endEpisode(0);
    __ratchet.rewind();
    Math.seedrandom(seed);
    core.startEpisodeReal();
    for (let waited = 0; !WOB_TASK_READY && waited < 10000; waited += 100) await __ratchet.advance(100);
    await __ratchet.ready();
    const said = core.getUtterance(); // some pages add what its words stand for
    return said.utterance ?? said;
  };

  __ratchet.look = () => ({
    elements: __ratchet.elements('#query, #reward-display, #click-canvas, #sync-task-cover, script, style'),
    done: WOB_DONE_GLOBAL,
    reward: WOB_RAW_REWARD_GLOBAL,
  });
})();
