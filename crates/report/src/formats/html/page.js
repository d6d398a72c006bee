// Crosshairs, zoom and copying. The page says everything without it.
'use strict';
(() => {
const said = document.getElementById('said');
const plots = [...document.querySelectorAll('.pa[data-points]')].map(el => {
  const cross = document.createElement('i'), tip = document.createElement('div'), picked = document.createElement('i');
  cross.className = 'cross'; tip.className = 'tip'; picked.className = 'picked';
  for (const part of [cross, tip, picked]) { part.hidden = true; el.append(part); }
  el.tabIndex = 0;
  return { el, cross, tip, picked, at: -1, points: JSON.parse(el.dataset.points), link: el.dataset.link,
    svg: el.querySelector('svg'), marks: [...el.querySelectorAll('[data-x]'), ...el.parentNode.querySelectorAll('.xa [data-x]')] };
});
const linked = p => plots.filter(q => q === p || (p.link && q.link === p.link));
const view = { from: 0, width: 1000 };
const views = new Map();
const seen = p => views.get(p.link || p) || view;
const percent = (p, x) => { const v = seen(p); return 100 * (x - v.from) / v.width; };
const value = (p, event) => {
  const box = p.el.getBoundingClientRect(), v = seen(p);
  return v.from + v.width * Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
};
const nearest = (p, x) => p.points.reduce((best, point, i) => Math.abs(point[0] - x) < Math.abs(p.points[best][0] - x) ? i : best, 0);
const show = (p, x) => {
  for (const q of linked(p)) {
    q.at = nearest(q, x);
    const [px, text] = q.points[q.at], left = percent(q, px);
    const inside = left >= 0 && left <= 100;
    q.cross.hidden = q.tip.hidden = !inside;
    q.cross.style.left = left + '%';
    q.tip.textContent = text;
    q.tip.style.left = left < 60 ? 'calc(' + left + '% + 10px)' : 'auto';
    q.tip.style.right = left < 60 ? 'auto' : 'calc(' + (100 - left) + '% + 10px)';
  }
};
const hide = p => { for (const q of linked(p)) q.cross.hidden = q.tip.hidden = true; };
const zoom = (p, from, width) => {
  views.set(p.link || p, { from, width });
  for (const q of linked(p)) {
    q.svg.setAttribute('viewBox', from + ' 0 ' + width + ' 1000');
    for (const mark of q.marks) {
      const left = percent(q, +mark.dataset.x);
      mark.style.left = left + '%';
      mark.style.visibility = left < -0.1 || left > 100.1 ? 'hidden' : '';
    }
  }
  hide(p);
};
const reset = p => zoom(p, 0, 1000);
for (const p of plots) {
  let start = null;
  p.el.addEventListener('pointermove', event => {
    const x = value(p, event);
    show(p, x);
    if (start !== null) {
      const [a, b] = [percent(p, Math.min(start, x)), percent(p, Math.max(start, x))];
      p.picked.hidden = false; p.picked.style.left = a + '%'; p.picked.style.width = (b - a) + '%';
    }
  });
  p.el.addEventListener('pointerleave', () => hide(p));
  p.el.addEventListener('pointerdown', event => {
    if (event.pointerType === 'mouse' && event.button === 0) { start = value(p, event); p.el.setPointerCapture(event.pointerId); event.preventDefault(); p.el.focus(); }
  });
  p.el.addEventListener('pointerup', event => {
    if (start === null) return;
    const end = value(p, event), from = Math.min(start, end), width = Math.abs(end - start);
    start = null; p.picked.hidden = true;
    if (width > seen(p).width / 100) zoom(p, from, width);
  });
  p.el.addEventListener('pointercancel', () => { start = null; p.picked.hidden = true; });
  p.el.addEventListener('dblclick', () => reset(p));
  p.el.addEventListener('blur', () => hide(p));
  p.el.addEventListener('keydown', event => {
    const last = p.points.length - 1, now = p.at < 0 ? 0 : p.at, v = seen(p);
    const to = { ArrowRight: now + 1, ArrowLeft: now - 1, Home: 0, End: last, PageDown: now + 10, PageUp: now - 10 }[event.key];
    if (to !== undefined) {
      show(p, p.points[Math.min(last, Math.max(0, to))][0]);
      said.textContent = p.points[p.at][1];
    } else if (event.key === 'Escape') reset(p);
    else if (event.key === '+' || event.key === '-') {
      const width = Math.min(1000, v.width * (event.key === '+' ? 0.5 : 2)), middle = p.points[Math.max(0, p.at)][0];
      zoom(p, Math.min(1000 - width, Math.max(0, middle - width / 2)), width);
    } else return;
    event.preventDefault();
  });
}
for (const button of document.querySelectorAll('.copy button')) {
  button.hidden = false;
  button.addEventListener('click', async () => {
    const code = button.parentNode.querySelector('code');
    let done = false;
    try { await navigator.clipboard.writeText(code.textContent); done = true; } catch {
      getSelection().selectAllChildren(code);
      try { done = document.execCommand('copy'); } catch { done = false; }
    }
    button.textContent = said.textContent = done ? 'Copied' : 'Selected';
    setTimeout(() => { button.textContent = 'Copy'; }, 1500);
  });
}
addEventListener('beforeprint', () => { for (const p of plots) reset(p); });
})();
