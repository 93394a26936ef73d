// The clock of a page: time goes on when it is told to, so that equal actions find equal pages however long they took.
(() => {
  if (window.__spar_clock) return;
  const start = START_MILLIS;
  const NativeDate = Date;
  let now = 0, next = 1, order = 0;
  let timers = new Map();
  const isFunction = (f) => typeof f === 'function';
  const call = (f, args) => {
    try {
      if (isFunction(f)) f.apply(window, args); else (0, eval)(String(f));
    } catch (error) {
      // As of a timer of the browser's own: told to `window.onerror`, and nobody's else.
      if (isFunction(window.reportError)) window.reportError(error);
    }
  };
  const add = (f, delay, every, args, isFrame) => {
    delay = Number(delay);
    if (!(delay > 0)) delay = 0;
    const id = next++;
    timers.set(id, { f, args, due: now + delay, every: every ? Math.max(delay, 1) : 0, order: order++, isFrame });
    return id;
  };
  const define = (target, name, value) =>
    Object.defineProperty(target, name, { value, writable: true, configurable: true, enumerable: true });
  define(window, 'setTimeout', function setTimeout(f, delay, ...args) { return add(f, delay, false, args); });
  define(window, 'setInterval', function setInterval(f, delay, ...args) { return add(f, delay, true, args); });
  const clear = (id) => { timers.delete(Number(id)); };
  define(window, 'clearTimeout', function clearTimeout(id) { clear(id); });
  define(window, 'clearInterval', function clearInterval(id) { clear(id); });
  // Frames come every 16 ms.
  define(window, 'requestAnimationFrame', function requestAnimationFrame(f) {
    return add(f, 16 - (now % 16), false, [], true);
  });
  define(window, 'cancelAnimationFrame', function cancelAnimationFrame(id) { clear(id); });
  define(window, 'requestIdleCallback', function requestIdleCallback(f) {
    return add(() => f({ didTimeout: false, timeRemaining: () => 50 }), 1, false, []);
  });
  define(window, 'cancelIdleCallback', function cancelIdleCallback(id) { clear(id); });
  function ClockDate(...args) {
    if (!new.target) return new NativeDate(start + now).toString();
    return args.length === 0
      ? Reflect.construct(NativeDate, [start + now], new.target)
      : Reflect.construct(NativeDate, args, new.target);
  }
  ClockDate.prototype = NativeDate.prototype;
  Object.setPrototypeOf(ClockDate, NativeDate);
  ClockDate.now = () => start + now;
  ClockDate.UTC = NativeDate.UTC;
  ClockDate.parse = NativeDate.parse;
  NativeDate.prototype.constructor = ClockDate;
  Object.defineProperty(window, 'Date', { value: ClockDate, writable: true, configurable: true, enumerable: false });
  performance.now = () => now;
  const advance = (millis) => {
    const end = now + millis;
    // A page that sets timers without end gets no more than this many in one go.
    for (let calls = 0; calls < 4000; calls++) {
      let first = null, id = 0;
      for (const [key, timer] of timers) {
        if (timer.due <= end && (first === null || timer.due < first.due || (timer.due === first.due && timer.order < first.order))) {
          first = timer;
          id = key;
        }
      }
      if (first === null) break;
      now = Math.max(now, first.due);
      if (first.every) {
        first.due = now + first.every;
        first.order = order++;
      } else {
        timers.delete(id);
      }
      call(first.f, first.isFrame ? [now] : first.args);
    }
    now = Math.max(now, end);
  };
  Object.defineProperty(window, '__spar_clock', {
    value: Object.freeze({ advance, reset: () => { timers = new Map(); now = 0; }, now: () => now }),
  });
})();
