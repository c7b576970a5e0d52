# SPDX-License-Identifier: MIT
"""A headless Chromium, driven over a pair of pipes (--remote-debugging-pipe): no port, no library."""
import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import time

from .kit import Failed

NAMES = ('chromium', 'chromium-browser', 'google-chrome')
KEYS = {'Escape': ('Escape', 27), 'Enter': ('Enter', 13)}


def program():
    """The path of a Chromium, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Chromium:
    def __init__(self, profile, timeout=60):
        self.timeout, self.number, self.buffer, self.complaints = timeout, 0, b'', []
        theirs_in, self.out = os.pipe()
        self.input, theirs_out = os.pipe()
        # the browser reads from 3 and writes to 4
        script = f'exec 3<&{theirs_in} 4>&{theirs_out}; exec "$@"'
        self.process = subprocess.Popen(
            ['bash', '-c', script, 'bash', program(), '--headless=new', '--remote-debugging-pipe', '--no-sandbox', '--disable-gpu', '--no-first-run',
             '--disable-dev-shm-usage', '--hide-scrollbars', f'--user-data-dir={profile}', 'about:blank'],
            pass_fds=(theirs_in, theirs_out), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self.session = None
        target = self.call('Target.createTarget', url='about:blank')['targetId']
        self.session = self.call('Target.attachToTarget', targetId=target, flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Log', 'Network'):
            self.call(domain + '.enable')

    def receive(self, deadline):
        while b'\0' not in self.buffer:
            if not select.select([self.input], [], [], max(0, deadline - time.monotonic()))[0]:
                raise Failed('the browser does not answer')
            part = os.read(self.input, 1 << 16)
            if not part:
                raise Failed('the browser ended')
            self.buffer += part
        message, _, self.buffer = self.buffer.partition(b'\0')
        message = json.loads(message)
        self.listen(message.get('method'), message.get('params', {}))
        return message

    def listen(self, method, params):
        """What a page should not do: complain, or ask for anything but itself."""
        if method == 'Runtime.exceptionThrown':
            self.complaints.append(params['exceptionDetails'].get('text', '?') + str(params['exceptionDetails'].get('exception', {}).get('description', '')))
        elif method == 'Log.entryAdded':
            self.complaints.append(params['entry']['text'])
        elif method == 'Runtime.consoleAPICalled':
            self.complaints.append(str([a.get('value') for a in params['args']]))
        elif method == 'Network.requestWillBeSent' and not params['request']['url'].startswith(('file:', 'about:')):
            self.complaints.append('asks for ' + params['request']['url'])

    def call(self, method, **params):
        self.number += 1
        message = {'id': self.number, 'method': method, 'params': params}
        if self.session:
            message['sessionId'] = self.session
        os.write(self.out, json.dumps(message).encode() + b'\0')
        return self.wait(lambda m: m.get('id') == self.number, method).get('result', {})

    def wait(self, wanted, what):
        deadline = time.monotonic() + self.timeout
        while True:
            message = self.receive(deadline)
            if wanted(message):
                if 'error' in message:
                    raise Failed(f'the browser: {what}: {message["error"]["message"]}')
                return message

    def screen(self, width, height, dark=False, phone=False):
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1, mobile=phone)
        self.call('Emulation.setEmulatedMedia', features=[{'name': 'prefers-color-scheme', 'value': 'dark' if dark else 'light'}])

    def open(self, path):
        self.call('Page.navigate', url='file://' + path)
        self.wait(lambda m: m.get('method') == 'Page.loadEventFired', 'load')

    def eval(self, expression):
        """The value of a JavaScript expression, which may be a promise."""
        answer = self.call('Runtime.evaluate', expression=expression, returnByValue=True, awaitPromise=True)
        if 'exceptionDetails' in answer:
            raise Failed(f'the browser: {expression}: {answer["exceptionDetails"]}')
        return answer['result'].get('value')

    def press(self, *keys):
        for key in keys:
            name, code = KEYS.get(key, (key, 0))
            text = {} if key in KEYS else {'text': key}
            self.call('Input.dispatchKeyEvent', type='keyDown', key=name, windowsVirtualKeyCode=code, **text)
            self.call('Input.dispatchKeyEvent', type='keyUp', key=name, windowsVirtualKeyCode=code)
        self.eval('new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))')

    def screenshot(self, path):
        with open(path, 'wb') as file:
            file.write(base64.b64decode(self.call('Page.captureScreenshot')['data']))

    def close(self):
        with contextlib.suppress(Failed, OSError):
            self.session = None
            self.call('Browser.close')
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.input)
        os.close(self.out)
