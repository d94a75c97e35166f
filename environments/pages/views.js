// What a press or a letter changes on a random page, as the attributes of what is pressed say. Their values are the
// marks and views (`data-view`) they act on: `data-shows`, `data-hides`, `data-fills` (a field, with the text of what
// was pressed or its `value`), `data-adds` (a number, to the field `data-to`), `data-suggests` (the choices of a field),
// `data-among` (of these one is chosen), `data-once` (it shows something the first time only). A list with `data-finds`
// is searched by letters while it is shown.
(() => {
  const named = (names) => (names ?? '').split(' ').filter(Boolean)
    .flatMap((name) => [...document.querySelectorAll(`[data-mark="${name}"], [data-view="${name}"]`)]);

  // Of tabs and heads that lie together one is open.
  const choose = (pressed) => {
    for (const other of document.querySelectorAll(`[data-among="${pressed.dataset.among}"]`)) {
      other.setAttribute('aria-selected', other === pressed);
      other.classList.toggle('chosen', other === pressed);
    }
  };

  addEventListener('click', ({ target }) => {
    const pressed = target.closest('[data-shows], [data-hides], [data-fills], [data-adds]');
    if (pressed === null) return;
    const { shows, hides, fills, adds, to, among } = pressed.dataset;
    for (const view of named(hides)) view.hidden = true;
    for (const view of named(shows)) view.hidden = false;
    for (const field of named(fills)) {
      field['value' in field ? 'value' : 'textContent'] = pressed.getAttribute('value') ?? pressed.textContent;
    }
    for (const field of named(to)) field.value = Number(field.value) + Number(adds);
    if (among) choose(pressed);
    if ('once' in pressed.dataset) delete pressed.dataset.shows;
  });

  // What a field offers goes when something else is pressed.
  addEventListener('click', ({ target }) => {
    for (const field of document.querySelectorAll('[data-suggests]')) {
      for (const list of named(field.dataset.suggests)) list.hidden ||= field !== target && !list.contains(target);
    }
  });

  // What begins as the letters say comes into sight in a list that is shown, and Enter takes it.
  addEventListener('keydown', (event) => {
    const { key } = event;
    const list = [...document.querySelectorAll('[data-finds]')].find((one) => !one.hidden);
    if (list === undefined) return;
    event.preventDefault();
    if (key.length === 1) list.dataset.finds += key.toLowerCase();
    const begun = list.dataset.finds;
    const fitting = [...list.children].filter((one) => begun && one.textContent.toLowerCase().startsWith(begun));
    const found = fitting.find((one) => one.textContent.length === begun.length) ?? fitting[0];
    if (key === 'Enter') {
      found?.click();
      [list.hidden, list.dataset.finds] = [true, ''];
    } else found?.scrollIntoView({ block: 'nearest' });
  });

  addEventListener('input', ({ target }) => {
    const begun = target.value.toLowerCase();
    for (const list of named(target.dataset.suggests)) {
      for (const one of list.children) one.hidden = !one.textContent.toLowerCase().startsWith(begun);
      list.hidden = begun === '';
    }
  });
})();
