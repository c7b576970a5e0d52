# SPDX-License-Identifier: MIT
"""A page of `sbxfs diff --html`, read strictly: what is not exactly the page's own markup fails the case."""
import base64
import hashlib
import html.parser
import re

from .kit import check, eq, short

VOID = {'meta', 'input'}
TAGS = VOID | set('html head title style body a header h1 h2 h3 small dl div dt dd button kbd nav p output ul li details summary span main section '
                  'table thead tbody tr th td strong pre bdi code i b u del ins mark em samp dialog script'.split())
ATTRIBUTES = set('lang charset http-equiv content name class href id hidden aria-label aria-labelledby aria-hidden type placeholder scope tabindex open '
                 'title role'.split())
# A tag as the writer makes them, a reference, text; of all other bytes there are none.
TOKEN = re.compile(r'<!DOCTYPE html>|</?[a-z]+[1-6]?(?: [a-z-]+(?:="[^"<>]*"|=[^\s"\'<>=`]+)?)*>|&(?:amp|lt|gt|quot|#39);|[^<&]')


class File:
    """One change: what its heading says, its lines, its findings."""

    def __init__(self, identity):
        self.id, self.status, self.path, self.facts, self.text = identity, '', '', '', ''
        self.rows, self.findings, self.marks, self.samples = [], [], [], []


class Page(html.parser.HTMLParser):
    def __init__(self, data):
        super().__init__(convert_charrefs=True)
        self.data = data.decode('utf-8')
        self.stack, self.ids, self.links, self.files, self.texts = [], [], [], [], {}
        self.policy, self.nav, self.gate, self.title, self.header = None, [], [], '', ''
        self.check_tokens()
        self.feed(self.data)
        self.close()
        eq(self.stack, [], 'elements left open')
        self.check_whole()

    # What a page has to be

    def check_tokens(self):
        outside = re.sub(r'<(style|script)>.*?</\1>', lambda m: f'<{m[1]}></{m[1]}>', self.data, flags=re.S)
        at = 0
        while at < len(outside):
            match = TOKEN.match(outside, at)
            check(match, f'neither markup of the page nor text: {short(outside[at:at + 60])}')
            at = match.end()
        check(not re.search('[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]', self.data), 'invisible characters')

    def check_whole(self):
        eq(len(self.ids), len(set(self.ids)), 'ids that are unique')
        for link in self.links:
            check(link.startswith('#') and link[1:] in set(self.ids), f'a link to {link}')
        style, script = self.texts['style'], self.texts['script']
        eq((len(style), len(script)), (1, 1), 'styles and scripts')

        def named(text):
            return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"
        eq(self.policy, f"default-src 'none'; style-src {named(style[0])}; script-src {named(script[0])}; base-uri 'none'; form-action 'none'", 'the policy')
        for text in style + script:
            check(not re.search(r'https?:|url\(|@import|fetch\(|import\(|innerHTML|eval\(', text), 'something from elsewhere in style or script')

    # Parsing

    def handle_starttag(self, tag, attrs):
        check(tag in TAGS, f'an element {tag}')
        named = dict(attrs)
        eq(len(named), len(attrs), f'attributes of {tag}')
        check(set(named) <= ATTRIBUTES, f'attributes of {tag}: {short(named)}')
        if 'id' in named:
            self.ids.append(named['id'])
        if 'href' in named:
            self.links.append(named['href'])
        if named.get('http-equiv') == 'Content-Security-Policy':
            check(not self.texts, 'the policy comes before what it is about')
            self.policy = named['content']
        if tag in ('style', 'script'):
            self.texts.setdefault(tag, []).append('')
        if tag not in VOID:
            self.stack.append((tag, named))
        self.begin(tag, named)

    def begin(self, tag, named):
        classes = named.get('class', '').split()
        if tag == 'details' and 'file' in classes:
            self.files.append(File(named['id']))
        elif self.inside('nav') and tag == 'a':
            self.nav.append([named['href'][1:], ''])
        elif self.inside('tbody') and tag == 'tr':
            self.gate.append([])
        elif self.inside('tbody') and tag == 'td':
            self.gate[-1].append('')
        if not self.files:
            return
        file = self.files[-1]
        if 'finding' in classes:
            file.findings.append([classes[1], file.rows[-1][1] if file.rows and file.rows[-1][0] == '+' else None, ''])
        elif tag in ('del', 'ins'):
            file.rows.append(['-' if tag == 'del' else '+', int(self.number), ''])
        elif tag == 'mark':
            file.marks.append('')
        elif tag == 'samp':
            file.samples.append('')

    def handle_endtag(self, tag):
        check(self.stack and self.stack[-1][0] == tag, f'</{tag}> closes {self.stack[-1:]}')
        self.stack.pop()

    def inside(self, tag, name=None):
        return any(t == tag and (name is None or name in a.get('class', '').split()) for t, a in self.stack)

    def handle_data(self, data):
        tag = self.stack[-1][0] if self.stack else ''
        if tag in self.texts:
            self.texts[tag][-1] += data
        elif tag == 'title':
            self.title += data
        elif self.inside('header'):
            self.header += data
        elif self.inside('nav') and self.inside('a'):
            self.nav[-1][1] += data
        elif self.inside('tbody') and self.inside('td'):
            self.gate[-1][-1] += data
        elif self.files and self.inside('details', 'file'):
            self.file_data(tag, data)

    def file_data(self, tag, data):
        file = self.files[-1]
        file.text += data
        if self.inside('span', 'st'):
            file.status = data
        elif self.inside('span', 'path'):
            file.path += data
        elif self.inside('span', 'facts'):
            file.facts += data
        elif self.inside('div', 'finding'):
            file.findings[-1][2] += data
        elif tag in ('i', 'b'):
            self.number = data
        elif self.inside('del') or self.inside('ins'):
            file.rows[-1][2] += data
        if self.inside('mark'):
            file.marks[-1] += data
        if tag == 'samp':
            file.samples[-1] += data

    def handle_comment(self, data):
        check(False, f'a comment: {short(data)}')

    def handle_pi(self, data):
        check(False, f'a processing instruction: {short(data)}')

    # Answers

    def file(self, path):
        found = [f for f in self.files if f.path == path]
        eq(len(found), 1, f'parts of the page for {path}')
        return found[0]

    def changes(self):
        return [(f.status, f.path) for f in self.files]
