// SPDX-License-Identifier: MIT
// The keyboard, the filter, what was read. Everything that is shown is in the page without it.
'use strict';
(() => {
	const byId = (id) => document.getElementById(id);
	const files = [...document.querySelectorAll('.file')];
	const lists = { file: files };
	const help = byId('help'), status = byId('status'), find = byId('find');
	const field = find.querySelector('input'), told = find.querySelector('output');
	const links = new Map([...document.querySelectorAll('nav a')].map((a) => [a.hash.slice(1), a]));
	let here = null, steered = false;

	// All that a key steps through, in the order of the page.
	const stops = (kind) => lists[kind] ??= [...document.querySelectorAll(kind === 'finding' ? '.file .finding' : '.hunk, .file .finding')];

	// Who scrolled by hand goes on from what is on top.
	const position = () => here ?? document.elementFromPoint(innerWidth * 0.7, 60)?.closest('.finding, .hunk, .file');

	const isBefore = (a, b) => a.compareDocumentPosition(b) & Node.DOCUMENT_POSITION_FOLLOWING;

	const neighbour = (list, from, step) => {
		const usable = list.filter((e) => !e.closest('[hidden]'));
		if (!from || !from.isConnected)
			return step > 0 ? usable[0] : undefined;
		if (step > 0)
			return usable.find((e) => isBefore(from, e));
		return usable.findLast((e) => isBefore(e, from) && !(list === files && e.contains(from)));
	};

	const mark = (file) => {
		document.querySelector('nav a[aria-current]')?.removeAttribute('aria-current');
		const link = file && links.get(file.id);
		if (!link)
			return;
		for (let d = link.closest('details'); d; d = d.parentElement.closest('details'))
			d.open = true;
		link.setAttribute('aria-current', 'true');
		link.scrollIntoView({ block: 'nearest' });
	};

	const go = (target, open = true) => {
		if (!target)
			return;
		const file = target.closest('.file');
		if (open && target !== file)
			file.open = true;
		document.querySelector('.here')?.classList.remove('here');
		mark(file);
		here = target;
		here.classList.add('here');
		steered = true;
		const focused = target === file ? file.querySelector('summary') : target;
		if (target !== file)
			focused.tabIndex = -1;
		focused.focus({ preventScroll: true });
		// Twice: what was not laid out yet gets its height when it comes into view.
		target.scrollIntoView({ block: 'start' });
		requestAnimationFrame(() => {
			target.scrollIntoView({ block: 'start' });
			setTimeout(() => { steered = false; }, 150);
		});
	};

	const say = (kind, target) => {
		const list = stops(kind);
		status.textContent = target ? `${kind === 'stop' ? 'hunk or finding' : kind} ${list.indexOf(target) + 1} of ${list.length}` : `no further ${kind === 'stop' ? 'hunk or finding' : kind}`;
	};

	const step = (kind, by) => {
		const target = neighbour(stops(kind), position(), by);
		go(target);
		say(kind, target);
	};

	const current = () => position()?.closest('.file') ?? files[0];

	const read = () => {
		const file = current();
		if (!file)
			return;
		const seen = file.classList.toggle('seen');
		file.open = !seen;
		links.get(file.id)?.classList.toggle('seen', seen);
		here = file;
		if (seen)
			go(neighbour(files, file, 1) ?? file);
		status.textContent = `${document.querySelectorAll('.file.seen').length} of ${files.length} files read`;
	};

	let paths = null;
	const filter = () => {
		const wanted = field.value.toLowerCase();
		paths ??= files.map((f) => f.querySelector('.path').textContent.toLowerCase());
		let shown = 0;
		files.forEach((file, i) => {
			file.hidden = !paths[i].includes(wanted);
			shown += !file.hidden;
			links.get(file.id).parentElement.hidden = file.hidden;
		});
		for (const d of [...document.querySelectorAll('nav details')].reverse())
			d.parentElement.hidden = !d.querySelector('li:not([hidden])');
		told.textContent = wanted ? `${shown} of ${files.length} files` : '';
	};

	const keys = {
		j: () => step('file', 1), k: () => step('file', -1),
		n: () => step('stop', 1), p: () => step('stop', -1),
		g: () => step('finding', 1), G: () => step('finding', -1),
		x: () => { const f = current(); if (f) f.open = !f.open; },
		v: read,
		t: () => { go(null); here = null; status.textContent = ''; scrollTo(0, 0); },
		'/': () => { field.focus(); field.select(); },
		'?': () => { if (help.open) help.close(); else help.showModal(); },
	};

	document.addEventListener('keydown', (event) => {
		if (event.ctrlKey || event.altKey || event.metaKey)
			return;
		if (event.target === field) {
			if (event.key === 'Escape' || event.key === 'Enter')
				field.blur();
			return;
		}
		if (help.open && event.key !== '?')
			return;
		if (Object.hasOwn(keys, event.key)) {
			event.preventDefault();
			keys[event.key]();
		}
	});
	addEventListener('scroll', () => { if (!steered) here = null; }, { passive: true });
	document.addEventListener('click', (event) => {
		const link = event.target.closest('a[href^="#f"], a[href^="#g"]');
		const target = link && byId(link.hash.slice(1));
		if (target) {
			event.preventDefault();
			history.replaceState(null, '', link.hash);
			go(target);
		}
	});
	field.addEventListener('input', filter);
	help.querySelector('button').addEventListener('click', () => help.close());
	byId('keys').addEventListener('click', () => help.showModal());
	byId('keys').hidden = find.hidden = false;
	if (location.hash)
		go(byId(location.hash.slice(1))?.closest('.file, .finding'));
})();
