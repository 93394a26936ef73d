// Begins an episode of MiniWoB++: hides what BrowserGym hides from whoever plays (the query, rewards, the cover), and starts
// the task with its seed and its time. `renews` is of tasks whose widgets keep something of the episode before: these are taken apart,
// and the page makes them anew.
(seed, millis, task, renews) => {
  const words = (node) => node.textContent.replace(/\s+/g, ' ').trim();
  // Goals that are partly pictures are put into words as BrowserGym does.
  const goals = {
    'click-menu-2': (query) => query.children.length === 0 ? words(query)
      : words(query.childNodes[0]) + ' "' + query.children[0].getAttribute('class').split(' ')[1] + '" ' + words(query.childNodes[2]),
    'use-colorwheel-2': (query) => {
      const parts = query.children[1].style.backgroundColor.match(/\d+/g).slice(0, 3);
      const colour = '#' + parts.map((part) => Number(part).toString(16).padStart(2, '0')).join('');
      return words(query.children[0]) + ' ' + colour + ' ' + words(query.children[2]);
    },
  };
  const isFresh = !window.__spar_miniwob;
  if (isFresh) {
    const names = ['reward-display', 'click-canvas', 'sync-task-cover'];
    const aside = [];
    let query = null;
    const hide = () => {
      core.clearTimer();
      document.body.removeEventListener('click', core.canvasDrawClick);
      const shown = document.getElementById('query');
      query = shown.cloneNode(true);
      shown.innerHTML = '';
      aside.length = 0;
      for (const name of names) {
        const element = document.getElementById(name);
        element.remove();
        aside.push(element);
      }
    };
    const show = () => {
      document.getElementById('query').innerHTML = query.innerHTML;
      for (const element of aside) document.body.appendChild(element);
      core.createDisplay();
    };
    if (goals[task]) core.getUtterance = () => goals[task](document.getElementById('query'));
    for (const name of ['getUtterance', 'endEpisode', 'startEpisodeReal']) {
      const original = core[name];
      core[name] = function (...given) {
        show();
        const value = original.apply(core, given);
        hide();
        return value;
      };
    }
    Object.defineProperty(window, '__spar_miniwob', { value: { episode: 0 } });
    hide();
    if (renews) {
      // Names that jQuery UI draws are counted by us, so that they begin anew.
      const drawn = [...document.querySelectorAll('[id^="ui-id-"]')].map((element) => Number(element.id.slice(6)) || 0);
      const first = Math.max(0, ...drawn);
      __spar_miniwob.names = { first, last: first };
      jQuery.fn.uniqueId = function () {
        return this.each(function () {
          if (!this.id) this.id = 'ui-id-' + (++__spar_miniwob.names.last);
        });
      };
    }
  } else {
    // The page goes on from the episode before: that ends, and nothing of it stays that can be taken away.
    core.endEpisode(0);
    if (renews) {
      for (const element of document.querySelectorAll('*')) {
        const data = jQuery.data(element) || {};
        for (const name of Object.keys(data)) {
          if (/^ui[A-Z-]/.test(name) && data[name] && typeof data[name].destroy === 'function') data[name].destroy();
        }
      }
      __spar_miniwob.names.last = __spar_miniwob.names.first;
    }
    if (window.__spar_clock) __spar_clock.reset();
    if (window.__spar_bids) __spar_bids.element = __spar_bids.frame = 0;
    for (const element of document.querySelectorAll('[bid]')) element.removeAttribute('bid');
    if (document.activeElement && document.activeElement !== document.body) document.activeElement.blur();
    window.scrollTo(0, 0);
  }
  Math.seedrandom(seed);
  core.EPISODE_MAX_TIME = millis;
  core.startEpisodeReal();
  __spar_miniwob.episode++;
  const told = core.getUtterance();
  return { goal: typeof told === 'string' ? told : told.utterance, isReady: WOB_TASK_READY };
}
